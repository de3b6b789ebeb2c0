"""With one step every state is a bandit of its own: exponential weights, Exp3 [ACFS02] or Exp3-IX [N15] in each."""

import numpy as np
import pytest

from aggbandit import learners
from aggbandit.learners.base import Draws, Episode, Problem

S, A, K = 2, 3, 60
INITIAL = np.array([0.3, 0.7])
UNKNOWN = {"dynamics": "unknown"}
FORMS = [
    ("mdp-e", {}),
    ("o-reps", {}),
    ("uc-o-reps", {}),
    ("oppo", {}),
    ("o-reps", {"feedback": "semi-bandit"}),
    ("o-reps", {"feedback": "semi-bandit", "exploration": 0.1}),
    ("bandit-uc-o-reps", {}),
    ("uob-reps", {}),
    ("po-dilated", {}),
    ("po-dilated", UNKNOWN),
    ("dapo", {}),
    ("dapo", {"feedback": "aggregate", **UNKNOWN}),
    ("pomd", {"losses": "adversarial"}),
]


@pytest.mark.parametrize("name, arguments", FORMS)
def test_one_step(name, arguments):
    learner = learners.make(name, **arguments)
    known = np.full((1, S, A, S), 1 / S) if learner.needs.dynamics == "known" else None
    problem = Problem(H=1, S=S, A=A, episodes=K, initial_state=INITIAL, transition=known)
    told = learner.resolved(problem)
    gamma = told.get("exploration", learner.arguments.get("exploration", 0.0))
    rng, state = np.random.default_rng(0), learner.init(problem, Draws(0, 0, 0, 1))
    scores = np.zeros((S, A))
    for k in range(K):
        law = np.exp(-told["step_size"] * scores)
        law /= law.sum(axis=-1, keepdims=True)
        np.testing.assert_allclose(learner.policy(problem, state)[0], law, rtol=1e-9)
        s, table = rng.choice(S, p=INITIAL), rng.random((1, S, A))
        a = rng.choice(A, p=law[s])
        told_by = {
            "full": {"table": table},
            "semi-bandit": {"losses": table[:, s, a]},
            "aggregate": {"total": float(table[0, s, a])},
        }[learner.needs.feedback]
        if learner.needs.feedback == "full":
            scores += table[0]
        else:
            scores[s, a] += table[0, s, a] / (INITIAL[s] * law[s, a] + gamma)
        state = learner.update(problem, state, Episode(k, np.array([s]), np.array([a]), **told_by), Draws(0, 0, k, 2))
    assert np.abs(law - 1 / A).max() > 0.01
