// Algorithm 2 [eq:LM25-alg-2] for many replicas: a block of threads plays one replica, whose boxes are its own.
//
// As kernels.po_unknown: the least and the greatest occupancies of all (h, s) come out of one backward sweep whose
// columns are the targets of both signs.  A thread takes a column a step back: it sorts its S values in registers (a
// network of comparators, the state in the low bits of the mantissa) and fills every row (s, a) in that order,
//
//     max q · f = lower · f + rest f_1 - Σ_i (f_i - f_{i+1}) max(rest - slack_1 - ... - slack_i, 0)
//
// up to the row's depth, where its rest is spent whatever the order.  Steps whose boxes are all the whole simplex are
// answered at once.  A column that is zero from the start is not carried on.
//
// Sizes: H, S, A; T = 1 where all steps have the same transitions, else H; SUCCESSORS: see common.cuh; MEANS;
// BLOCK threads; MASK the low bits that hold a state; NETWORK the comparators; AT_... where things lie in shared memory,
// in numbers of type real.

#define STEPS (T == 1 ? 1 : H - 1)
#define WIDTH PADDED(S)
#define AT(h) (T == 1 ? 0 : (h))
#define ROWS (S * A)
#define MOVES (H > 1 ? H - 1 : 1)     // steps that have boxes
#define STRIDE (S | 1)                // of a row of slacks in shared memory: odd, so that rows fall on other banks
#define SLOTS (2 * S * MOVES)         // columns: (h, least or most, target state)
#define GROUPS (BLOCK / S)            // of threads that share the sums of a forward step
#define ROUNDING ((real)1e-15)        // a rest as small as this counts as spent
#define FLOOR ((real)LOWEST)          // a log probability below it is played as exp of it, and kept as it is

struct Arguments {
    const real* transitions;         // (STEPS, S, A, WIDTH): the world's, for sampling and the exact cost
    const real* cumulative;          // (STEPS, S, A, PADDED(OUTCOMES))
    const int* successors;           // (STEPS, S, A, SUCCESSORS)
    const real* initial;             // (S)
    const real* initial_cumulative;  // (S)
    const real* tables;              // (m, H, S, A)
    const real* means;               // (H, S, A)
    const int* rows;                 // (episodes): which table
    int* counts;                     // (replicas, MOVES, S, A, S')
    real* lower;                     // (replicas, MOVES, S, A, S')
    real* slack;                     // (replicas, MOVES, S, A, S'): upper ends less lower
    real* rest;                      // (replicas, MOVES, S, A): 1 less the sum of the lower ends
    int* depth;                      // (replicas, MOVES, S, A)
    int* boxes;                      // (replicas, MOVES, 2): rows that are not the whole simplex; with a lower end above 0
    real* log_weights;               // (replicas, H, S, A)
    real* policy;                    // (replicas, H, S, A)
    real* bounds;                    // (replicas, 3, H, S): least, most, Σ π B̂ of the latest update
    double* sums;                    // (replicas, 4)
    long long replicas, episodes, first_episode, first_replica;
    unsigned long long seed;
    double step_size, exploration, bonus_scale, log_term, radius_scale;
};

// ---------------------------------------------------------------------------------------------------- sorted columns

struct Column {
    real top;          // the greatest value
    real gap[S];       // from the i-th greatest to the next
    int state[S];      // whose value is the i-th greatest
};

__device__ __forceinline__ double tagged(double x, int state) {
    return __longlong_as_double((__double_as_longlong(x) & ~(long long)MASK) | state);
}

__device__ __forceinline__ void exchange(double& x, double& y) {
    const bool turn = x < y;
    const double greater = turn ? y : x, lesser = turn ? x : y;
    x = greater;
    y = lesser;
}

__device__ __forceinline__ void exchange_rising(real& x, real& y) {
    const bool turn = x > y;
    const real lesser = turn ? y : x, greater = turn ? x : y;
    x = lesser;
    y = greater;
}

