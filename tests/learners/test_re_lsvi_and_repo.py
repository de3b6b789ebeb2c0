from math import ceil, log, sqrt

import numpy as np
import pytest

import aggbandit as ab
from aggbandit.errors import InvalidInputError
from aggbandit.learners import re_lsvi, repo
from aggbandit.learners.base import Draws, Episode, Problem
from aggbandit.learners.parts import ensembles, least_squares
from aggbandit.learners.re_lsvi import ReLsvi
from aggbandit.learners.repo import Repo
from naive import ensembles as naive
from naive import planning, trajectory_feedback

H, S, A, D, K = 3, 3, 2, 2, 60
PROBLEM = Problem(H=H, S=S, A=A, episodes=K)
FEATURES, TRANSITION, LOSS = naive.linear_mdp(np.random.default_rng(0), H, S, A, D)


def episodes(n, seed=1):
    rng = np.random.default_rng(seed)
    for k in range(n):
        s, states, actions = 0, [], []
        for h in range(H):
            a = int(rng.integers(A))
            states.append(s)
            actions.append(a)
            s = int(rng.choice(S, p=TRANSITION[h, s, a]))
        total = float(LOSS[np.arange(H), states, actions].sum())
        yield Episode(k, np.array(states), np.array(actions), total=total)


class History:
    """θ̂, the model and the bonus of both forms from all episodes so far, by the definitions."""

    def __init__(self, features, confidence=0.05):
        self.features, self.confidence, self.seen = features, confidence, []

    def rewards(self):
        """(φ stacked, H − L), the regression's ridge being H."""
        phi = np.eye(S * A).reshape(S, A, S * A) if self.features is None else self.features
        d = phi.shape[-1]
        rows = [phi[e.states, e.actions].ravel() for e in self.seen]
        totals = np.array([H - e.total for e in self.seen])
        rows = np.array(rows).reshape(len(rows), H * d)
        gram = H * np.eye(H * d) + rows.T @ rows
        return naive.ridge(rows, totals, H), gram

    def radius(self, gram, sigma):
        d = len(gram)
        return sigma * sqrt(np.linalg.slogdet(gram / H)[1] + 2 * log(6 / self.confidence)) + sqrt(H * d)

    def dynamics(self, beta):
        """The model, the bonus, and the limit of values."""
        if self.features is None:
            model, visits = trajectory_feedback.empirical([(e.states, e.actions) for e in self.seen], H, S, A)
            return model, trajectory_feedback.bonus(visits, K, self.confidence), np.inf
        limit = 3 * H * (1 + beta)
        model, bonus = np.zeros((H, S, A, S)), np.zeros((H, S, A))
        for h in range(H - 1):
            phi = np.array([self.features[e.states[h], e.actions[h]] for e in self.seen]).reshape(-1, D)
            following = np.array([np.eye(S)[e.states[h + 1]] for e in self.seen]).reshape(-1, S)
            model[h] = self.features @ naive.ridge(phi, following, 1.0)
            inverse = np.linalg.inv(np.eye(D) + phi.T @ phi)
            widths = np.sqrt(np.einsum("sad,de,sae->sa", self.features, inverse, self.features))
            bonus[h] = D * limit * sqrt(log(2 * D * H * K / self.confidence)) * widths
        return model, bonus, limit

    def losses(self, weights, bonus):
        if self.features is None:
            return -(weights.reshape(H, S, A) + bonus)
        return -(np.einsum("sad,hd->hsa", self.features, weights.reshape(H, D)) + bonus)


forms = pytest.mark.parametrize("features", [None, FEATURES], ids=["tabular", "linear"])


@pytest.mark.equation("CLRS24-re-lsvi")
@forms
@pytest.mark.parametrize("noise", ["independent", "none"])
def test_the_most_hopeful_member_is_played(features, noise):
    m = 4
    learner = ReLsvi(features=features, ensemble=m, noise=noise, v_scale=0.5, bonus_scale=0.02)
    history = History(features)
    state = learner.init(PROBLEM, Draws(0, 0, 0, 1))
    draws = Draws(0, 0, 0, 1)
    chosen = set()
    for episode in episodes(K):
        weights, gram = history.rewards()
        beta = history.radius(gram, sqrt(H) / 2 if noise == "independent" else 0.0)
        normal = draws.normal((m, len(gram)))
        model, bonus, limit = history.dynamics(beta)
        root = np.linalg.cholesky(gram).T
        found = []
        for i in range(m):
            zeta = 0.5 * beta * np.linalg.solve(root, normal[i])
            q, v = naive.values(model, history.losses(weights + zeta, 0.02 * bonus), limit)
            found.append((v[0, 0], i, q.argmin(axis=-1)))
        best = min(found)
        chosen.add(best[1])
        np.testing.assert_array_equal(learner.policy(PROBLEM, state).argmax(axis=-1), best[2])
        state = learner.update(PROBLEM, state, episode, Draws(0, 0, episode.index, 2))
        history.seen.append(episode)
        draws = Draws(0, 0, episode.index, 2)
    assert len(chosen) > 1


