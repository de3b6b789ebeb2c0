// The practical learners for many replicas with dense dynamics: GROUP lanes of a warp play a replica, a lane takes every
// GROUP-th state, and in what concerns the episode's own steps every GROUP-th step.  Here is what they share: memory, the
// policy's exact cost, one episode, one row's update, and the kernel; `learn` is each learner's own.
//
// What is learned comes out of the operations of kernels.po_practical and kernels.po_model_free in their order.  Exact
// costs are summed in an order of their own.
//
// Sizes: H, S, A; T = 1 where all steps have the same transitions, else H; MEANS = 1 where losses have a mean table;
// SUCCESSORS: see common.cuh; GROUP lanes; BLOCK threads a block;
// SWEEPS = 1 where `learn` needs transitions turned; KEPT tables (policy, then ℓ̂) are read whole every episode, and
// SHARED_STATE = 1 holds them in shared memory, SHARED_DYNAMICS = 1 the transitions; MARKS numbers for each (h, s).

#define STEPS (T == 1 ? 1 : H - 1)  // tables of transitions: out of the last step none is needed
#define AT(h) (T == 1 ? 0 : (h))
#define WIDTH PADDED(S)             // of a row of transitions
#define DYNAMICS (STEPS * S * A * WIDTH)
#define DRAWN (STEPS * S * A * PADDED(OUTCOMES))
#define MOVES (H > 1 ? H - 1 : 1)
#define COUNTED ((S + 4) / 4 * 4)   // of a row of counts: S next states, then their sum, in whole vectors

#define MODEL_RATE ((real)0.4)  // as kernels.po_practical and kernels.po_model_free, where they are explained
#define CAUTION ((real)3.0)
#define NOISE ((real)(sizeof(real) == 8 ? 1e-9 : 1e-4))  // float32 rounds half a billion times coarser

struct Arguments {
    const real* transitions;         // (STEPS, S, A, WIDTH): p(s'|s, a), s' last
    const real* turned;              // (STEPS, S', A, WIDTH): p(s'|s, a), s last
    const real* cumulative;          // (STEPS, S, A, PADDED(OUTCOMES))
    const int* successors;           // (STEPS, S, A, SUCCESSORS)
    const real* initial;             // (S)
    const real* initial_cumulative;  // (S)
    const real* tables;              // (m, H, S, A)
    const real* means;               // (H, S, A)
    const int* rows;                 // (episodes): which table
    real* policy;                    // (replicas, H, S, A), as the next two
    real* loss;                      // ℓ̂
    real* score;
    real* marks;                     // (replicas, H, S, MARKS)
    int* counts;                     // (replicas, MOVES, S, A, COUNTED)
    double* held;                    // (replicas, 2): the latest evaluation: expected loss, and against the mean table
    double* sums;                    // (replicas, 4): cost and pseudo-cost, each (sum, rest)
    long long replicas, episodes, first_episode, first_replica, evaluate_every;
    unsigned long long seed;
    double step_scale, exploration, keep, log_actions;
};

// ---------------------------------------------------------------------------------------------------------- memory

#define OWN ((S + GROUP - 1) / GROUP)  // states of a lane: j, j + GROUP, ...
#define MEMBERS (32 / GROUP)           // replicas of a warp
#define ACTIONS PADDED(A)

// Shared memory: the dynamics (forwards, turned, cumulative); then for each warp its tables, weights, values, draws, and
// trajectories.
#define OF_TABLE (H * OWN * A * 32)
#define OF_STATE (SHARED_STATE ? KEPT * OF_TABLE : 0)
#define OF_WEIGHTS (MEMBERS * S * ACTIONS)
#define OF_VALUES (MEMBERS * 2 * COUNTED)
#define OF_DRAWS PADDED(MEMBERS * (H + 1) * 2)
#define OF_TOLD PADDED(MEMBERS * H * 2)
#define OF_VISITED PADDED(MEMBERS * H)  // as integers, no wider than a real
#define OF_WARP (OF_STATE + OF_WEIGHTS + OF_VALUES + OF_DRAWS + OF_TOLD + OF_VISITED)

