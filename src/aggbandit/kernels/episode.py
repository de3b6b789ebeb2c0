"""One sampled episode, and the sums that every engine keeps.

Draws are those of `kernels.philox`, stream 0: action first, then next state, both by inverse CDF.
"""

from numba import njit

from aggbandit.kernels.philox import BEFORE_FIRST_STEP, uniforms


@njit(cache=True, inline="always")
def first_above(u, cumulative):
    """How many entries are at most u: the index drawn, as the last possible ones are +inf."""
    j = 0
    while cumulative[j] <= u:
        j += 1
    return j


@njit(cache=True, inline="always")
def draw_action(u, policy_a):
    """The first a with u < π(0) + ... + π(a); beyond the rounded last sum, the last a with π(a) > 0."""
    total = 0.0
    last = 0
    for a in range(policy_a.shape[0]):
        p = policy_a[a]
        if p > 0.0:
            last = a
            total += p
            if u < total:
                return a
    return last


@njit(cache=True, nogil=True)
def sample_dense(
    cumulative_tsas, initial_cumulative_s, policy_hsa, replica, episode, seed, out_states_h, out_actions_h
):
    """Play one episode; transitions given as cumulative rows over all next states."""
    H = policy_hsa.shape[0]
    stationary = cumulative_tsas.shape[0] == 1
    u, v = uniforms(replica, episode, BEFORE_FIRST_STEP, 0, seed)
    s = first_above(v, initial_cumulative_s)
    for h in range(H):
        u, v = uniforms(replica, episode, h, 0, seed)
        a = draw_action(u, policy_hsa[h, s])
        out_states_h[h] = s
        out_actions_h[h] = a
        if h + 1 < H:
            s = first_above(v, cumulative_tsas[0 if stationary else h, s, a])


@njit(cache=True, nogil=True)
def sample_sparse(
    next_tsan, cumulative_tsan, initial_cumulative_s, policy_hsa, replica, episode, seed, out_states_h, out_actions_h
):
    """Play one episode; transitions given as n successors a row and their cumulative probabilities."""
    H = policy_hsa.shape[0]
    stationary = cumulative_tsan.shape[0] == 1
    u, v = uniforms(replica, episode, BEFORE_FIRST_STEP, 0, seed)
    s = first_above(v, initial_cumulative_s)
    for h in range(H):
        u, v = uniforms(replica, episode, h, 0, seed)
        a = draw_action(u, policy_hsa[h, s])
        out_states_h[h] = s
        out_actions_h[h] = a
        if h + 1 < H:
            t = 0 if stationary else h
            s = next_tsan[t, s, a, first_above(v, cumulative_tsan[t, s, a])]


@njit(cache=True, nogil=True)
def add_compensated(x, sum_and_rest):
    """Neumaier's sum: `sum_and_rest[0] + sum_and_rest[1]` is the total to about one rounding, however long."""
    s = sum_and_rest[0]
    t = s + x
    if abs(s) >= abs(x):
        sum_and_rest[1] += (s - t) + x
    else:
        sum_and_rest[1] += (x - t) + s
    sum_and_rest[0] = t


@njit(cache=True, nogil=True)
def add_rows(values_m, row_n, sum_and_rest):
    """Add the value of each episode's row, episode by episode, so that the cut into blocks leaves no trace."""
    for k in range(row_n.shape[0]):
        add_compensated(values_m[row_n[k]], sum_and_rest)


@njit(cache=True, nogil=True)
def accumulate_tables(tables_mx, row_n, current_x, count, sum_x, rest_x):
    """Sum the tables of consecutive episodes; returns the count of the table now in `current_x`.

    Equal neighbours are counted, and multiplied in when another table comes: the sum of K equal tables is rounded
    once, and what is added when does not depend on how the episodes were cut into blocks.
    """
    X = current_x.shape[0]
    k = 0
    n = row_n.shape[0]
    while k < n:
        row = row_n[k]
        run = 1
        while k + run < n and row_n[k + run] == row:
            run += 1
        same = count > 0
        if same:
            for x in range(X):
                if tables_mx[row, x] != current_x[x]:
                    same = False
                    break
        if not same:
            flush_tables(current_x, count, sum_x, rest_x)
            for x in range(X):
                current_x[x] = tables_mx[row, x]
            count = 0
        count += run
        k += run
    return count


@njit(cache=True, nogil=True)
def flush_tables(current_x, count, sum_x, rest_x):
    """Add `count` times the current table to the compensated sum."""
    if count > 0:
        for x in range(current_x.shape[0]):
            y = count * current_x[x]
            s = sum_x[x]
            t = s + y
            if abs(s) >= abs(y):
                rest_x[x] += (s - t) + y
            else:
                rest_x[x] += (y - t) + s
            sum_x[x] = t