@forms
def test_without_noise_and_bonus_it_is_certainty_equivalence(features):
    learner = ReLsvi(features=features, ensemble=3, v_scale=0.0, bonus_scale=0.0)
    state, history = learner.init(PROBLEM, Draws(0, 0, 0, 1)), History(features)
    for episode in episodes(K):
        state = learner.update(PROBLEM, state, episode, Draws(0, 0, episode.index, 2))
        history.seen.append(episode)
    model, _, limit = history.dynamics(history.radius(history.rewards()[1], sqrt(H) / 2))
    q, _ = naive.values(model, history.losses(history.rewards()[0], 0.0), limit)
    policy = learner.policy(PROBLEM, state)
    np.testing.assert_allclose((policy * q).sum(axis=-1), q.min(axis=-1), atol=1e-12)


def test_a_member_one_deviation_up_is_optimistic():
    """V^i_1 >= V*_1 if |(p̄ - p) V*| <= b and ⟨μ*(p̄), ζ^i⟩ >= β ‖μ*(p̄)‖_{Λ^{-1}}: one member in six, by chance."""
    known = ensembles.nothing_known(PROBLEM, None)
    best = min(
        planning.deterministic_policies(H, S, A), key=lambda p: planning.value(TRANSITION, p, LOSS, np.eye(S)[0])
    )
    optimum = planning.values(TRANSITION, best, LOSS)
    for episode in [None, *episodes(40)]:
        if episode is not None:
            ensembles.add(PROBLEM, known, episode)
        mean = known.dynamics.mean_hsas
        bonus = np.zeros((H, S, A))
        bonus[:-1] = np.abs(((mean - TRANSITION)[:-1] * optimum[1:, None, None, :]).sum(axis=-1))
        radius = ensembles.reward_radius(PROBLEM, known, "none", 0.05)  # the totals are the mean losses: no noise
        reach = (planning.occupancy(mean, best, np.eye(S)[0])[:, :, None] * best).ravel()
        direction = least_squares.applied(known.rewards, reach)
        zeta = radius * direction / sqrt(reach @ direction)
        losses = ensembles.optimistic_losses(known, np.array([zeta]), bonus)
        _, value = re_lsvi.best_of_members(mean, losses, PROBLEM.initial, np.inf)
        assert value[0] <= optimum[0, 0] - H + 1e-9  # in losses −r = ℓ − 1, H of them


@pytest.mark.equation("CLRS24-members")
def test_sizes_of_ensembles():
    assert ensembles.members(None, 100_000, 0.05) == ceil(9 * log(7 * 100_000 / 0.05)) == 149
    assert ensembles.members(3, 100_000, 0.05) == 3
    # one member fails with probability at most 8/9, as Pr[N >= 1] = 0.1587 > 1/9: all of them, seldom
    assert (8 / 9) ** 149 <= 0.05 / (7 * 100_000)


