import numpy as np
import pytest

import aggbandit as ab
from aggbandit.errors import InvalidInputError
from aggbandit.learners.base import Draws, Episode, Problem
from aggbandit.learners.q_learning_shared import QLearningShared


@pytest.mark.equation("WD92-shared")
def test_it_is_q_learning_of_a_share_of_the_total():
    rng = np.random.default_rng(0)
    H, S, A, eps = 3, 2, 2, 0.2
    problem = Problem(H=H, S=S, A=A, episodes=None)
    learner = QLearningShared(exploration=eps)
    state = learner.init(problem, Draws(0, 0, 0, 1))
    Q, n = np.zeros((H, S, A)), np.zeros((H, S, A))
    for k in range(50):
        states, actions, total = rng.integers(S, size=H), rng.integers(A, size=H), float(rng.random() * H)
        state = learner.update(problem, state, Episode(k, states, actions, total=total), Draws(0, 0, k, 2))
        # no place is met twice in an episode: the order of the steps does not matter
        for h in range(H):
            s, a = states[h], actions[h]
            n[h, s, a] += 1
            rate = (H + 1) / (H + n[h, s, a])
            ahead = min(Q[h + 1, states[h + 1]]) if h + 1 < H else 0.0
            Q[h, s, a] = (1 - rate) * Q[h, s, a] + rate * (total / H + ahead)
        np.testing.assert_allclose(state.q_hsa, Q, rtol=1e-12)
        s = states[0]
        greedy = (Q[0, s] == Q[0, s].min()) / (Q[0, s] == Q[0, s].min()).sum()
        np.testing.assert_allclose(state.policy_hsa[0, s], eps / A + (1 - eps) * greedy, rtol=1e-12)


def test_it_can_settle_on_the_wrong_action():
    # Action 0 costs 0.35 and leads to a state where the second step costs 0 or 1.  Action 1 costs 0.45 and leads to
    # one where it always costs 0.  Shared totals: Q of action 0 tends to (0.35 + e) / 2 + 0.35 / 2, where e is what
    # exploring at the second step costs; of action 1 to 0.45 / 2 + 0.45 / 2.
    # Without exploration, action 0 is better (0.35 < 0.45); with it, 0.35 + e / 2 > 0.45 for e = 0.3: it turns away,
    # although action 0 still costs no more than 0.35 to a policy that does not explore.
    transition = np.zeros((2, 3, 2, 3))
    transition[:, :, 0, 1] = transition[:, :, 1, 2] = 1.0
    loss = np.zeros((2, 3, 2))
    loss[0, 0] = [0.35, 0.45]
    loss[1, 1] = [0.0, 1.0]
    mdp = ab.TabularMDP(transition)
    losses = ab.adversaries.Recorded(np.broadcast_to(loss, (6000, 2, 3, 2)))
    learner = QLearningShared(exploration=0.6)  # e = 0.3
    result = ab.run(mdp, losses, learner, episodes=6000, replicas=4, seed=0)
    assert result.hindsight_policy[0, 0] == 0
    assert (result.policy[:, 0, 0, 1] > 0.5).all()


def test_an_exploration_below_0_is_refused():
    with pytest.raises(InvalidInputError, match="exploration must be a finite number, at least 0"):
        QLearningShared(exploration=-0.1)
