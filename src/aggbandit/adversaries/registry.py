"""The table of loss sequences: adding one is its file and one line here."""

FACTORIES = {
    "fixed": "aggbandit.adversaries.fixed:fixed",
    "switching": "aggbandit.adversaries.switching:switching",
}
