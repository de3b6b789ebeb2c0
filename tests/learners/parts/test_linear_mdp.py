import numpy as np
import pytest

from aggbandit.errors import InvalidInputError
from aggbandit.learners.parts import linear_mdp
from aggbandit.mdp.tabular import TabularMDP
from naive import ensembles as naive

H, S, A, D = 3, 5, 2, 3


def random_instance(seed=0):
    return naive.linear_mdp(np.random.default_rng(seed), H, S, A, D)


def learned(features, n, seed=1):
    model, history = linear_mdp.unseen(features, H), []
    rng = np.random.default_rng(seed)
    for _ in range(n):
        history.append((rng.integers(S, size=H), rng.integers(A, size=H)))
        linear_mdp.add_trajectory(model, features, *history[-1])
    return model, history


@pytest.mark.parametrize("n", [0, 1, 25])
def test_models_are_the_ridge_regressions(n):
    features, _, _ = random_instance()
    model, history = learned(features, n)
    for h in range(H - 1):
        phi = np.array([features[states[h], actions[h]] for states, actions in history]).reshape(n, D)
        following = np.array([np.eye(S)[states[h + 1]] for states, _ in history]).reshape(n, S)
        gram = np.eye(D) + phi.T @ phi
        np.testing.assert_allclose(model.mean_hsas[h], features @ naive.ridge(phi, following, 1.0), atol=1e-12)
        widths = [[np.sqrt(p @ np.linalg.solve(gram, p)) for p in row] for row in features]
        np.testing.assert_allclose(model.width_hsa[h], widths, rtol=1e-12)
        assert linear_mdp.log_determinants(model)[h] == pytest.approx(np.linalg.slogdet(gram)[1], abs=1e-11)
    assert not model.mean_hsas[-1].any()
    assert not model.width_hsa[-1].any()


def test_indicators_of_state_and_action_give_shrunken_frequencies():
    features = np.eye(S * A).reshape(S, A, S * A)
    model, history = learned(features, 30)
    counts = np.zeros((H, S, A, S))
    for states, actions in history:
        for h in range(H - 1):
            counts[h, states[h], actions[h], states[h + 1]] += 1
    visits = counts.sum(axis=-1)
    np.testing.assert_allclose(model.mean_hsas, counts / (visits + 1)[..., None], atol=1e-12)
    np.testing.assert_allclose(model.width_hsa[:-1], 1 / np.sqrt(visits[:-1] + 1), rtol=1e-12)


def test_expressive_features_pass_and_others_are_refused():
    features, transition, loss = random_instance()
    given = linear_mdp.as_features(features)
    mdp = TabularMDP(transition)
    linear_mdp.require_expressive(given, mdp)
    linear_mdp.require_expressive(given, mdp, loss)
    stationary = TabularMDP(transition[0], horizon=H)
    linear_mdp.require_expressive(given, stationary)
    other = loss.copy()
    other[1, 2, 1] += 0.1
    with pytest.raises(
        InvalidInputError, match=r"features cannot express loss\[1, \d, \d\]: the nearest linear function"
    ):
        linear_mdp.require_expressive(given, mdp, other)
    bent = transition.copy()
    bent[0, 3, 1] = np.eye(S)[0]
    with pytest.raises(InvalidInputError, match=r"features cannot express transition\[0, \d, \d\]"):
        linear_mdp.require_expressive(given, TabularMDP(bent))
    last = transition.copy()
    last[H - 1, 3, 1] = np.eye(S)[0]  # leads nowhere
    linear_mdp.require_expressive(given, TabularMDP(last))
    linear_mdp.require_expressive(given, TabularMDP(transition[:1]), loss[:1])


def test_features_are_checked():
    features, _, _ = random_instance()
    features[2, 1] = [0.9, 0.9, 0.0]
    with pytest.raises(InvalidInputError, match=r"features\[2, 1\] has norm 1\.27279, but .* greatest, 1\.27279"):
        linear_mdp.as_features(features)
    with pytest.raises(InvalidInputError, match=r"features must have shape \(S, A, d\)"):
        linear_mdp.as_features(np.zeros((3, 2)))
    with pytest.raises(InvalidInputError, match="d up to 400, but have d = 401"):
        linear_mdp.as_features(np.zeros((1, 1, 401)))
    with pytest.raises(
        InvalidInputError, match=r"features must have shape \(S, A, d\) = \(4, 2, 3\), but has \(5, 2, 3\)"
    ):
        linear_mdp.require_fit(linear_mdp.as_features(np.zeros((5, 2, 3))), 4, 2)
    given = linear_mdp.as_features(np.eye(2).reshape(2, 1, 2))
    assert given == (((1.0, 0.0),), ((0.0, 1.0),))
    assert linear_mdp.as_features([list(map(list, row)) for row in given]) == given  # as JSON gives it back
