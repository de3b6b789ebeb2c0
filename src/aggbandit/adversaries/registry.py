"""The table of loss sequences: adding one is its file and one line here."""

TABLE = {
    "bernoulli": "aggbandit.adversaries.bernoulli:bernoulli",
    "drifting": "aggbandit.adversaries.drifting:drifting",
    "fixed": "aggbandit.adversaries.fixed:fixed",
    "lower-bound": "aggbandit.adversaries.hard:lower_bound",
    "multitask": "aggbandit.adversaries.hard:multitask",
    "switching": "aggbandit.adversaries.switching:switching",
}
