import numpy as np

from aggbandit.learners.parts import epochs


def test_an_epoch_begins_when_a_count_has_doubled():
    state = epochs.first(2, 1, 2)
    begun = []
    for k in range(1, 40):
        if epochs.add_trajectory(state, np.zeros(2, int), np.zeros(2, int)):
            begun.append(k)
    assert begun == [1, 2, 4, 8, 16, 32]
    # another action has a count of its own, and begins again at 1
    assert epochs.add_trajectory(state, np.zeros(2, int), np.array([1, 0]))
    # the last step leads nowhere: what is done there never begins an epoch
    assert not epochs.add_trajectory(epochs.first(1, 1, 2), np.zeros(1, int), np.zeros(1, int))


def test_there_are_few():
    # at most one a place and a doubling: H S A (1 + log2 K)
    rng = np.random.default_rng(0)
    H, S, A, K = 3, 3, 2, 3000
    state = epochs.first(H, S, A)
    number = sum(epochs.add_trajectory(state, rng.integers(S, size=H), rng.integers(A, size=H)) for _ in range(K))
    assert 10 <= number <= (H - 1) * S * A * (1 + np.log2(K))
    assert state.counts_hsas.sum() == (H - 1) * K
