"""Rows of transition tables, by the definitions, one number at a time."""


def dense_from_successors(next_states, probabilities, S):
    """p(s' | s, a) as nested lists (S, A, S) from (S, A, n) lists; a successor that is named twice gets the sum."""
    dense = [[[0.0] * S for _ in of_state] for of_state in next_states]
    for s, of_state in enumerate(next_states):
        for a, successors in enumerate(of_state):
            for i, s_next in enumerate(successors):
                dense[s][a][s_next] += probabilities[s][a][i]
    return dense


def first_above(row, u):
    """The first index whose cumulative sum exceeds u; beyond the rounded last sum the last positive one."""
    total, last = 0.0, None
    for j, p in enumerate(row):
        total += p
        if p > 0:
            last = j
            if u < total:
                return j
    return last