__device__ __forceinline__ Column sorted(const real (&f)[S]) {
    double key[S];
#pragma unroll
    for (int t = 0; t < S; ++t) key[t] = tagged((double)f[t], t);
#define COMPARE(i, j) exchange(key[i], key[j]);
    NETWORK
#undef COMPARE
    Column column;
    column.top = (real)key[0];
#pragma unroll
    for (int i = 0; i < S; ++i) {
        column.state[i] = (int)(__double_as_longlong(key[i]) & MASK);
        column.gap[i] = i + 1 < S ? (real)(key[i] - key[i + 1 < S ? i + 1 : i]) : (real)0;
    }
    return column;
}

// rest f_1 - Σ_i gap_i max(rest - slack_1 - ... - slack_i, 0)
__device__ __forceinline__ real filled(const Column& column, const real* slack, real rest, int depth) {
    real left = rest, x = column.top * rest;
#pragma unroll
    for (int i = 0; i < S - 1; ++i) {
        if (i + 1 >= depth) break;
        left -= slack[column.state[i]];
        if (left > 0) x = fused(-column.gap[i], left, x);
    }
    return x;
}

// -------------------------------------------------------------------------------------------------------- one box

// Rebuild the Bernstein box of one row from its counts.  [eq:LM25-confidence-set]
__device__ __noinline__ void rebuild_box(
    const int* counts, int n, real log_term, real radius_scale, real* lower_row, real* slack_row, real* out_rest,
    int* out_depth, int* boxes
) {
    real slack[S];
    real held = 0;
    bool was_box = false, was_raised = false, is_box = false, is_raised = false;
    const real visits = (real)n, ratio = log_term / visits;
#pragma unroll
    for (int t = 0; t < S; ++t) {
        const real mean = (real)counts[t] / visits;
        const real radius = radius_scale * ((real)4 * sqrt(mean * ratio) + (real)10 * ratio);
        const real lower = greater_of(0, mean - radius);
        const real upper = lesser_of(1, mean + radius);
        was_raised |= lower_row[t] > 0;
        was_box |= slack_row[t] < 1;
        lower_row[t] = lower;
        slack_row[t] = slack[t] = upper - lower;
        is_raised |= lower > 0;
        is_box |= slack[t] < 1;
        held += lower;
    }
    const real rest = greater_of(0, 1 - held);
#define COMPARE(i, j) exchange_rising(slack[i], slack[j]);
    NETWORK  // the least slacks first: no order spends the rest later
#undef COMPARE
    int depth = 1;
    real spent = slack[0];
#pragma unroll
    for (int i = 1; i < S; ++i) {
        if (spent >= rest - ROUNDING) break;
        spent += slack[i];
        ++depth;
    }
    *out_rest = rest;
    *out_depth = depth;
    boxes[0] += (int)is_box - (int)was_box;
    boxes[1] += (int)is_raised - (int)was_raised;
}

// ------------------------------------------------------------------------------------------------------------ play

// `first_above` by a whole warp.
template <int ENTRIES>
__device__ __forceinline__ int drawn_by_warp(real v, const real* cumulative, int lane) {
    int drawn = 0;
    for (int first = 0; first < ENTRIES; first += 32) {
        const int i = first + lane;
        drawn += __popc(__ballot_sync(ALL_LANES, i < ENTRIES && cumulative[i < ENTRIES ? i : 0] <= v));
    }
    return drawn;
}