// A lane's place.  One beyond the last group, or of a replica beyond the last, plays along with the first member and
// keeps nothing: every lane reaches every barrier.
struct Place {
    int lane, j, first;  // in the warp, in its group, and the group's first lane
    unsigned mask;       // the group's lanes
    bool idle;
    long long r;
    const real *transitions, *turned, *cumulative;
    real *state, *weights, *values, *draws, *told, *advantage;
    int* visited;  // s A + a
};

// A row of A numbers of table n (0: policy, 1: ℓ̂), which lie BETWEEN apart.
#if SHARED_STATE
#define BETWEEN 32
__device__ __forceinline__ real* row_of(const Arguments& my, const Place& at, int n, int h, int s) {
    const int i = OWN == 1 ? 0 : s / GROUP;
    if (n < KEPT) return at.state + n * OF_TABLE + (h * OWN + i) * (A * 32) + at.first + (s - i * GROUP);
#else
#define BETWEEN 1
__device__ __forceinline__ real* row_of(const Arguments& my, const Place& at, int n, int h, int s) {
#endif
    return (n ? my.loss : my.policy) + ((at.r * H + h) * S + s) * A;
}

__device__ __forceinline__ void read_row(const real* row, int between, real (&out)[A]) {
    if (between == 1 && A % VECTOR == 0) {
#pragma unroll
        for (int c = 0; c < A / VECTOR; ++c) {
            const Vector part = ((const Vector*)row)[c];
#pragma unroll
            for (int i = 0; i < VECTOR; ++i) out[c * VECTOR + i] = part.v[i];
        }
    } else {
#pragma unroll
        for (int a = 0; a < A; ++a) out[a] = row[a * between];
    }
}

// ------------------------------------------------------------------------------------------------------ evaluation

// The policy's expected loss under `loss`, and under the mean table.
__device__ __forceinline__ void evaluate(const Arguments& my, const Place& at, const real* loss, double (&held)[2]) {
    real cost = 0, mean_cost = 0;
    real* reach = at.values;  // of a lane's own states
    for (int s = at.j; s < S; s += GROUP)
        if (!at.idle) reach[s] = my.initial[s];
#pragma unroll 1
    for (int h = 0; h < H; ++h) {
        for (int s = at.j; s < S; s += GROUP) {
            if (at.idle) continue;
            const real mu = reach[s];
            real p[A];
            read_row(row_of(my, at, 0, h, s), BETWEEN, p);
            Vector w[ACTIONS / VECTOR];
#pragma unroll
            for (int a = 0; a < A; ++a) {
                const real x = mu * p[a];
                w[a / VECTOR].v[a % VECTOR] = x;
                cost = fused(x, loss[(h * S + s) * A + a], cost);
                if (MEANS) mean_cost = fused(x, my.means[(h * S + s) * A + a], mean_cost);
            }
#pragma unroll
            for (int c = 0; c < ACTIONS / VECTOR; ++c) ((Vector*)(at.weights + s * ACTIONS))[c] = w[c];
        }
        __syncwarp();
        if (h + 1 < H)
            for (int t = at.j; t < S; t += GROUP) {
                const real* column = at.transitions + AT(h) * ((long long)S * A * WIDTH) + t;
                real next[A];
#pragma unroll
                for (int a = 0; a < A; ++a) next[a] = 0;
#pragma unroll 2
                for (int s = 0; s < S; ++s) {
                    Vector w[ACTIONS / VECTOR];
#pragma unroll
                    for (int c = 0; c < ACTIONS / VECTOR; ++c) w[c] = ((const Vector*)(at.weights + s * ACTIONS))[c];
#pragma unroll
                    for (int a = 0; a < A; ++a)
                        next[a] = fused(w[a / VECTOR].v[a % VECTOR], column[(s * A + a) * WIDTH], next[a]);
                }
                real x = next[0];
#pragma unroll
                for (int a = 1; a < A; ++a) x += next[a];
                if (!at.idle) reach[t] = x;
            }
        __syncwarp();
    }
    if (!at.idle) {
        at.weights[at.j] = cost;
        at.weights[GROUP + at.j] = mean_cost;
    }
    __syncwarp();
    cost = mean_cost = 0;
    for (int j = 0; j < GROUP; ++j) {
        cost += at.weights[j];
        mean_cost += at.weights[GROUP + j];
    }
    held[0] = cost;
    if (MEANS) held[1] = mean_cost;
    __syncwarp();
}

// -------------------------------------------------------------------------------------------------------- sampling

// One episode, told to all lanes of the group: where it went, and its total.  A ballot counts how many cumulative entries
// the draw exceeds.
__device__ __forceinline__ real sample(const Arguments& my, const Place& at, const real* loss, unsigned episode) {
    const unsigned replica = (unsigned)(my.first_replica + at.r);
    for (int h = at.j; h <= H; h += GROUP) {
        const Words words = philox(replica, episode, h == H ? BEFORE_FIRST_STEP : (unsigned)h, 0, my.seed);
        if (!at.idle) {
            at.draws[2 * h] = unit(words.x0, words.x1);
            at.draws[2 * h + 1] = unit(words.x2, words.x3);
        }
    }
    __syncwarp();
    int s = first_above<S>(at.draws[2 * H + 1], my.initial_cumulative);
    real total = 0;
#pragma unroll 1
    for (int h = 0; h < H; ++h) {
        real p[A];
        read_row(row_of(my, at, 0, h, s), BETWEEN, p);
        const int a = draw_action(at.draws[2 * h], p), seen = s * A + a;
        if (at.j == 0 && !at.idle) at.visited[h] = seen;
        total += loss[h * (S * A) + seen];
        if (h + 1 < H) {
            const real v = at.draws[2 * h + 1];
            const int row = AT(h) * (S * A) + seen;
            const real* sums_before = at.cumulative + row * (long long)PADDED(OUTCOMES);
            int next = 0;
#pragma unroll 4
            for (int i = 0; i < OUTCOMES; i += GROUP) {
                const int t = i + at.j;
                const unsigned below = __ballot_sync(ALL_LANES, t < OUTCOMES && sums_before[t < OUTCOMES ? t : 0] <= v);
                next += __popc(below & at.mask);
            }
            s = state_of(next, row, my.successors);
        }
    }
    __syncwarp();
    return total;
}

// -------------------------------------------------------------------------------------------------------- learning

// Add `estimate` to the score of action a: π ∝ exp(-η score), η = √(ln A / (second + CAUTION largest²)).
__device__ __forceinline__ void improve_row(
    const Arguments& my, real* score_row, real* policy_row, int a, real estimate, real second, real largest
) {
    const real keep = (real)my.keep, floor = NOISE * (real)H;
    real score[A];
    real least = (real)INFINITE;
#pragma unroll
    for (int b = 0; b < A; ++b) {
        score[b] = score_row[b] * keep;
        if (b == a) score[b] += estimate;
        score_row[b] = score[b];
        least = lesser_of(score[b], least);
    }
    const real step =
        (real)my.step_scale * sqrt((real)my.log_actions / (second + CAUTION * largest * largest + floor * floor));
    real norm = 0;
#pragma unroll
    for (int b = 0; b < A; ++b) {
        score[b] = exp(-step * (score[b] - least));
        norm += score[b];
    }
    norm = (real)1 / norm;
#pragma unroll
    for (int b = 0; b < A; ++b) policy_row[b * BETWEEN] = score[b] * norm;
}

// ℓ̂ starts at the first total per step, wherever an episode may lead.
__device__ __forceinline__ void set_level(const Arguments& my, const Place& at, real level) {
    for (int h = 0; h < H; ++h)
        for (int s = at.j; s < S; s += GROUP) {
            if (at.idle) continue;
            real* row = row_of(my, at, 1, h, s);
            for (int a = 0; a < A; ++a) row[a * (KEPT > 1 ? BETWEEN : 1)] = level;
        }
    __syncwarp();
}

// Learn from the episode that `sample` left; ends with a barrier.
__device__ __forceinline__ void learn(const Arguments& my, const Place& at, real total);

// ------------------------------------------------------------------------------------------------------------ play

extern "C" __global__ void __launch_bounds__(BLOCK) play(const Arguments* arguments) {
    SHARED_MEMORY
    const Arguments my = *arguments;
    real* shared = (real*)shared_memory;
    Place at;
#if SHARED_DYNAMICS
    for (int i = threadIdx.x; i < DYNAMICS; i += BLOCK) {
        shared[i] = my.transitions[i];
        if (SWEEPS) shared[DYNAMICS + i] = my.turned[i];
    }
    real* rows_drawn = shared + (SWEEPS ? 2 : 1) * DYNAMICS;
    for (int i = threadIdx.x; i < DRAWN; i += BLOCK) rows_drawn[i] = my.cumulative[i];
    at.transitions = shared;
    at.turned = shared + DYNAMICS;
    at.cumulative = rows_drawn;
    real* mine = rows_drawn + DRAWN;
#else
    at.transitions = my.transitions;
    at.turned = my.turned;
    at.cumulative = my.cumulative;
    real* mine = shared;
#endif
    __syncthreads();
    const int warp = threadIdx.x / 32;
    const long long first_of_warp = ((long long)blockIdx.x * (BLOCK / 32) + warp) * MEMBERS;
    if (first_of_warp >= my.replicas) return;  // the whole warp; no barrier of the block below
    at.lane = threadIdx.x % 32;
    int member = at.lane / GROUP;
    at.idle = member >= MEMBERS || first_of_warp + member >= my.replicas;
    if (at.idle) member = 0;
    at.first = member * GROUP;
    at.j = at.idle ? at.lane % GROUP : at.lane - at.first;
    at.mask = (GROUP == 32 ? ALL_LANES : ((1u << (GROUP % 32)) - 1u)) << at.first;
    at.r = first_of_warp + member;
    at.state = mine + warp * OF_WARP;
    at.weights = at.state + OF_STATE + member * (S * ACTIONS);
    at.values = at.state + OF_STATE + OF_WEIGHTS + member * (2 * COUNTED);
    real* rest = at.state + OF_STATE + OF_WEIGHTS + OF_VALUES;
    at.draws = rest + member * ((H + 1) * 2);
    at.told = rest + OF_DRAWS + member * (2 * H);
    at.advantage = at.told + H;
    at.visited = (int*)(rest + OF_DRAWS + OF_TOLD) + member * H;
    if (!at.idle)
        for (int i = at.j; i < 2 * COUNTED; i += GROUP) at.values[i] = 0;  // what pads them stays so
#if SHARED_STATE
    const long long table = at.r * (H * S * A);
    for (int h = 0; h < H; ++h)
        for (int s = at.j; s < S; s += GROUP)
            for (int a = 0; a < A && !at.idle; ++a) {
                row_of(my, at, 0, h, s)[a * BETWEEN] = my.policy[table + (h * S + s) * A + a];
                if (KEPT > 1) row_of(my, at, 1, h, s)[a * BETWEEN] = my.loss[table + (h * S + s) * A + a];
            }
#endif
    __syncwarp();
    double sums[4], held[2];
    for (int i = 0; i < 4; ++i) sums[i] = my.sums[4 * at.r + i];
    for (int i = 0; i < 2; ++i) held[i] = my.held[2 * at.r + i];

    for (long long k = 0; k < my.episodes; ++k) {
        const long long episode = my.first_episode + k;
        const real* loss = my.tables + (long long)my.rows[k] * (H * S * A);
        if (episode % my.evaluate_every == 0) evaluate(my, at, loss, held);
        add_compensated(held[0], sums);
        if (MEANS) add_compensated(held[1], sums + 2);
        const real total = sample(my, at, loss, (unsigned)episode);
        if (episode == 0) set_level(my, at, total / (real)H);
        learn(my, at, total);
    }

#if SHARED_STATE
    for (int h = 0; h < H; ++h)
        for (int s = at.j; s < S; s += GROUP)
            for (int a = 0; a < A && !at.idle; ++a) {
                my.policy[table + (h * S + s) * A + a] = row_of(my, at, 0, h, s)[a * BETWEEN];
                if (KEPT > 1) my.loss[table + (h * S + s) * A + a] = row_of(my, at, 1, h, s)[a * BETWEEN];
            }
#endif
    __syncwarp();  // all have read what the first lane overwrites
    if (at.j == 0 && !at.idle) {
        for (int i = 0; i < 4; ++i) my.sums[4 * at.r + i] = sums[i];
        for (int i = 0; i < 2; ++i) my.held[2 * at.r + i] = held[i];
    }
}
