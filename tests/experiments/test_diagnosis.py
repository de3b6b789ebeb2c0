"""The proof's quantities on real runs: they add up, they obey their lemmas, and moments are exact."""

from typing import Any

import numpy as np
import pytest

import aggbandit as ab
from aggbandit.errors import InvalidInputError
from aggbandit.experiments.diagnosis import GoodEvent, second_moment_of_totals
from naive import planning as naive

MDP = ab.instances.make("random", states=3, actions=2, horizon=3, seed=4)


def found(learner: Any, episodes: int = 400, **more: Any) -> Any:
    losses = ab.adversaries.make("switching", MDP, blocks=3, seed=1)
    return ab.diagnose(MDP, losses, learner, episodes=episodes, seed=2, **more)


@pytest.mark.equation("LM25-decomposition")
@pytest.mark.parametrize(
    "learner",
    [
        "po-known",
        ab.learners.make("po-known", step_size=0.02, bonus_scale=0.5),
        "po-unknown",
        ab.learners.make("po-unknown", step_size=0.02, radius_scale=0.01),
    ],
)
def test_the_parts_add_up_to_the_regret(learner: Any) -> None:
    """... and the regret is that of `run`'s replica, whose comparator at K is the same."""
    one = found(learner, checkpoints=[1, 50, 400])
    assert one.gap < 1e-8
    losses = ab.adversaries.make("switching", MDP, blocks=3, seed=1)
    played = ab.run(MDP, losses, learner, episodes=400, seed=2, checkpoints=[1, 50, 400])
    assert one.regret[-1] == pytest.approx(played.regret[0, -1], rel=1e-8)
    np.testing.assert_array_equal(one.episodes, [1, 50, 400])


def test_another_replica_is_another_run() -> None:
    assert found("po-known", replica=1).regret[-1] != found("po-known").regret[-1]


@pytest.mark.equation("LM25-good-events-known", "LM25-good-events-unknown")
@pytest.mark.parametrize("learner", ["po-known", "po-unknown"])
def test_lemmas_and_events_hold(learner: str) -> None:
    """With δ = 5 % one run could miss them by bad luck; this seeded one does not, and margins are wide."""
    one = found(learner, episodes=1000)
    assert [event.name for event in one.good_events] == ["G₁", "G₂", "G₃", "G₄", "G₅"][: len(one.good_events)]
    assert len(one.good_events) == (3 if learner == "po-known" else 5)
    for event in one.good_events:
        assert event.holds, event.name
    for name, values in one.parts.items():
        assert (values <= one.bounds[name]).all(), name
    assert (one.second_moment <= 1).all()
    assert (one.first_moment < 1).all()
    text = one.table()
    assert "BIAS₁" in text
    assert "holds" in text
    if learner == "po-unknown":
        assert one.coverage[-1] == 1.0
        assert "100.0 % of the episodes" in text


@pytest.mark.equation("LM25-sum-of-widths")
def test_widths_shrink_with_the_radius() -> None:
    wide, narrow = (
        found(ab.learners.make("po-unknown", step_size=0.01, radius_scale=scale)).widths[-1] for scale in (1.0, 0.01)
    )
    assert 0 < narrow < 0.5 * wide


def test_a_set_that_is_too_narrow_is_noticed() -> None:
    """With no radius the set is the empirical distribution, which is hardly ever the true one, and Û overestimates."""
    one = found(ab.learners.make("po-unknown", step_size=0.01, radius_scale=0.0, exploration=1e-6))
    assert one.coverage[-1] < 0.1
    assert one.first_moment.max() > 1


def test_the_mean_of_the_estimate_is_that_of_the_lemma() -> None:
    """At the first episode the policy is uniform: E[Û] / U = μ / (μ + γ), greatest where μ_h(s) is."""
    one = found("po-known", episodes=50, checkpoints=[1, 50])
    gamma = ab.learners.make("po-known").resolved(ab.Problem(H=3, S=3, A=2, episodes=50, transition=MDP))["exploration"]
    reach = naive.occupancy(MDP.transition, np.full((3, 3, 2), 0.5), MDP.initial)
    assert one.first_moment[0] == pytest.approx((reach / 2 / (reach / 2 + gamma)).max(), rel=1e-12)


