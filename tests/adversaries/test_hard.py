"""The hard losses: their numbers, their noise, and the formulas that Theorem 3 rests on."""

from math import log, sqrt
from typing import Any

import numpy as np
import pytest

import aggbandit as ab
from aggbandit.adversaries import hard
from aggbandit.errors import InvalidInputError

H, S, A, K = 4, 3, 2, 2000


def mdp_and_losses(scale: float = 1.0, **arguments: Any) -> tuple[ab.TabularMDP, hard.HardLosses]:
    mdp = ab.instances.make("lower-bound", states=S, actions=A, horizon=H)
    losses = ab.adversaries.make("lower-bound", mdp, scale=scale, **arguments)
    assert isinstance(losses, hard.HardLosses)
    return mdp, losses.for_episodes(K)


def test_spread_and_gap_are_the_formulas() -> None:
    spread, gap = hard.lower_bound_instance(H=H, S=S, A=A, K=K, scale=2.0)
    assert spread == pytest.approx((192 + 96 * log(K)) ** -0.5, rel=1e-14)
    assert gap == pytest.approx(2 * spread * (H - 1) * sqrt(A * S / (4 * K)), rel=1e-14)
    spread, gap = hard.multitask_instance(tasks=3, A=2, K=500)
    assert gap == pytest.approx(spread * 3 * sqrt(2 / 2000), rel=1e-14)


def test_losses_are_the_instance() -> None:
    """Step 1 is free; later each entry is 1/2 less the gap plus one Gaussian an episode; nothing is clipped."""
    _, losses = mdp_and_losses(seed=5)
    tables = losses.tables(0, K)
    spread, gap = losses.instance()
    assert (tables[:, 0] == 0).all()
    best = losses.best_actions[1:, :, None] == np.arange(A)
    noise = tables[:, 1:] - (0.5 - gap * best)
    first = noise[:, :1, :1, :1]
    np.testing.assert_allclose(noise, np.broadcast_to(first, noise.shape), atol=1e-15)
    z = first.ravel() / spread
    # three standard errors of a mean and of a standard deviation over K draws
    assert abs(z.mean()) < 3 / sqrt(K)
    assert abs(z.std() - 1) < 3 / sqrt(2 * K)
    assert tables.min() >= 0
    assert tables[:, 1:].max() < 1


def test_the_total_has_the_variance_that_hides_the_gap() -> None:
    """Var(L^k | policy) = (H-1)² σ² with shared noise, (H-1) σ² with the control's."""
    for noise, factor in (("shared", (H - 1) ** 2), ("independent", H - 1)):
        _, losses = mdp_and_losses(noise=noise, seed=1)
        tables = losses.tables(0, K)
        spread, _ = losses.instance()
        totals = tables[:, :, 0, 0].sum(axis=1)
        # three standard errors of a variance over K draws
        assert totals.var() == pytest.approx(factor * spread**2, rel=3 * sqrt(2 / K))


def test_the_control_has_a_smaller_gap() -> None:
    _, shared = mdp_and_losses()
    _, control = mdp_and_losses(noise="independent")
    assert control.instance().gap == pytest.approx(shared.instance().gap / sqrt(H - 1))


def test_uniform_regret_is_the_formula() -> None:
    """ε (H-1) K (1 - 1/A), exactly: the shared noise cancels between learner and comparator."""
    mdp, losses = mdp_and_losses(scale=3.0, seed=2)
    result = ab.run(mdp, losses, "uniform", episodes=K, checkpoints=1)
    expected = ab.theory.uniform_regret_on_the_hard_instance(gap=losses.instance().gap, H=H, A=A, K=K)
    assert result.regret[0, -1] == pytest.approx(expected, rel=1e-9)
    np.testing.assert_array_equal(result.hindsight_policy[1:], losses.best_actions[1:])


def test_multitask_uniform_regret() -> None:
    mdp = ab.instances.make("multitask", tasks=3, actions=2)
    losses = ab.adversaries.make("multitask", mdp, seed=1).for_episodes(400)
    result = ab.run(mdp, losses, "uniform", episodes=400, checkpoints=1)
    assert result.regret[0, -1] == pytest.approx(losses.instance().gap * 3 * 400 * 0.5, rel=1e-9)


def test_best_actions_are_uniform_over_seeds() -> None:
    mdp = ab.instances.make("lower-bound", states=5, actions=4, horizon=6)
    counts = np.zeros(4)
    for seed in range(40):
        counts += np.bincount(ab.adversaries.make("lower-bound", mdp, seed=seed).best_actions.ravel(), minlength=4)
    n = counts.sum()
    assert (np.abs(counts / n - 0.25) < 4 * sqrt(0.25 * 0.75 / n)).all()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: hard.lower_bound_instance(H=4, S=3, A=2, K=53), r"needs K >= S A \(H - 1\)² = 54, but K = 53"),
        (lambda: hard.multitask_instance(tasks=3, A=2, K=17), "needs K >= k² A = 18, but K = 17"),
        (lambda: hard.lower_bound_instance(H=4, S=3, A=2, K=54, scale=60), "must stay at most 1/4"),
        (lambda: mdp_and_losses(noise="pink"), "noise must be one of shared, independent, but is 'pink'"),
        (lambda: mdp_and_losses(noise=np.array([])), "noise must be one of shared, independent, but is array"),
        (lambda: mdp_and_losses(scale=0.0), "scale must be a finite number, greater than 0"),
        (
            lambda: ab.adversaries.make("multitask", ab.instances.make("lower-bound")),
            "The multi-task bandit has one state, but the MDP has S = 3",
        ),
        (
            lambda: ab.adversaries.make("lower-bound", ab.instances.make("lower-bound")).tables(0, 1),
            r"call for_episodes\(K\) first",
        ),
    ],
)
def test_refusals(call: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        call()
