import numpy as np
import pytest

from aggbandit.errors import InvalidInputError
from aggbandit.learners.base import Draws, Episode, Problem
from aggbandit.learners.mc_control import McControl


@pytest.mark.equation("SB18-mc-control")
def test_values_are_means_of_totals_and_play_is_greedy_on_them():
    rng = np.random.default_rng(0)
    H, S, A, eps = 2, 2, 3, 0.3
    problem = Problem(H=H, S=S, A=A, episodes=None)
    learner = McControl(exploration=eps)
    state = learner.init(problem, Draws(0, 0, 0, 1))
    seen = {(h, s, a): [] for h in range(H) for s in range(S) for a in range(A)}
    met = set()
    for k in range(60):
        states, actions, total = rng.integers(S, size=H), rng.integers(A, size=H), float(rng.random() * H)
        state = learner.update(problem, state, Episode(k, states, actions, total=total), Draws(0, 0, k, 2))
        for h, (s, a) in enumerate(zip(states, actions, strict=True)):
            seen[h, s, a].append(total)
            met.add((h, s))
        for h, s in met:
            means = [np.mean(seen[h, s, a]) if seen[h, s, a] else 0.0 for a in range(A)]
            np.testing.assert_allclose(state.value_hsa[h, s], means, rtol=1e-12)
            best = [a for a in range(A) if means[a] <= min(means) + 1e-9]
            expected = [eps / A + (1 - eps) / len(best) * (a in best) for a in range(A)]
            np.testing.assert_allclose(state.policy_hsa[h, s], expected, rtol=1e-12)


def test_everything_is_tried_before_anything_is_tried_twice():
    problem = Problem(H=1, S=1, A=4, episodes=None)
    learner = McControl(exploration=0.0)
    state = learner.init(problem, Draws(0, 0, 0, 1))
    for k, a in enumerate([2, 0, 3, 1]):
        assert state.policy_hsa[0, 0, a] > 0
        seen = Episode(k, np.array([0]), np.array([a]), total=0.1 + 0.2 * a)
        state = learner.update(problem, state, seen, Draws(0, 0, k, 2))
        if k < 3:
            assert state.policy_hsa[0, 0, a] == 0
    np.testing.assert_array_equal(state.policy_hsa[0, 0], [1, 0, 0, 0])


def test_an_exploration_beyond_1_is_refused():
    with pytest.raises(InvalidInputError, match="exploration must be a finite number, at least 0 and at most 1"):
        McControl(exploration=1.5)
