"""A combination lock: one action is right in each state, any other starts over."""

import numpy as np

from aggbandit._arrays import FloatArray, IntArray
from aggbandit._checks import require_integer, require_number
from aggbandit.mdp._seeded import uniforms
from aggbandit.mdp.instances.origin import instance
from aggbandit.mdp.tabular import TabularMDP


@instance("chain")
def chain(
    *, states: int = 8, actions: int = 2, horizon: int | None = None, slip: float = 0.0, seed: int = 0
) -> TabularMDP:
    """A combination lock: only one sequence of actions opens it, and every wrong one springs it back to the start.

    State i is "i digits are right".  Each state has one right action, drawn from the seed, which leads to the next
    state; every other action leads back to state 0.  The last state, the open lock, is never left.  Who guesses at
    random opens it with probability A^-(S-1) in S - 1 steps, as in the exploration problem "deep sea".

    Its own losses make honest tries look bad: with a closed lock the right action costs 1, a wrong one 1 - 1/(2H);
    the open lock costs 0.  The best policy pays S - 1 in all, one that never tries pays H - 1/2.

    states    S, the digits to find and the open lock
    actions   A
    horizon   H; None: states, just enough to open it without a single error and enjoy one step
    slip      probability that the right action leaves the state as it is
    seed      of the combination
    """
    S = require_integer("states", states, low=1)
    A = require_integer("actions", actions, low=1)
    H = S if horizon is None else require_integer("horizon", horizon, low=1)
    slip = require_number("slip", slip, low=0.0, high=1.0)
    closed = np.arange(S - 1)
    transition = np.zeros((S, A, S))
    transition[:, :, 0] = 1.0
    right = combination(S, A, seed)
    transition[closed, right] = 0.0
    transition[closed, right, closed] = slip
    transition[closed, right, closed + 1] = 1.0 - slip
    transition[S - 1] = 0.0
    transition[S - 1, :, S - 1] = 1.0
    names = [f"{i} of {S - 1} right" for i in closed] + ["open"]
    return TabularMDP(transition, horizon=H, state_names=names)


def combination(states: int, actions: int, seed: int) -> IntArray:
    """The right action in each closed state, (S - 1,)."""
    return (uniforms("chain", seed, (states - 1,)) * actions).astype(np.int64)


def loss_table(*, states: int, actions: int, horizon: int | None, slip: float, seed: int) -> FloatArray:
    """1 for the right action of a closed lock, 1 - 1/(2H) for a wrong one, 0 once it is open: (H, S, A)."""
    H = states if horizon is None else horizon
    loss = np.full((states, actions), 1.0 - 0.5 / H)
    loss[np.arange(states - 1), combination(states, actions, seed)] = 1.0
    loss[states - 1] = 0.0
    return np.tile(loss, (H, 1, 1))
