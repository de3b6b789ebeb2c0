// Algorithm 1 [eq:LM25-alg-1] where states are too many for a thread: the two recursions are matrix products of the
// shared transitions with all replicas, on the tensor cores.  The replica comes last in memory.
//
// One episode: for each h `reach` makes μ π on the way into the product that is the next occupancy, and adds up the
// cost; `sample` plays the episode; then, from the last step on, `improve` has the future of B from a product and,
// while it is still in registers, makes the new policy and the value of it.  So an episode reads policies twice and
// writes them once, and nothing else is as large.  `advance` counts the episode: launches take the same arguments every time.
//
// A warp has 16 replicas for as long as a launch lasts, a lane two of them: in products.cuh's words rows are replicas.
// Every sum's order is fixed, so a replica's numbers do not depend on how many others there are.
//
// Sizes: H, S, A; T; SUCCESSORS: see common.cuh; MEANS; BLOCK threads a block of `sample`; those of `tiles.Tiles`:
//   WARPS         of a block of `reach` and `improve`, for WARPS x 16 replicas;
//   SPLITS        so many blocks share these replicas, each with its part of the product's columns;
//   STATE_TILES   of eight columns, next states, in such a part of `reach`;
//   ACTIONS       so many of a state's actions at once in `reach`: their transitions are a stage in shared memory;
//   UNIT          four times so many states at once in `improve`;
//   FOURS, PARTS  next states come in FOURS fours at once, a stage, PARTS times;
//   HELD          1 where a warp holds the values of all next states in registers.

#define STEPS (T == 1 ? 1 : H - 1)
#define AT(h) (T == 1 ? 0 : (h))

#define ROUNDS ((A + ACTIONS - 1) / ACTIONS)  // of a four of states in `reach`
#define REACH_STAGES ((S + 3) / 4 * ROUNDS)
#define REACH_STAGE (ACTIONS * STATE_TILES * 32)  // doubles
#define UNITS ((S + 4 * UNIT - 1) / (4 * UNIT))
#define UNIT_TILES ((UNIT * A + 1) / 2)
#define IMPROVE_STAGE (FOURS * UNIT_TILES * 32)

struct Arguments {
    const double* reaching;          // (STEPS, SPLITS, REACH_STAGES, REACH_STAGE): transitions as `reach` reads them
    const double* improving;         // (STEPS, UNITS, PARTS, IMPROVE_STAGE): as `improve` does
    const real* cumulative;          // (STEPS, S, A, PADDED(OUTCOMES))
    const int* successors;           // (STEPS, S, A, SUCCESSORS)
    const real* initial_cumulative;  // (S)
    const real* tables;              // (m, H, S, A)
    const real* means;               // (H, S, A)
    const int* rows;                 // (episodes): which table
    long long* now;                  // (1): the episode of this block of episodes
    real* policy;                    // (H, S, A, stride)
    real* log_policy;                // (H, S, A, stride)
    real* occupancy;                 // (H, S, stride)
    real* value;                     // (2, S, stride): of odd steps and of even ones
    double* episode_costs;           // (2, stride)
    double* sums;                    // (replicas, 4)
    int* visited;                    // (H, stride)
    real* factor;                    // (H, stride)
    real* estimate;                  // (H, stride)
    long long replicas, stride, first_episode, first_replica;
    unsigned long long seed;
    double step_size, exploration, bonus;
    long long h;
};

__device__ __forceinline__ Pair pair_at(const real* of_first) { return *(const Pair*)of_first; }
__device__ __forceinline__ void put(real* of_first, double one, double other) {
    Pair both = {(real)one, (real)other};
    *(Pair*)of_first = both;
}

// The first of this lane's two replicas.
__device__ __forceinline__ long long first_of_lane() {
    return ((long long)(blockIdx.x / SPLITS) * WARPS + threadIdx.x / 32) * 16 + threadIdx.x % 32 / 4 * 2;
}

