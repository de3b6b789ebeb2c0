"""Exact answers when the transitions are known, by dynamic programming.

With μ_h(s) the probability of being in s at step h under π, and ℓ a loss table:

    V_h(s)    = E[Σ_{i≥h} ℓ_i | s_h = s]               what is still to come
    Q_h(s, a) = E[Σ_{i≥h} ℓ_i | s_h = s, a_h = a]
    W_h(s)    = E[Σ_{i<h} ℓ_i | s_h = s]               what it has cost to get there
    U_h(s, a) = E[Σ_i ℓ_i | s_h = s, a_h = a] = Q_h(s, a) + W_h(s)

Policies are (H, S, A) with rows that sum to 1 within 1e-9.  Losses are (H, S, A) and may be any finite numbers, not
only those in [0, 1]: a sum over many episodes, a bonus, a difference.  Dense and sparse models are both taken, the
latter at a cost proportional to their nonzeros.

Probabilities are used as given and never rescaled.  Where the rows of a model or a policy sum to 1 only up to
rounding, Σ_s μ_h(s) is off 1 by as much, multiplied over the steps before h; forward and backward answers agree.
"""

from aggbandit.planning.hindsight import best_policy
from aggbandit.planning.occupancy import occupancy
from aggbandit.planning.occupancy_bounds import occupancy_bounds
from aggbandit.planning.trajectory_values import prefix_values, trajectory_values
from aggbandit.planning.values import action_values, values

__all__ = [
    "action_values",
    "best_policy",
    "occupancy",
    "occupancy_bounds",
    "prefix_values",
    "trajectory_values",
    "values",
]