@pytest.mark.equation("CLRS24-repo")
@forms
def test_repo_runs_policy_optimisation_for_members_and_hedges(features):
    m = 3
    learner = Repo(features=features, ensemble=m, v_scale=0.3, bonus_scale=0.01, value_bound=float(H), step_scale=2.0)
    told = learner.resolved(PROBLEM)
    step, hedge = told["step_size"], told["hedge_step_size"]
    assert step == pytest.approx(2 * sqrt(2 * log(A) / K) / H, rel=1e-12)
    assert hedge == pytest.approx(2 * sqrt(2 * log(m) / K) / H, rel=1e-12)
    state, history = learner.init(PROBLEM, Draws(0, 0, 0, 1)), History(features)
    draws, start, epochs = Draws(0, 0, 0, 1), True, 0
    for episode in episodes(K):
        if start:
            epochs += 1
            _, gram = history.rewards()
            beta = history.radius(gram, sqrt(H) / 2)
            _, bonus, limit = history.dynamics(beta)
            zeta = 0.3 * beta * np.linalg.solve(np.linalg.cholesky(gram).T, draws.normal((m, len(gram))).T).T
            policies, log_q = np.full((m, H, S, A), 1 / A), np.zeros(m)
            first = history.dynamics(beta)
            first_gram, first_seen = gram, len(history.seen)
        q = np.exp(log_q) / np.exp(log_q).sum()
        member = int(np.searchsorted(np.cumsum(q), draws.uniform(1)[0], side="right"))
        np.testing.assert_allclose(learner.policy(PROBLEM, state), policies[member], rtol=1e-8)
        # values with this episode's estimates, then one more episode is known
        weights, _ = history.rewards()
        model = history.dynamics(beta)[0]
        for i in range(m):
            losses = history.losses(weights + zeta[i], 0.01 * bonus)
            values, v = naive.policy_values(model, losses, policies[i], limit)
            policies[i] = naive.oppo(policies[i], values, step)
            log_q[i] -= hedge * v[0, 0]
        log_q -= log_q.max()
        state = learner.update(PROBLEM, state, episode, Draws(0, 0, episode.index, 2))
        history.seen.append(episode)
        draws = Draws(0, 0, episode.index, 2)
        _, gram = history.rewards()
        start = np.linalg.slogdet(gram)[1] >= np.linalg.slogdet(first_gram)[1] + log(2)
        before, now = history.seen[:first_seen], history.seen
        for h in range(H - 1):
            if features is None:
                for s, a in np.ndindex(S, A):
                    n = [sum(e.states[h] == s and e.actions[h] == a for e in some) for some in (before, now)]
                    start |= n[1] > n[0] and n[1] >= 2 * n[0]
            else:
                grams = []
                for some in (before, now):
                    phi = np.array([features[e.states[h], e.actions[h]] for e in some]).reshape(-1, D)
                    grams.append(np.linalg.slogdet(np.eye(D) + phi.T @ phi)[1])
                start |= grams[1] >= grams[0] + log(2)
    assert 5 < epochs < K / 2
    assert first is not None


@forms
def test_an_epoch_ends_when_a_count_or_a_determinant_has_doubled(features):
    learner = Repo(features=features, ensemble=2)
    for within, after in ((1.9, 2.0), (1.0, 2.5)):
        for part in ("rewards", "dynamics"):
            state = learner.init(PROBLEM, Draws(0, 0, 0, 1))
            known, epoch = state.known, state.epoch
            if part == "dynamics" and features is None:
                epoch = epoch._replace(visits_hsa=np.full((H, S, A), 10.0))
            for factor, expected in ((within, False), (after, True)):
                if part == "rewards":
                    known.rewards.root_dd[1, 1] = sqrt(H * factor * (1 + 1e-12))  # det Λ = its diagonal's squares
                elif features is None:
                    known.dynamics.visits_hsa[:] = 10.0
                    known.dynamics.visits_hsa[1, 2, 1] = 10.0 * factor
                else:
                    known.dynamics.gram_hdd[1, 0, 0] = factor * (1 + 1e-12)
                assert repo.doubled(PROBLEM, known, epoch) == expected


@forms
def test_repos_state_keeps_its_size(features):
    learner = Repo(features=features)
    state = learner.init(PROBLEM, Draws(0, 0, 0, 1))
    first = [array.shape for array in (state.logits_mhsa, state.epoch.noise_md, state.known.rewards.root_dd)]
    for episode in episodes(20):
        state = learner.update(PROBLEM, state, episode, Draws(0, 0, episode.index, 2))
    assert first == [array.shape for array in (state.logits_mhsa, state.epoch.noise_md, state.known.rewards.root_dd)]


def test_repo_with_one_member_on_a_fixed_model_is_oppo():
    learner = Repo(ensemble=1, value_bound=1.0)
    state = learner.init(PROBLEM, Draws(0, 0, 0, 1))
    rng = np.random.default_rng(3)
    model = rng.dirichlet(np.ones(S), size=(H, S, A))
    state.known.dynamics.mean_hsas[:] = model
    policy = np.full((H, S, A), 1 / A)
    losses = -(state.epoch.noise_md[0].reshape(H, S, A) + state.epoch.bonus_hsa)
    for _ in range(50):
        policy = naive.oppo(policy, planning.action_values(model, policy, losses), 0.05)
        repo.improve(PROBLEM, state, 0.05, 0.1)
        np.testing.assert_allclose(state.policy_mhsa[0], policy, rtol=1e-9)


