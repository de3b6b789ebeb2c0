"""Every learner by its id; nothing is imported or compiled until asked for."""

TABLE = {
    "dlb": "aggbandit.learners.dlb:Dlb",
    "exp2": "aggbandit.learners.exp2:Exp2",
    "fixed-policy": "aggbandit.learners.fixed_policy:FixedPolicy",
    "po-known": "aggbandit.learners.po_known:PolicyOptimizationKnown",
    "po-unknown": "aggbandit.learners.po_unknown:PolicyOptimizationUnknown",
    "scrible": "aggbandit.learners.scrible:Scrible",
    "uniform": "aggbandit.learners.uniform:Uniform",
    "volumetric": "aggbandit.learners.volumetric:Volumetric",
}
