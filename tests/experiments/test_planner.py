"""The planner: what it predicts is of the right size, and what it counts is all there is.

Times are not asserted against the clock alone: a run and its forecast share a busy machine, so the forecast is compared
with a run made right after it, within a factor of four (a factor of two is what an idle machine shows).
"""

import numpy as np
import pytest

import aggbandit as ab
from aggbandit.errors import InvalidInputError
from aggbandit.experiments import planner
from aggbandit.experiments.planner import forecast


@pytest.mark.parametrize(
    ("learner", "size", "replicas", "episodes"),
    [("po-known", (5, 5, 3), 16, 40_000), ("po-unknown", (4, 4, 2), 1, 4_000)],
)
def test_time(learner: str, size: tuple[int, int, int], replicas: int, episodes: int) -> None:
    H, S, A = size
    mdp = planner.random_mdp(H, S, A)
    losses = ab.adversaries.make("fixed", mdp, table="random", seed=0)
    told = forecast(learner, H=H, S=S, A=A, episodes=episodes, replicas=replicas, trial_seconds=0.15)
    taken = ab.run(mdp, losses, learner, episodes=episodes, replicas=replicas, threads=1, checkpoints=1).seconds
    assert taken / 4 < told.seconds < taken * 4
    assert told.episodes_per_second == pytest.approx(episodes * replicas / told.seconds)


def test_memory_counts_replicas() -> None:
    few, many = (forecast("po-known", H=10, S=30, A=5, episodes=100, replicas=n, trial_seconds=0.01) for n in (8, 1024))
    at_least = (1024 - 8) * 10 * 30 * 5 * 8  # one array (H, S, A) for each replica more
    assert many.peak_bytes - few.peak_bytes > at_least


def test_sparse_and_stationary_models() -> None:
    sparse = planner.random_mdp(4, 50, 2, successors=3)
    assert sparse.is_sparse
    assert sparse.next_states.shape == (1, 50, 2, 3)
    assert planner.random_mdp(4, 5, 2, stationary=True).is_stationary
    assert forecast("po-known", H=4, S=50, A=2, episodes=50, successors=3, trial_seconds=0.01).seconds > 0


def test_sets_bite_when_the_radius_says_so() -> None:
    # a trial that ends long before the sets bite, after some 9 000 episodes, however fast the machine
    told = forecast("po-unknown", H=4, S=10, A=4, episodes=10**7, trial_seconds=0.0005)
    assert any("begin to bite" in note for note in told.notes)
    narrow = ab.learners.make("po-unknown", radius_scale=0.0)
    assert not any("bite" in n for n in forecast(narrow, H=3, S=2, A=2, episodes=100, trial_seconds=0.05).notes)


def test_arrays_are_counted_once() -> None:
    big = np.zeros(1000)
    assert planner._array_bytes({"a": big, "b": [big[:10], (big,)], "c": 3.0}) == 8000
    assert planner._array_bytes([np.zeros(10), np.zeros(5)]) == 120


def test_refusals() -> None:
    with pytest.raises(InvalidInputError, match="replicas must be at least 1"):
        forecast("po-known", H=2, S=2, A=2, episodes=10, replicas=0)
    with pytest.raises(InvalidInputError, match="successors must be between 1 and 2"):
        forecast("po-known", H=2, S=2, A=2, episodes=10, successors=3)
