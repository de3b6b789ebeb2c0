import numpy as np
import pytest

import aggbandit as ab
from aggbandit.errors import InvalidInputError
from aggbandit.kernels import optimistic_greedy as kernel
from aggbandit.learners.base import Draws, Episode, Problem
from aggbandit.learners.ucbvi import Ucbvi
from aggbandit.testing.learner_contract import walk
from naive import optimistic_values, planning
from naive.optimistic_values import Seen


@pytest.mark.equation("AOM17-Q")
@pytest.mark.equation("AOM17-CH")
@pytest.mark.equation("AOM17-BF")
@pytest.mark.parametrize("bonus", ["ch", "bf"])
@pytest.mark.parametrize("scale", [1.0, 0.005])
def test_it_plays_as_the_pseudo_code_reads(bonus, scale):
    H, S, A, K = 3, 2, 2, 150
    problem = Problem(H=H, S=S, A=A, episodes=K)
    learner, rng, seen = Ucbvi(bonus=bonus, bonus_scale=scale), np.random.default_rng(0), Seen(H, S, A)
    state = learner.init(problem, Draws(0, 0, 0, 1))
    Q = np.broadcast_to((H - np.arange(H))[:, None, None].astype(float), (H, S, A))
    np.testing.assert_array_equal(state.q_hsa, Q)
    for k in range(K):
        states, actions, losses = rng.integers(S, size=H), rng.integers(A, size=H), rng.random(H)
        seen.add(states, actions, losses)
        state = learner.update(problem, state, Episode(k, states, actions, losses=losses), Draws(0, 0, k, 2))
        Q = optimistic_values.ucbvi_q(seen, Q, K, 0.05, bonus, scale)
        np.testing.assert_allclose(state.q_hsa, Q, rtol=1e-11)
        np.testing.assert_array_equal(state.policy_hsa > 0, Q.max(axis=-1, keepdims=True) - 1e-9 <= Q)
    assert (Q[:-1] < H - np.arange(H - 1)[:, None, None]).any() == (scale < 1.0)


@pytest.mark.equation("AOM17-BF")
def test_states_seen_often_enough_leave_no_doubt_of_their_values():
    # min(100² H³ S² A L² / n_{h+1}(s'), H²) is H² until a state was met some 10^8 times
    H, S, A, n, L = 2, 2, 2, 1e12, 9.0
    counts = np.full((H, S, A, S), n / S)
    Q, policy = np.full((H, S, A), 2.0), np.empty((H, S, A))
    kernel.ucbvi(counts, np.full((H, S, A), n), np.full((H, S, A), 0.75), True, L, 0.0, 1.0, 1e-9, Q, policy)
    unsure = 100**2 * H**3 * S**2 * A * L**2 / (A * n)
    assert unsure < H**2
    np.testing.assert_allclose(Q[1], 0.25, rtol=1e-14)
    doubt = Q[0] - 0.5 - 14 * H * L / (3 * n)
    np.testing.assert_allclose(
        doubt, np.sqrt(8 * unsure / n), rtol=1e-6
    )  # 1.4e-8 beside 0.5: Q keeps seven digits of it


@pytest.mark.parametrize("bonus", ["ch", "bf"])
@pytest.mark.parametrize("scale", [1.0, 0.05])  # the theory's; one that brings values down, without noise
def test_it_is_optimistic(bonus, scale):
    H, S, A, K = 3, 2, 2, 400
    lowered = 0
    for seed in range(3):
        made = planning.random_problem(seed, H, S, A)
        mdp = ab.TabularMDP(made.transition, initial_state=made.initial)
        problem = Problem(H=H, S=S, A=A, episodes=K, initial_state=made.initial)
        session = ab.start(Ucbvi(bonus=bonus, bonus_scale=scale), problem)
        rng = np.random.default_rng(seed)
        for _ in range(K):
            states, actions = walk(mdp, session.policy, rng)
            losses = made.loss[np.arange(H), states, actions]
            session.update(states, actions, (rng.random(H) < losses).astype(float) if scale == 1.0 else losses)
        best, _ = ab.planning.best_policy(mdp, made.loss)
        cap = H - np.arange(H)[:, None, None]
        optimal = cap - planning.action_values(made.transition, np.eye(A)[best], made.loss)
        assert (session._state.q_hsa >= optimal - 1e-12).all()
        lowered += (session._state.q_hsa[:-1] < cap[:-1]).sum()
    assert lowered > 0 or scale == 1.0


@pytest.mark.parametrize("bonus, scale", [("ch", 0.0), ("bf", 0.0), ("bf", 0.005)])
def test_deterministic_dynamics_leave_no_regret_in_the_end(bonus, scale):
    rng = np.random.default_rng(1)
    H, S, A, K = 4, 3, 2, 4000
    mdp = ab.TabularMDP(np.eye(S)[rng.integers(S, size=(H, S, A))])
    loss = rng.random((H, S, A))
    losses = ab.adversaries.Recorded(np.broadcast_to(loss, (K, H, S, A)))
    learner = Ucbvi(bonus=bonus, bonus_scale=scale)
    result = ab.run(mdp, losses, learner, episodes=K, seed=0, checkpoints=[K // 2, K])
    assert result.regret[0, 0] > 0.0
    assert result.regret[0, 1] == pytest.approx(result.regret[0, 0], abs=1e-9)


def test_bad_arguments_are_refused():
    with pytest.raises(InvalidInputError, match="bonus must be one of 'ch', 'bf', but is 'hoeffding'"):
        Ucbvi(bonus="hoeffding")