// Shared memory: two stages.
extern "C" __global__ void __launch_bounds__(32 * WARPS) reach(const Arguments* arguments) {
    SHARED_MEMORY
    const Arguments my = *arguments;
    double* stages = (double*)shared_memory;
    const long long R = my.stride, r = first_of_lane();
    const int h = (int)my.h, part = blockIdx.x % SPLITS, q = threadIdx.x % 4;
    const bool goes_on = h + 1 < H;
    const double* table = my.reaching + (AT(h) * SPLITS + part) * ((long long)REACH_STAGES * REACH_STAGE);
    const real* policy = my.policy + (long long)h * (S * A) * R + r;
    const real* occupancy = my.occupancy + (long long)h * S * R + r;
    const real* loss = my.tables + (long long)my.rows[*my.now] * (H * S * A) + h * (S * A);
    const real* means = my.means + h * (S * A);
    double next[STATE_TILES][4];
#pragma unroll
    for (int tile = 0; tile < STATE_TILES; ++tile)
#pragma unroll
        for (int i = 0; i < 4; ++i) next[tile][i] = 0;
    double cost = 0, other_cost = 0, mean_cost = 0, other_mean_cost = 0;

    // A lane's state is the q-th of four.  Beyond the last one it reads that one's numbers, for nothing.
    int s = min(q, S - 1);
    Pair mu = pair_at(occupancy + s * R);
    if (q >= S) mu.one = mu.other = 0;
    Pair p[ACTIONS];  // of the stage to come
#pragma unroll
    for (int j = 0; j < ACTIONS; ++j) p[j] = pair_at(policy + (s * A + j) * R);
    if (goes_on) start_copy(stages, table, REACH_STAGE);
    for (int stage = 0; stage < REACH_STAGES; ++stage) {
        const int first = stage % ROUNDS * ACTIONS, row = s * A + first;
        const int beyond = (stage + 1) / ROUNDS * 4 + q, later_first = (stage + 1) % ROUNDS * ACTIONS;
        const int later = min(beyond, S - 1), later_row = later * A + later_first;
        // the weights of one action; its place takes the probability that the next stage wants
        auto weigh = [&](int j, double& one, double& other) {
            one = other = 0;
            if (A % ACTIONS == 0 || first + j < A) {
                one = mu.one * p[j].one;
                other = mu.other * p[j].other;
                if (part == 0) {
                    const double here = loss[row + j];
                    cost = fma(one, here, cost);
                    other_cost = fma(other, here, other_cost);
                    if (MEANS) {
                        const double mean = means[row + j];
                        mean_cost = fma(one, mean, mean_cost);
                        other_mean_cost = fma(other, mean, other_mean_cost);
                    }
                }
            }
            if (A % ACTIONS == 0 || later_first + j < A) p[j] = pair_at(policy + (later_row + j) * R);
        };
        Pair later_mu = pair_at(occupancy + later * R);
        if (beyond >= S) later_mu.one = later_mu.other = 0;
        if (goes_on) {
            copies_arrive();
            __syncthreads();  // and nobody reads the other stage any more
            if (stage + 1 < REACH_STAGES)
                start_copy(
                    stages + (stage + 1) % 2 * REACH_STAGE, table + (long long)(stage + 1) * REACH_STAGE, REACH_STAGE
                );
            multiply<ACTIONS>(next, stages + stage % 2 * REACH_STAGE, weigh);
        } else if (part == 0) {
            double one, other;
#pragma unroll
            for (int j = 0; j < ACTIONS; ++j) weigh(j, one, other);
        }
        mu = later_mu;
        s = later;
    }

    if (goes_on) {
        real* to = my.occupancy + (long long)(h + 1) * S * R + r;
#pragma unroll
        for (int tile = 0; tile < STATE_TILES; ++tile) {
            const int state = (part * STATE_TILES + tile) * 8 + 2 * q;
            if (state < S) put(to + state * R, next[tile][0], next[tile][2]);
            if (state + 1 < S) put(to + (state + 1) * R, next[tile][1], next[tile][3]);
        }
    }
    if (part != 0) return;
    double costs[4] = {cost, other_cost, mean_cost, other_mean_cost};
#pragma unroll
    for (int i = 0; i < 2 + 2 * MEANS; ++i) {
        costs[i] += __shfl_xor_sync(ALL_LANES, costs[i], 1);
        costs[i] += __shfl_xor_sync(ALL_LANES, costs[i], 2);
        double* total = my.episode_costs + i / 2 * R + r + i % 2;
        if (q == 0) *total = (h > 0 ? *total : 0) + costs[i];
    }
}

