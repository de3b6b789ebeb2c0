"""Arguments of the planning functions, checked once and made ready for the kernels.

All arrays are handed on contiguous and read-only, whatever the caller's flags: a kernel is compiled anew for every
mixture of layouts and flags that it meets.
"""

from typing import Any

import numpy as np

from aggbandit._arrays import FloatArray, frozen
from aggbandit._checks import as_floats, require_distributions, require_shape
from aggbandit.errors import InvalidInputError
from aggbandit.mdp.tabular import TabularMDP


def require_mdp(mdp: object) -> None:
    """`mdp` is a TabularMDP, not the bare array of its transitions."""
    if not isinstance(mdp, TabularMDP):
        raise InvalidInputError(
            f"mdp must be a TabularMDP, but is {type(mdp).__name__}. TabularMDP(transition) is one."
        )


def policy_for(mdp: TabularMDP, policy: Any) -> FloatArray:
    """`policy` as (H, S, A), every row a distribution over actions."""
    require_mdp(mdp)
    policy_hsa = as_floats("policy", policy)
    require_shape("policy", policy_hsa, (mdp.H, mdp.S, mdp.A), "(H, S, A)")
    require_distributions("policy", policy_hsa)
    return ready(policy_hsa)


def loss_for(mdp: TabularMDP, loss: Any) -> FloatArray:
    """`loss` as (H, S, A), every entry finite."""
    require_mdp(mdp)
    loss_hsa = as_floats("loss", loss)
    require_shape("loss", loss_hsa, (mdp.H, mdp.S, mdp.A), "(H, S, A)")
    return ready(loss_hsa)


def ready(array: FloatArray) -> FloatArray:
    """The same numbers, contiguous and read-only; copied only where not contiguous."""
    return frozen(np.ascontiguousarray(array))
