import numpy as np
import pytest

from aggbandit.learners.parts.categorical import sample


@pytest.mark.parametrize("seed", [0, 1])
def test_draws_are_the_inverse_of_the_cumulative_law(seed):
    law = np.random.default_rng(seed).dirichlet(np.ones(5))
    law[[0, 4]] = 0.0
    law /= law.sum()
    edges = np.cumsum(law)
    for i in (1, 2, 3):
        assert sample(law, edges[i] - 1e-9) == i
        assert sample(law, edges[i - 1] + 1e-9) == i
    assert sample(law, 0.0) == 1
    assert sample(law, 1.0 - 2.0**-53) == 3
