"""Theorem 1 at work: regret grows as the root of K, each K with its own step size.

Five seeded random instances with a fixed loss table, H, S, A = 3, 4, 2.  Regret is exact, in the mean of 32 replicas,
all seeded.  The band tells 1/2 from 2/3; the uniform policy, whose regret is linear, must fall out of it.

Measured once over ten instances (seeds 0 to 9): slopes of 0.51, 0.54, 0.53, 0.51, 0.59, 0.47, 0.51,
0.52, 0.60, 0.53 with the main text's step, and 0.48, 0.55, 0.42, 0.52, 0.64, 0.36, 0.45, 0.50, 0.67, 0.53 with the
appendix's, which is larger: on some instances it is past its asymptote, on others further from it.
"""

import numpy as np
import pytest

import aggbandit as ab

KS = (10**5, 10**6)
LOW, HIGH = 0.45, 0.60


def slope(seed: int, learner: str, replicas: int, **arguments: str) -> float:
    mdp = ab.instances.make("random", states=4, actions=2, horizon=3, seed=seed)
    losses = ab.adversaries.make("fixed", mdp, table="random", seed=seed)
    finals = [
        ab.run(mdp, losses, ab.learners.make(learner, **arguments), episodes=K, replicas=replicas, checkpoints=1)
        .regret[:, -1]
        .mean()
        for K in KS
    ]
    return float(np.log10(finals[1] / finals[0]))


@pytest.mark.slow
@pytest.mark.equation("LM25-theorem-1")
@pytest.mark.parametrize("seed", range(5))
def test_regret_grows_as_the_root_of_the_episodes(seed: int) -> None:
    found = slope(seed, "po-known", 32, step_size="main")
    assert LOW <= found <= HIGH, f"slope {found:.3f}"


def test_the_band_refuses_linear_regret() -> None:
    found = slope(0, "uniform", 1)
    assert found == pytest.approx(1.0, abs=1e-9)
    assert not LOW <= found <= HIGH