extern "C" __global__ void __launch_bounds__(BLOCK) sample(const Arguments* arguments) {
    const Arguments my = *arguments;
    const long long R = my.stride, r = (long long)blockIdx.x * BLOCK + threadIdx.x;
    if (r >= R) return;
    const real* loss = my.tables + (long long)my.rows[*my.now] * (H * S * A);
    const unsigned episode = (unsigned)(my.first_episode + *my.now), replica = (unsigned)(my.first_replica + r);
    if (r < my.replicas) {  // the last columns only fill up the stride
        add_compensated(my.episode_costs[r], my.sums + 4 * r);
        if (MEANS) add_compensated(my.episode_costs[R + r], my.sums + 4 * r + 2);
    }
    Words words = philox(replica, episode, BEFORE_FIRST_STEP, 0, my.seed);
    int s = first_above<S>(unit(words.x2, words.x3), my.initial_cumulative);
    real total = 0;
    for (int h = 0; h < H; ++h) {
        words = philox(replica, episode, h, 0, my.seed);
        real p[A];
#pragma unroll
        for (int a = 0; a < A; ++a) p[a] = my.policy[((h * S + s) * A + a) * R + r];
        const int a = draw_action(unit(words.x0, words.x1), p);
        my.visited[h * R + r] = s * A + a;
        my.factor[h * R + r] = fused(
            my.occupancy[(h * S + s) * R + r], my.policy[((h * S + s) * A + a) * R + r], (real)my.exploration
        );
        total += loss[(h * S + s) * A + a];
        if (h + 1 < H) {
            const int row = (AT(h) * S + s) * A + a;
            const real* sums_before = my.cumulative + row * (long long)PADDED(OUTCOMES);
            s = state_of(first_above<OUTCOMES>(unit(words.x2, words.x3), sums_before), row, my.successors);
        }
    }
    for (int h = 0; h < H; ++h) {
        real estimate;
        my.factor[h * R + r] = visit(total, my.factor[h * R + r], (real)my.step_size, &estimate);
        my.estimate[h * R + r] = estimate;
    }
}

// Shared memory: two stages.
extern "C" __global__ void __launch_bounds__(32 * WARPS) improve(const Arguments* arguments) {
    SHARED_MEMORY
    const Arguments my = *arguments;
    double* stages = (double*)shared_memory;
    const long long R = my.stride, r = first_of_lane();
    const int h = (int)my.h, q = threadIdx.x % 4;
    const bool goes_on = h + 1 < H;
    const int part = blockIdx.x % SPLITS, most = (UNITS + SPLITS - 1) / SPLITS;
    const int first = part * most, stop = min(first + most, UNITS), count = (stop - first) * PARTS;
    const double* table = my.improving + ((long long)AT(h) * UNITS + first) * ((long long)PARTS * IMPROVE_STAGE);
    const real* next_value = my.value + (long long)((h + 1) % 2) * S * R + r;
    const real step_size = (real)my.step_size, exploration = (real)my.exploration, bonus = (real)my.bonus;
    int visited[2];
    real factor[2];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
        visited[i] = my.visited[h * R + r + i];
        factor[i] = my.factor[h * R + r + i];
    }
    // a lane's next state is the q-th of four; beyond the last one transitions are 0
    auto value_of = [&](int four, double& one, double& other) {
        const int state = 4 * four + q;
        const Pair both = pair_at(next_value + min(state, S - 1) * R);
        one = both.one;
        other = both.other;
    };