extern "C" __global__ void __launch_bounds__(BLOCK) play(const Arguments* arguments) {
    SHARED_MEMORY
    const Arguments my = *arguments;
    real* shared = (real*)shared_memory;
    real* policy = shared + AT_POLICY;            // (H, ROWS)
    real* log_weights = shared + AT_LOG_WEIGHTS;  // (H, ROWS)
    real* least = shared + AT_LEAST;              // (H, S)
    real* most = shared + AT_MOST;                // (H, S)
    real* value = shared + AT_VALUE;              // (H, S)
    real* columns = shared + AT_COLUMNS;          // (S, SLOTS)
    real* slack = shared + AT_SLACK;              // (ROWS, STRIDE), of the step at hand, as what follows
    real* low = shared + AT_LOW;                  // (S, S): Σ_a π lower
    real* rest = shared + AT_REST;                // (ROWS)
    real* all_slack = shared + AT_ALL_SLACK;      // (ROWS)
    real* work = shared + AT_WORK;                // (ROWS)
    real* term = shared + AT_TERM;                // (ROWS)
    real* reach = shared + AT_REACH;              // (S)
    real* partial = shared + AT_PARTIAL;          // (GROUPS, S), or (BLOCK / 32, 2)
    real* draws = shared + AT_DRAWS;              // (H + 1, 2)
    real* total_at = shared + AT_TOTAL;           // (1)
    int* depth = (int*)(shared + AT_DEPTH);       // (ROWS)
    int* active = (int*)(shared + AT_ACTIVE);     // (SLOTS): the columns carried on
    int* boxes = (int*)(shared + AT_BOXES);       // (MOVES, 2)
    int* visited = (int*)(shared + AT_VISITED);   // (H)
    int* nonzero = (int*)(shared + AT_NONZERO);   // (2 S)
    int* count_at = (int*)(shared + AT_COUNT);    // (1)

    const int thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
    const long long r = blockIdx.x;
    int* my_counts = my.counts + r * (MOVES * ROWS * S);
    real* my_lower = my.lower + r * (MOVES * ROWS * S);
    real* my_slack = my.slack + r * (MOVES * ROWS * S);
    real* my_rest = my.rest + r * (MOVES * ROWS);
    int* my_depth = my.depth + r * (MOVES * ROWS);
    const real step_size = (real)my.step_size, exploration = (real)my.exploration;
    const real log_term = (real)my.log_term, radius_scale = (real)my.radius_scale;
    double sums[4];
    for (int i = 0; i < 4; ++i) sums[i] = my.sums[4 * r + i];
    for (int i = thread; i < H * ROWS; i += BLOCK) {
        policy[i] = my.policy[r * (H * ROWS) + i];
        log_weights[i] = my.log_weights[r * (H * ROWS) + i];
    }
    for (int i = thread; i < 2 * MOVES; i += BLOCK) boxes[i] = my.boxes[r * (2 * MOVES) + i];
    __syncthreads();

    for (long long k = 0; k < my.episodes; ++k) {
        const real* loss = my.tables + (long long)my.rows[k] * (H * ROWS);

        // the policy's expected loss under the true dynamics
        for (int s = thread; s < S; s += BLOCK) reach[s] = my.initial[s];
        real cost = 0, mean_cost = 0;
        __syncthreads();
        for (int h = 0; h < H; ++h) {
            for (int i = thread; i < ROWS; i += BLOCK) {
                const real w = reach[i / A] * policy[h * ROWS + i];
                work[i] = w;
                cost = fused(w, loss[h * ROWS + i], cost);
                if (MEANS) mean_cost = fused(w, my.means[h * ROWS + i], mean_cost);
            }
            __syncthreads();
            if (h + 1 < H) {
                const real* table = my.transitions + (long long)AT(h) * (ROWS * WIDTH);
                const int group = thread / S, t = thread % S;
                if (group < GROUPS) {
                    real x = 0;
#pragma unroll 4
                    for (int i = group; i < ROWS; i += GROUPS) x = fused(work[i], table[i * WIDTH + t], x);
                    partial[group * S + t] = x;
                }
                __syncthreads();
                if (thread < S) {
                    real x = 0;
                    for (int g = 0; g < GROUPS; ++g) x += partial[g * S + thread];
                    reach[thread] = x;
                }
                __syncthreads();
            }
        }
        for (int offset = 16; offset > 0; offset /= 2) {
            cost += __shfl_xor_sync(ALL_LANES, cost, offset);
            if (MEANS) mean_cost += __shfl_xor_sync(ALL_LANES, mean_cost, offset);
        }
        if (lane == 0) {
            partial[2 * warp] = cost;
            partial[2 * warp + 1] = mean_cost;
        }

        // one episode, by the first warp: all lanes know where it is
        const unsigned episode = (unsigned)(my.first_episode + k), replica = (unsigned)(my.first_replica + r);
        for (int h = thread; h <= H; h += BLOCK) {
            const Words words = philox(replica, episode, h == H ? BEFORE_FIRST_STEP : (unsigned)h, 0, my.seed);
            draws[2 * h] = unit(words.x0, words.x1);
            draws[2 * h + 1] = unit(words.x2, words.x3);
        }
        __syncthreads();
        if (warp == 0) {
            if (lane == 0) {
                double spent = 0, mean_spent = 0;
                for (int w = 0; w < BLOCK / 32; ++w) {
                    spent += partial[2 * w];
                    mean_spent += partial[2 * w + 1];
                }
                add_compensated(spent, sums);
                if (MEANS) add_compensated(mean_spent, sums + 2);
            }
            real total = 0;
            int s = drawn_by_warp<S>(draws[2 * H + 1], my.initial_cumulative, lane);
            for (int h = 0; h < H; ++h) {
                real p[A];
#pragma unroll
                for (int a = 0; a < A; ++a) p[a] = policy[h * ROWS + s * A + a];
                const int a = draw_action(draws[2 * h], p);
                if (lane == 0) visited[h] = s * A + a;
                total += loss[h * ROWS + s * A + a];
                if (h + 1 < H) {
                    const int row = AT(h) * ROWS + s * A + a;
                    const real* sums_before = my.cumulative + row * (long long)PADDED(OUTCOMES);
                    s = state_of(drawn_by_warp<OUTCOMES>(draws[2 * h + 1], sums_before, lane), row, my.successors);
                }
            }
            if (lane == 0) *total_at = total;
        }

        // bounds: one sweep, from the last transition to the first; the other warps need not wait for the first's episode
        for (int s = thread; s < S; s += BLOCK) least[s] = most[s] = my.initial[s];
        int count = 0;
        for (int h = H - 2; h >= 0; --h) {
            if (boxes[2 * h] == 0) {  // whatever came after, its extreme is reached from everywhere
                for (int c = thread; c < count; c += BLOCK) {
                    const int slot = active[c], target = slot % S, sign = slot / S % 2, at = slot / (2 * S) + 1;
                    real x = columns[slot];
                    for (int t = 1; t < S; ++t) x = greater_of(x, columns[t * SLOTS + slot]);
                    (sign ? most : least)[at * S + target] = lesser_of(1, greater_of(0, sign ? x : -x));
                }
                for (int s = thread; s < S; s += BLOCK) {
                    most[(h + 1) * S + s] = 1;
                    least[(h + 1) * S + s] = S == 1;
                }
                count = 0;  // no barrier: what a later step writes before its own, nobody reads here
                continue;
            }
            const bool raised = boxes[2 * h + 1] > 0;
            for (int i = thread; i < ROWS * S; i += BLOCK) slack[i / S * STRIDE + i % S] = my_slack[h * (ROWS * S) + i];
            for (int i = thread; i < ROWS; i += BLOCK) {
                rest[i] = my_rest[h * ROWS + i];
                depth[i] = my_depth[h * ROWS + i];
            }
            for (int i = thread; i < S * S; i += BLOCK) {
                real x = 0;
                if (raised)
                    for (int a = 0; a < A; ++a) {
                        const int row = i / S * A + a;
                        x = fused(policy[h * ROWS + row], my_lower[(h * ROWS + row) * S + i % S], x);
                    }
                low[i] = x;
            }
            __syncthreads();
            for (int i = thread; i < ROWS; i += BLOCK) {
                real x = 0;
                for (int t = 0; t < S; ++t) x += slack[i * STRIDE + t];
                all_slack[i] = x;
            }
            for (int c = thread; c < count; c += BLOCK) {
                real* own = columns + active[c];
                real f[S];
#pragma unroll
                for (int t = 0; t < S; ++t) f[t] = own[t * SLOTS];
                const Column column = sorted(f);
#pragma unroll 1
                for (int s = 0; s < S; ++s) {
                    if (h == 0 && my.initial[s] == 0) continue;
                    real x = 0;
                    if (raised) {
#pragma unroll
                        for (int t = 0; t < S; ++t) x = fused(low[s * S + t], f[t], x);
                    }
#pragma unroll 1
                    for (int i = s * A; i < (s + 1) * A; ++i)
                        x = fused(policy[h * ROWS + i], filled(column, slack + i * STRIDE, rest[i], depth[i]), x);
                    own[s * SLOTS] = x;
                }
            }
            __syncthreads();
            // the targets of step h + 1, one step back in closed form
            for (int j = thread; j < 2 * S; j += BLOCK) {
                const int target = j % S;
                const bool upper = j >= S;
                real* own = columns + 2 * S * h + j;
                bool some = upper;
                for (int s = 0; s < S; ++s) {
                    if (h == 0 && my.initial[s] == 0) continue;
                    real x = low[s * S + target];
                    for (int i = s * A; i < (s + 1) * A; ++i) {
                        const real its = slack[i * STRIDE + target];
                        const real free = upper ? lesser_of(its, rest[i]) : greater_of(0, rest[i] - (all_slack[i] - its));
                        x = fused(policy[h * ROWS + i], free, x);
                    }
                    some = some || x != 0;
                    own[s * SLOTS] = upper ? x : -x;
                }
                nonzero[j] = some;
                if (!some) least[(h + 1) * S + target] = 0;
            }
            __syncthreads();
            if (warp == 0) {
                for (int first = 0; first < 2 * S; first += 32) {
                    const bool mine = first + lane < 2 * S && nonzero[first + lane < 2 * S ? first + lane : 0];
                    const unsigned who = __ballot_sync(ALL_LANES, mine);
                    if (mine) active[count + __popc(who & ((1u << lane) - 1u))] = 2 * S * h + first + lane;
                    count += __popc(who);
                }
                if (lane == 0) *count_at = count;
            }
            __syncthreads();
            count = *count_at;
        }
        for (int c = thread; c < count; c += BLOCK) {
            const int slot = active[c], target = slot % S, sign = slot / S % 2, at = slot / (2 * S) + 1;
            real x = 0;
            for (int s = 0; s < S; ++s)
                if (my.initial[s] != 0) x = fused(my.initial[s], columns[s * SLOTS + slot], x);
            (sign ? most : least)[at * S + target] = lesser_of(1, greater_of(0, sign ? x : -x));
        }
        __syncthreads();

        // estimator, bonus and policy, from the last step to the first
        // [eq:LM25-b-unknown] [eq:LM25-B-hat] [eq:LM25-U-hat-unknown]
        const real total = *total_at;
        for (int h = H - 1; h >= 0; --h) {
            const bool boxed = h + 1 < H && boxes[2 * h] > 0;
            real ahead = 0;
            if (boxed) {
                for (int i = thread; i < ROWS * S; i += BLOCK)
                    slack[i / S * STRIDE + i % S] = my_slack[h * (ROWS * S) + i];
                __syncthreads();
                real f[S];
#pragma unroll
                for (int t = 0; t < S; ++t) f[t] = value[(h + 1) * S + t];
                const Column column = sorted(f);
                const bool raised = boxes[2 * h + 1] > 0;
                for (int i = thread; i < ROWS; i += BLOCK) {
                    real x = filled(column, slack + i * STRIDE, my_rest[h * ROWS + i], my_depth[h * ROWS + i]);
                    if (raised) {
#pragma unroll
                        for (int t = 0; t < S; ++t) x = fused(f[t], my_lower[(h * ROWS + i) * S + t], x);
                    }
                    work[i] = x;
                }
            } else if (h + 1 < H) {
                ahead = value[(h + 1) * S];
                for (int t = 1; t < S; ++t) ahead = greater_of(ahead, value[(h + 1) * S + t]);
            }
            for (int i = thread; i < ROWS; i += BLOCK) {
                const real p = policy[h * ROWS + i], upper = most[h * S + i / A], width = upper - least[h * S + i / A];
                term[i] = divided(p * fused(width, p, (real)3 * exploration), fused(upper, p, exploration));
            }
            __syncthreads();
            const int seen = visited[h];
            for (int s = thread; s < S; s += BLOCK) {
                real* own_policy = policy + h * ROWS + s * A;
                real* own_log_weights = log_weights + h * ROWS + s * A;
                real local = 0, x = ahead;
#pragma unroll
                for (int a = 0; a < A; ++a) {
                    local += term[s * A + a];
                    if (boxed) x = fused(own_policy[a], work[s * A + a], x);
                }
                value[h * S + s] = fused((real)my.bonus_scale * H, local, x);
                const int chosen = seen - s * A;
                const bool here = chosen >= 0 && chosen < A;
                if (here) {
                    const real chance = most[h * S + s] * own_policy[chosen];
                    own_log_weights[chosen] -= divided(step_size * total, chance + exploration);
                }
                if (!boxed && !here) continue;  // a bonus that is the same for all actions moves nothing
                real weight[A], top = -(real)INFINITE, mass = 0;
#pragma unroll
                for (int a = 0; a < A; ++a) {
                    weight[a] = own_log_weights[a];
                    if (boxed) weight[a] = fused(step_size, work[s * A + a], weight[a]);
                    top = greater_of(top, weight[a]);
                }
#pragma unroll
                for (int a = 0; a < A; ++a) {
                    const real y = weight[a] - top;
                    own_log_weights[a] = y;
                    weight[a] = exp_bounded(greater_of(y, FLOOR));
                    mass += weight[a];
                }
#pragma unroll
                for (int a = 0; a < A; ++a) own_policy[a] = divided(weight[a], mass);
            }
            __syncthreads();
        }

        // what the episode showed of the dynamics: a thread a step
        for (int h = thread; h < H - 1; h += BLOCK) {
            const int row = h * ROWS + visited[h];
            int* its = my_counts + row * S;
            its[visited[h + 1] / A] += 1;
            int n = 0;
            for (int t = 0; t < S; ++t) n += its[t];
            if ((real)10 * log_term * radius_scale < (real)n)  // otherwise it is still the whole simplex, as it was
                rebuild_box(
                    its, n, log_term, radius_scale, my_lower + row * S, my_slack + row * S, my_rest + row,
                    my_depth + row, boxes + 2 * h
                );
        }
        __syncthreads();
    }

    for (int i = thread; i < H * ROWS; i += BLOCK) {
        my.policy[r * (H * ROWS) + i] = policy[i];
        my.log_weights[r * (H * ROWS) + i] = log_weights[i];
    }
    for (int i = thread; i < 2 * MOVES; i += BLOCK) my.boxes[r * (2 * MOVES) + i] = boxes[i];
    for (int i = thread; i < H * S; i += BLOCK) {
        my.bounds[(r * 3 + 0) * (H * S) + i] = least[i];
        my.bounds[(r * 3 + 1) * (H * S) + i] = most[i];
        my.bounds[(r * 3 + 2) * (H * S) + i] = value[i];
    }
    if (thread == 0)
        for (int i = 0; i < 4; ++i) my.sums[4 * r + i] = sums[i];
}

// All boxes anew from the counts, for replicas taken up again: a thread a replica's step.
extern "C" __global__ void restore(const Arguments* arguments) {
    const Arguments my = *arguments;
    const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= my.replicas * MOVES) return;
    int boxes[2] = {0, 0};
    for (int j = 0; j < ROWS; ++j) {
        const long long row = i * ROWS + j;
        int n = 0;
        for (int t = 0; t < S; ++t) n += my.counts[row * S + t];
        for (int t = 0; t < S; ++t) {
            my.lower[row * S + t] = 0;
            my.slack[row * S + t] = 1;
        }
        my.rest[row] = 1;
        my.depth[row] = 1;
        if ((real)10 * (real)my.log_term * (real)my.radius_scale < (real)n)
            rebuild_box(
                my.counts + row * S, n, (real)my.log_term, (real)my.radius_scale, my.lower + row * S, my.slack + row * S,
                my.rest + row, my.depth + row, boxes
            );
    }
    my.boxes[2 * i] = boxes[0];
    my.boxes[2 * i + 1] = boxes[1];
}
