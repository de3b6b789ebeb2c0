"""A small sales dialogue: greet, ask, offer, close, and one score when it is over."""

import numpy as np

from aggbandit._arrays import FloatArray
from aggbandit._checks import require_integer
from aggbandit.mdp.instances.origin import instance
from aggbandit.mdp.tabular import TabularMDP

STATES = ("new", "greeted", "understood", "interested", "annoyed", "sold", "gone")
ACTIONS = ("greet", "ask", "offer", "close")

# What the visitor does next.  The way to a sale is greet, ask, offer, close; each shortcut may annoy.
NEXT = {
    ("new", "greet"): {"greeted": 0.9, "gone": 0.1},
    ("new", "ask"): {"understood": 0.3, "annoyed": 0.5, "gone": 0.2},
    ("new", "offer"): {"interested": 0.1, "annoyed": 0.5, "gone": 0.4},
    ("new", "close"): {"annoyed": 0.4, "gone": 0.6},
    ("greeted", "greet"): {"greeted": 0.6, "annoyed": 0.4},
    ("greeted", "ask"): {"understood": 0.8, "greeted": 0.1, "annoyed": 0.1},
    ("greeted", "offer"): {"interested": 0.3, "annoyed": 0.5, "gone": 0.2},
    ("greeted", "close"): {"annoyed": 0.5, "gone": 0.5},
    ("understood", "greet"): {"understood": 0.5, "annoyed": 0.5},
    ("understood", "ask"): {"understood": 0.7, "annoyed": 0.3},
    ("understood", "offer"): {"interested": 0.8, "understood": 0.1, "annoyed": 0.1},
    ("understood", "close"): {"sold": 0.2, "annoyed": 0.5, "gone": 0.3},
    ("interested", "greet"): {"interested": 0.5, "annoyed": 0.5},
    ("interested", "ask"): {"interested": 0.8, "understood": 0.1, "annoyed": 0.1},
    ("interested", "offer"): {"interested": 0.7, "annoyed": 0.3},
    ("interested", "close"): {"sold": 0.8, "interested": 0.1, "gone": 0.1},
    ("annoyed", "greet"): {"greeted": 0.5, "annoyed": 0.3, "gone": 0.2},
    ("annoyed", "ask"): {"understood": 0.2, "annoyed": 0.5, "gone": 0.3},
    ("annoyed", "offer"): {"annoyed": 0.5, "gone": 0.5},
    ("annoyed", "close"): {"sold": 0.05, "gone": 0.95},
}

LOSS = {"new": 0.6, "greeted": 0.5, "understood": 0.4, "interested": 0.3, "annoyed": 0.8, "sold": 0.0, "gone": 1.0}
DISCOUNT = 0.1  # what an offer gives away


@instance("dialogue")
def dialogue(*, horizon: int = 6) -> TabularMDP:
    """A small sales dialogue: greet, ask, offer or close at each turn, one score when the visitor has left.

    States   new, greeted, understood (we know what they need), interested, annoyed, sold, gone
    Actions  greet, ask, offer, close

    The way to a sale is greet, ask, offer, close; shortcuts sometimes work and mostly annoy.  An annoyed visitor can
    be won back by a greeting.  A visitor who has bought or gone stays so.

    Its own losses: each turn costs less the further the dialogue has come (new 0.6, greeted 0.5, understood 0.4,
    interested 0.3, annoyed 0.8), nothing after a sale, 1 after the visitor has gone; an offer costs 0.1 more.

    horizon   H, the number of turns
    """
    H = require_integer("horizon", horizon, low=1)
    transition = np.zeros((len(STATES), len(ACTIONS), len(STATES)))
    for (state, action), successors in NEXT.items():
        for successor, probability in successors.items():
            transition[STATES.index(state), ACTIONS.index(action), STATES.index(successor)] = probability
    for state in ("sold", "gone"):
        transition[STATES.index(state), :, STATES.index(state)] = 1.0
    return TabularMDP(transition, horizon=H, state_names=STATES, action_names=ACTIONS)


def loss_table(*, horizon: int) -> FloatArray:
    """What a turn costs in each state, and the discount of an offer: (H, S, A)."""
    loss = np.repeat([[LOSS[state]] for state in STATES], len(ACTIONS), axis=1)
    talking = [STATES.index(state) for state in STATES if state not in ("sold", "gone")]
    loss[talking, ACTIONS.index("offer")] += DISCOUNT
    return np.tile(loss, (horizon, 1, 1))
