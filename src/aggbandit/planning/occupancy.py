"""μ: where a policy goes."""

from typing import Any

import numpy as np

from aggbandit._arrays import FloatArray
from aggbandit.mdp.tabular import TabularMDP
from aggbandit.planning._inputs import policy_for


def occupancy(mdp: TabularMDP, policy: Any) -> FloatArray:
    """The probability μ_h(s) of every state at every step under `policy`, (H, S).

    μ_1 = the initial distribution,   μ_{h+1}(s') = Σ_{s,a} μ_h(s) π_h(a|s) p_h(s'|s, a)

    That of a state and an action is μ_h(s) π_h(a|s).  [LM25] Section 2; O(H S² A), or O(H · nonzeros) where sparse.

    >>> import numpy as np
    >>> from aggbandit.mdp.tabular import TabularMDP
    >>> stay_or_toss = [[[1.0, 0.0], [0.5, 0.5]], [[0.0, 1.0], [0.0, 1.0]]]
    >>> mdp = TabularMDP(stay_or_toss, horizon=3)
    >>> print(occupancy(mdp, np.full((3, 2, 2), 0.5)))
    [[1.     0.    ]
     [0.75   0.25  ]
     [0.5625 0.4375]]
    """
    from aggbandit.kernels import occupancy as kernels

    policy_hsa = policy_for(mdp, policy)
    reach_hs = np.empty((mdp.H, mdp.S))
    if mdp.is_sparse:
        kernels.reach_sparse(mdp.next_states, mdp.probabilities, policy_hsa, mdp.initial, reach_hs)
    else:
        kernels.reach(mdp.stored, policy_hsa, mdp.initial, reach_hs)
    return reach_hs