#if HELD
    double values[FOURS][2];
    if (goes_on)
#pragma unroll
        for (int k = 0; k < FOURS; ++k) value_of(k, values[k][0], values[k][1]);
#endif

    if (goes_on && count > 0) start_copy(stages, table, IMPROVE_STAGE);
    for (int unit = first, stage = 0; unit < stop; ++unit) {
        Pair p[UNIT][A];
#pragma unroll
        for (int e = 0; e < UNIT; ++e) {
            const int s = min((unit * UNIT + e) * 4 + q, S - 1);
#pragma unroll
            for (int a = 0; a < A; ++a) p[e][a] = pair_at(my.policy + ((long long)(h * S + s) * A + a) * R + r);
        }
        double future[UNIT_TILES][4];  // of the unit's A actions, two a tile
#pragma unroll
        for (int tile = 0; tile < UNIT_TILES; ++tile)
#pragma unroll
            for (int i = 0; i < 4; ++i) future[tile][i] = 0;
        if (goes_on) {
            for (int k_part = 0; k_part < PARTS; ++k_part, ++stage) {
                copies_arrive();
                __syncthreads();  // and nobody reads the other stage any more
                if (stage + 1 < count)
                    start_copy(
                        stages + (stage + 1) % 2 * IMPROVE_STAGE, table + (long long)(stage + 1) * IMPROVE_STAGE,
                        IMPROVE_STAGE
                    );
                multiply<FOURS>(future, stages + stage % 2 * IMPROVE_STAGE, [&](int k, double& one, double& other) {
#if HELD
                    one = values[k][0];
                    other = values[k][1];
#else
                    value_of(k_part * FOURS + k, one, other);
#endif
                });
            }
        }
#pragma unroll
        for (int e = 0; e < UNIT; ++e) {
            const int s = (unit * UNIT + e) * 4 + q;
            if (s >= S) continue;
            const long long at = (long long)(h * S + s) * A * R + r;
            const Pair mu = pair_at(my.occupancy + (long long)(h * S + s) * R + r);
            real row[2][A];
            Renewed renewed[2];
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                real of_one[A];
#pragma unroll
                for (int a = 0; a < A; ++a) {
                    row[i][a] = i ? p[e][a].other : p[e][a].one;
                    of_one[a] = (real)future[(e * A + a) / 2][2 * i + (e * A + a) % 2];
                }
                renewed[i] = renew_row(
                    row[i], of_one, i ? mu.other : mu.one, step_size, exploration, bonus, visited[i] - s * A, factor[i]
                );
            }
            if (renewed[0].done && renewed[1].done) {
#pragma unroll
                for (int a = 0; a < A; ++a) put(my.policy + at + a * R, row[0][a], row[1][a]);
            } else {
#pragma unroll
                for (int i = 0; i < 2; ++i) {
                    real of_one[A];  // a copy: the call wants it in memory
#pragma unroll
                    for (int a = 0; a < A; ++a) of_one[a] = (real)future[(e * A + a) / 2][2 * i + (e * A + a) % 2];
                    if (renewed[i].done) {
#pragma unroll
                        for (int a = 0; a < A; ++a) my.policy[at + a * R + i] = row[i][a];
                    } else {
                        softmax_row(
                            my.policy + at + i, R, my.log_policy + at + i, R, of_one, renewed[i].mean, step_size,
                            visited[i] - s * A, my.estimate[h * R + r + i]
                        );
                    }
                }
            }
            put(my.value + ((long long)(h % 2) * S + s) * R + r, renewed[0].value, renewed[1].value);
        }
    }
}

extern "C" __global__ void advance(const Arguments* arguments) {
    if (threadIdx.x == 0) *arguments->now += 1;
}
