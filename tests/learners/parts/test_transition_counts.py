"""aggbandit.learners.parts.transition_counts: what is counted, and what frequencies follow."""

import numpy as np
import pytest

from aggbandit.learners.parts import transition_counts


@pytest.mark.equation("LM25-counts")
def test_each_transition_but_the_last_is_counted_where_it_happened():
    counts = transition_counts.none_yet(3, 4, 2)
    transition_counts.add_trajectory(counts, np.array([0, 3, 1]), np.array([1, 0, 1]))
    transition_counts.add_trajectory(counts, np.array([0, 3, 2]), np.array([1, 0, 0]))
    expected = np.zeros((3, 4, 2, 4))
    expected[0, 0, 1, 3] = 2
    expected[1, 3, 0, 1] = 1
    expected[1, 3, 0, 2] = 1
    np.testing.assert_array_equal(counts, expected)


@pytest.mark.equation("LM25-counts")
def test_an_episode_of_one_step_has_no_transition():
    counts = transition_counts.none_yet(1, 2, 2)
    transition_counts.add_trajectory(counts, np.array([1]), np.array([0]))
    assert counts.sum() == 0


@pytest.mark.equation("LM25-p-bar")
def test_frequencies_are_shares_and_zero_where_nothing_was_seen():
    counts = transition_counts.none_yet(2, 3, 1)
    counts[0, 0, 0] = [1, 0, 3]
    counts[0, 2, 0] = [0, 1, 0]
    shares = transition_counts.empirical(counts)
    np.testing.assert_array_equal(shares[0, 0, 0], [0.25, 0, 0.75])
    np.testing.assert_array_equal(shares[0, 2, 0], [0, 1, 0])
    assert shares[0, 1].sum() == 0
    assert shares[1].sum() == 0
