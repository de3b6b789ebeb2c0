"""The table of named worlds: adding one is its file and one line here (two where it has losses of its own)."""

FACTORIES = {
    "random": "aggbandit.mdp.instances.random:random",
}

LOSSES: dict[str, str] = {}