def test_broken_conditions_are_told() -> None:
    """A step too large for the lemmas, or a bonus that is not the paper's: their bounds promise nothing."""
    assert found("po-known", episodes=50).caveats == []
    told = found(ab.learners.make("po-unknown", step_size=0.5, bonus_scale=0.3, radius_scale=0.1), episodes=50)
    assert len(told.caveats) == 3
    assert told.table().count("the bounds promise nothing here") == 3


@pytest.mark.parametrize("learner", ["po-known", "po-unknown"])
def test_the_regret_is_not_computed_from_the_parts(learner: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a wrong U the parts no longer add up, and the gap says so."""
    assert found(learner, episodes=50).gap < 1e-12
    right = ab.planning.trajectory_values
    monkeypatch.setattr(ab.planning, "trajectory_values", lambda *given: 1.001 * right(*given))
    assert found(learner, episodes=50).gap > 1e-6


def test_an_event_that_fails_says_so() -> None:
    event = GoodEvent(name="G", meaning="", value=np.array([0.5, 3.0]), bound=np.array([1.0, 2.0]))
    assert not event.holds
    assert event.margin == -0.5


@pytest.mark.equation("LM25-bonus-optimism")
def test_the_bonus_is_a_value_difference() -> None:
    """BONUS = Σ μ^k b - Σ μ* b with known dynamics; with unknown ones optimism adds to it, here for certain."""
    known = found("po-known", episodes=50, checkpoints=[1, 20, 50])
    np.testing.assert_allclose(known.parts["bonus"], known.bonus_optimism, rtol=1e-10, atol=1e-10)
    assert (known.bonus_optimism < known.bounds["bonus"]).all()
    unknown = found(ab.learners.make("po-unknown", step_size=0.01, radius_scale=0.2), checkpoints=[1, 50, 400])
    assert unknown.coverage[-1] == 1.0
    assert (unknown.parts["bonus"] < unknown.bonus_optimism).all()


@pytest.mark.parametrize("initial", [0, [0.5, 0.0, 0.5]])
def test_second_moments_match_enumeration(initial: Any) -> None:
    rng = np.random.default_rng(0)
    H, S, A = 3, 3, 2
    transition = rng.dirichlet(np.ones(S), (H, S, A))
    mdp = ab.TabularMDP(transition, initial_state=initial)
    policy, loss = rng.dirichlet(np.ones(A), (H, S)), rng.random((H, S, A))
    weight, square = np.zeros((H, S, A)), np.zeros((H, S, A))
    for trajectory in naive.trajectories(H, S, A):
        chance = naive.probability(trajectory, transition, policy, mdp.initial)
        total = naive.total(trajectory, loss)
        for h, (s, a) in enumerate(trajectory):
            weight[h, s, a] += chance
            square[h, s, a] += chance * total**2
    reached = weight > 0
    ours = second_moment_of_totals(mdp, policy, loss)
    np.testing.assert_allclose(ours[reached], square[reached] / weight[reached], rtol=1e-11)


def test_plots(tmp_path: Any) -> None:
    found("po-known", episodes=30).plot(tmp_path / "parts.png")
    assert (tmp_path / "parts.png").stat().st_size > 5000


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"learner": "uniform"}, "uniform has no such parts"),
        ({"episodes": 0}, "episodes must be at least 1"),
        ({"seed": -1}, "seed must be"),
        ({"replica": -1}, "replica must be"),
        ({"replica": 0.5}, "replica must be"),
        ({"mdp": ab.TabularMDP.sparse([[[0]]], [[[1.0]]], 2)}, "mdp must be a dense"),
    ],
)
def test_refusals(arguments: dict[str, Any], message: str) -> None:
    given = {"mdp": MDP, "losses": ab.adversaries.make("fixed", MDP), "learner": "po-known", "episodes": 5} | arguments
    with pytest.raises(InvalidInputError, match=message):
        ab.diagnose(given.pop("mdp"), given.pop("losses"), given.pop("learner"), **given)