@pytest.mark.equation("CLRS24-steps")
def test_steps_from_the_bound_on_values():
    told = Repo().resolved(PROBLEM)
    m, d = ceil(9 * log(7 * K / 0.05)), H * S * A
    beta = sqrt(H) / 2 * sqrt(d * log(1 + K / d) + 2 * log(6 / 0.05)) + sqrt(H * d)
    bound = H + H * beta / sqrt(H) * sqrt(2 * log(2 * m * H * S * A * K / 0.05)) + H * H
    assert told["ensemble"] == m
    assert told["value_bound"] == pytest.approx(bound, rel=1e-12)
    assert told["step_size"] == pytest.approx(sqrt(2 * log(A) / K) / bound, rel=1e-12)
    assert told["hedge_step_size"] == pytest.approx(sqrt(2 * log(m) / K) / bound, rel=1e-12)
    d = H * D
    beta = sqrt(H) / 2 * sqrt(d * log(1 + K / d) + 2 * log(6 / 0.05)) + sqrt(H * d)
    linear = Repo(features=FEATURES).resolved(PROBLEM)
    assert linear["value_bound"] == pytest.approx(3 * H * (1 + beta), rel=1e-12)


@pytest.mark.parametrize("kind", [ReLsvi, Repo])
def test_features_are_values_of_the_configuration(kind):
    features = np.eye(6).reshape(3, 2, 6)
    assert kind(features=features) == kind(features=features.tolist())
    assert "ensemble=5" in repr(kind(features=features, ensemble=5))
    assert hash(kind(features=features)) == hash(kind(features=features.tolist()))


@pytest.mark.parametrize("kind", [ReLsvi, Repo])
def test_arguments_sizes_and_instances_are_checked(kind):
    for arguments, said in (
        ({"v_scale": -1.0}, "v_scale must be"),
        ({"bonus_scale": -1.0}, "bonus_scale must be"),
        ({"ensemble": 0}, "ensemble must be at least 1"),
        ({"features": np.ones((2, 2, 2))}, r"features\[0, 0\] has norm 1.41421"),
    ):
        with pytest.raises(InvalidInputError, match=said):
            kind(**arguments)
    with pytest.raises(InvalidInputError, match=r"\(S, A, d\) = \(3, 2, 2\), but has \(2, 1, 2\)"):
        ab.start(kind(features=np.eye(2).reshape(2, 1, 2)), PROBLEM)
    with pytest.raises(InvalidInputError, match="up to d = 3000, but here d = 3200"):
        ab.start(kind(), Problem(H=10, S=40, A=8, episodes=5))
    with pytest.raises(InvalidInputError, match="needs the number of episodes"):
        ab.start(kind(), Problem(H=2, S=2, A=2, episodes=None))
    assert kind().linear_features is None
    assert kind.reconstructed
    with pytest.raises(InvalidInputError, match="step_scale must be"):
        Repo(step_scale=0.0)
    with pytest.raises(InvalidInputError, match="value_bound must be"):
        Repo(value_bound=0.0)


def doubled(features):
    return ab.learners.make("doubling", learner=Repo(features=features))


@pytest.mark.parametrize("kind", [ReLsvi, Repo, doubled])
def test_features_that_do_not_express_the_instance_are_refused_where_it_is_played(kind):
    mdp, learner = ab.TabularMDP(TRANSITION), kind(features=FEATURES)
    linear = ab.adversaries.make("bernoulli", mdp, table=LOSS)
    assert ab.run(mdp, linear, learner, episodes=3).regret.shape == (1, 3)
    with pytest.raises(InvalidInputError, match=r"features cannot express loss\[\d, \d, \d\]"):
        ab.run(mdp, ab.adversaries.make("bernoulli", mdp, table=np.square(LOSS)), learner, episodes=3)
    bent = ab.TabularMDP(TRANSITION**2 / (TRANSITION**2).sum(axis=-1, keepdims=True))
    with pytest.raises(InvalidInputError, match="features cannot express transition"):
        ab.run(bent, linear, learner, episodes=3)
