"""Random dynamics: every row of p drawn from a Dirichlet distribution."""

import numpy as np

from aggbandit._checks import require_flag, require_integer, require_number
from aggbandit.errors import InvalidInputError
from aggbandit.mdp._seeded import dirichlet, subsets
from aggbandit.mdp.instances.origin import instance
from aggbandit.mdp.tabular import DENSE_LIMIT_BYTES, TabularMDP


@instance("random")
def random(
    *,
    states: int = 10,
    actions: int = 4,
    horizon: int = 10,
    sparsity: int | None = None,
    concentration: float = 1.0,
    stationary: bool = False,
    sparse: bool = False,
    seed: int = 0,
) -> TabularMDP:
    """Random dynamics: at every (step, state, action) a fresh distribution over next states.

    Every row of p is drawn from Dirichlet(c, ..., c), over all states or over a few of them chosen at random.  With
    c = 1 all distributions are equally likely; a small c makes the moves nearly deterministic, a large one nearly
    uniform.  Episodes start in state 0.

    states          S
    actions         A
    horizon         H
    sparsity        the number of successors of each row, drawn without repetition; None: all states
    concentration   c, at least 0.1
    stationary      the same p at every step, instead of another one at each
    sparse          keep only the successors, as `TabularMDP.sparse` does; needs sparsity
    seed            of the dynamics; losses have their own
    """
    S = require_integer("states", states, low=1)
    A = require_integer("actions", actions, low=1)
    H = require_integer("horizon", horizon, low=1)
    c = require_number("concentration", concentration, low=0.1)
    leading = (S, A) if require_flag("stationary", stationary) else (H, S, A)
    if require_flag("sparse", sparse) and sparsity is None:
        raise InvalidInputError("sparse=True keeps only a row's successors, so sparsity= must say how many there are.")
    if not sparse and 8 * S * np.prod(leading, dtype=float) > DENSE_LIMIT_BYTES:
        raise InvalidInputError(
            f"states={S}, actions={A} would take {8e-9 * S * np.prod(leading, dtype=float):.3g} GB as a dense table. "
            f"Give sparsity= (successors per row) and sparse=True."
        )
    if sparsity is None:
        return TabularMDP(dirichlet("random", seed, (*leading, S), c), horizon=H)
    n = require_integer("sparsity", sparsity, low=1, high=S)
    weights = dirichlet("random", seed, (*leading, n), c)
    successors = subsets("random successors", seed, leading, n, S)
    if sparse:
        return TabularMDP.sparse(successors, weights, horizon=H)
    dense = np.zeros((*leading, S))
    np.put_along_axis(dense, successors, weights, axis=-1)
    return TabularMDP(dense, horizon=H)
