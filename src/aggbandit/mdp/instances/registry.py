"""The tables of named worlds: adding one is its file and one line here, two where it has losses of its own."""

TABLE = {
    "chain": "aggbandit.mdp.instances.chain:chain",
    "dialogue": "aggbandit.mdp.instances.dialogue:dialogue",
    "grid": "aggbandit.mdp.instances.grid:grid",
    "hand-worked": "aggbandit.mdp.instances.hand_worked:hand_worked",
    "layered": "aggbandit.mdp.instances.layered:layered",
    "lower-bound": "aggbandit.mdp.instances.lower_bound:lower_bound",
    "multitask": "aggbandit.mdp.instances.multitask:multitask",
    "random": "aggbandit.mdp.instances.random:random",
}

# functions of the factory's own arguments, (H, S, A); kept apart from the dynamics, which learners may hold
LOSSES = {
    "chain": "aggbandit.mdp.instances.chain:loss_table",
    "dialogue": "aggbandit.mdp.instances.dialogue:loss_table",
    "grid": "aggbandit.mdp.instances.grid:loss_table",
    "hand-worked": "aggbandit.mdp.instances.hand_worked:loss_table",
}
