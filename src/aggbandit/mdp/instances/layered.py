"""A loop-free world: every step has states of its own."""

import numpy as np

from aggbandit._checks import require_integer, require_number
from aggbandit.mdp._seeded import dirichlet
from aggbandit.mdp.instances.origin import instance
from aggbandit.mdp.tabular import TabularMDP


@instance("layered")
def layered(
    *, width: int = 3, actions: int = 2, horizon: int = 5, concentration: float = 1.0, seed: int = 0
) -> TabularMDP:
    """A loop-free world: disjoint layers S_1, ..., S_H of states, each step leads from one layer to the next.

    Much of the literature states its results for such worlds.  All layers are equally wide; state (h - 1) * width + i
    is the i-th of layer h.  Episodes start in the first state of layer 1, so that the others there are never visited.
    From layer h to layer h + 1 the rows of p are drawn from Dirichlet(c, ..., c).  States of the last layer lead to
    themselves, which no episode sees.

    width           states in a layer; S = width * horizon
    actions         A
    horizon         H, the number of layers
    concentration   c, at least 0.1: small is nearly deterministic, large nearly uniform
    seed            of the dynamics
    """
    W = require_integer("width", width, low=1)
    A = require_integer("actions", actions, low=1)
    H = require_integer("horizon", horizon, low=1)
    c = require_number("concentration", concentration, low=0.1)
    S = W * H
    rows = dirichlet("layered", seed, (H - 1, W, A, W), c)
    transition = np.zeros((S, A, S))
    for h in range(H - 1):
        transition[h * W : (h + 1) * W, :, (h + 1) * W : (h + 2) * W] = rows[h]
    last = np.arange(S - W, S)
    transition[last, :, last] = 1.0
    names = [f"layer {s // W + 1} state {s % W + 1}" for s in range(S)]
    return TabularMDP(transition, horizon=H, state_names=names)
