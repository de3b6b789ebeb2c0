"""Every learner by its id; nothing is imported or compiled until asked for."""

TABLE = {
    "dlb": "aggbandit.learners.dlb:Dlb",
    "exp2": "aggbandit.learners.exp2:Exp2",
    "fixed-policy": "aggbandit.learners.fixed_policy:FixedPolicy",
    "oful-trajectory": "aggbandit.learners.oful_trajectory:OfulTrajectory",
    "po-known": "aggbandit.learners.po_known:PolicyOptimizationKnown",
    "po-unknown": "aggbandit.learners.po_unknown:PolicyOptimizationUnknown",
    "re-lsvi": "aggbandit.learners.re_lsvi:ReLsvi",
    "repo": "aggbandit.learners.repo:Repo",
    "rs-ucbvi-ts": "aggbandit.learners.rs_ucbvi_ts:RsUcbviTs",
    "scrible": "aggbandit.learners.scrible:Scrible",
    "ts-trajectory": "aggbandit.learners.ts_trajectory:TsTrajectory",
    "ucbvi-ts": "aggbandit.learners.ucbvi_ts:UcbviTs",
    "uniform": "aggbandit.learners.uniform:Uniform",
    "volumetric": "aggbandit.learners.volumetric:Volumetric",
}
