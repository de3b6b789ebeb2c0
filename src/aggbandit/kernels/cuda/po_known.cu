// Algorithm 1 [eq:LM25-alg-1] for many replicas with dense dynamics: `play_threads` gives a replica to a thread,
// `play_groups` to GROUP lanes of a warp, a lane to every GROUP-th state.  A thread's way reads each transition once for
// a whole warp, and wants tens of thousands of replicas; a group's way needs few replicas to fill the card, and answers
// sooner.  Both do the operations of kernels.po_known on every number in the same order.
//
// Sizes: H, S, A; T = 1 where all steps have the same transitions, else H; SUCCESSORS: see common.cuh; MEANS = 1 where
// losses have a mean table;
// SHARED_DYNAMICS = 1 where transitions and their cumulative sums are held in shared memory; BLOCK threads a block.

#define STEPS (T == 1 ? 1 : H - 1)  // tables of transitions: out of the last step none is needed
#define WIDTH PADDED(S)             // of a row of transitions
#define DYNAMICS (STEPS * S * A * WIDTH)
#define BETWEEN_DRAWN PADDED(OUTCOMES)  // of a row of cumulative sums
#define DRAWN (STEPS * S * A * BETWEEN_DRAWN)
#define AT(h) (T == 1 ? 0 : (h))

struct Arguments {
    const real* transitions;         // (STEPS, S, A, WIDTH): p(s'|s, a), s' last
    const real* turned;              // (STEPS, S', A, WIDTH): p(s'|s, a), s last; for groups
    const real* cumulative;          // (STEPS, S, A, BETWEEN_DRAWN)
    const int* successors;           // (STEPS, S, A, SUCCESSORS)
    const real* initial;             // (S)
    const real* initial_cumulative;  // (S)
    const real* tables;              // (m, H, S, A)
    const real* means;               // (H, S, A)
    const int* rows;                 // (episodes): which table
    real* policy;                    // threads: (H, S, A, stride); groups: (replicas, H, S, A)
    real* log_policy;                // the same shape; see `kernels.po_known`
    real* occupancy;                 // threads: (H, S, stride), overwritten
    double* sums;                    // (replicas, 4): cost and pseudo-cost, each (sum, rest)
    long long replicas, stride, episodes, first_episode, first_replica;
    unsigned long long seed;
    double step_size, exploration, bonus;
};

#ifdef THREADS

// Shared memory: the dynamics, then for each thread S occupancies, later values, and S costs, with means twice.
extern "C" __global__ void __launch_bounds__(BLOCK) play_threads(const Arguments* arguments) {
    SHARED_MEMORY
    const Arguments my = *arguments;
    real* shared = (real*)shared_memory;
#if SHARED_DYNAMICS
    for (int i = threadIdx.x; i < DYNAMICS; i += BLOCK) shared[i] = my.transitions[i];
    for (int i = threadIdx.x; i < DRAWN; i += BLOCK) shared[DYNAMICS + i] = my.cumulative[i];
    const real* transitions = shared;
    const real* cumulative = shared + DYNAMICS;
    real* slots = shared + DYNAMICS + DRAWN + threadIdx.x;
#else
    const real* transitions = my.transitions;
    const real* cumulative = my.cumulative;
    real* slots = shared + threadIdx.x;
#endif
    __syncthreads();
    real* occupancy_s = slots;
    real* cost_s = slots + S * BLOCK;
    real* value_s = occupancy_s;
    const long long r = (long long)blockIdx.x * BLOCK + threadIdx.x;
    if (r >= my.replicas) return;  // no barrier below
    const long long R = my.stride;
    real* policy = my.policy + r;
    real* occupancy = my.occupancy + r;
    const real step_size = (real)my.step_size, exploration = (real)my.exploration, bonus = (real)my.bonus;
    double sums[4];
    for (int i = 0; i < 4; ++i) sums[i] = my.sums[4 * r + i];
    short visited[H];
    real reached[H];

    for (long long i = 0; i < my.episodes; ++i) {
        const real* loss = my.tables + (long long)my.rows[i] * (H * S * A);

        // occupancy, forwards, and what each state costs
        for (int s = 0; s < S; ++s) {
            occupancy_s[s * BLOCK] = my.initial[s];
            cost_s[s * BLOCK] = 0;
            if (MEANS) cost_s[(S + s) * BLOCK] = 0;
        }
        for (int h = 0; h < H; ++h) {
            real next[S];
#pragma unroll
            for (int t = 0; t < S; ++t) next[t] = 0;
            const real* row = transitions + AT(h) * (S * A * WIDTH);
#pragma unroll 1
            for (int s = 0; s < S; ++s) {
                const real mu = occupancy_s[s * BLOCK];
                real cost = cost_s[s * BLOCK], mean_cost = MEANS ? cost_s[(S + s) * BLOCK] : 0;
                occupancy[(h * S + s) * R] = mu;
                real w[A];
#pragma unroll
                for (int a = 0; a < A; ++a) {
                    w[a] = mu * policy[((h * S + s) * A + a) * R];
                    cost = fused(w[a], loss[(h * S + s) * A + a], cost);
                    if (MEANS) mean_cost = fused(w[a], my.means[(h * S + s) * A + a], mean_cost);
                }
                cost_s[s * BLOCK] = cost;
                if (MEANS) cost_s[(S + s) * BLOCK] = mean_cost;
                if (h + 1 < H) {
#pragma unroll
                    for (int a = 0; a < A; ++a, row += WIDTH)
#pragma unroll
                        for (int c = 0; c < WIDTH; c += VECTOR) {
                            const Vector p = *(const Vector*)(row + c);
#pragma unroll
                            for (int j = 0; j < VECTOR; ++j)
                                if (c + j < S) next[c + j] = fused(w[a], p.v[j], next[c + j]);
                        }
                }
            }
#pragma unroll
            for (int t = 0; t < S; ++t) occupancy_s[t * BLOCK] = next[t];
        }
        real cost = 0, mean_cost = 0;
        for (int s = 0; s < S; ++s) {
            cost += cost_s[s * BLOCK];
            if (MEANS) mean_cost += cost_s[(S + s) * BLOCK];
        }
        add_compensated(cost, sums);
        if (MEANS) add_compensated(mean_cost, sums + 2);

        // one episode
        const unsigned episode = (unsigned)(my.first_episode + i), replica = (unsigned)(my.first_replica + r);
        Words words = philox(replica, episode, BEFORE_FIRST_STEP, 0, my.seed);
        int s = first_above<S>(unit(words.x2, words.x3), my.initial_cumulative);
        real total = 0;
#pragma unroll 1
        for (int h = 0; h < H; ++h) {
            words = philox(replica, episode, h, 0, my.seed);
            real p[A];
#pragma unroll
            for (int a = 0; a < A; ++a) p[a] = policy[((h * S + s) * A + a) * R];
            const int a = draw_action(unit(words.x0, words.x1), p);
            visited[h] = (short)(s * A + a);
            reached[h] = fused(occupancy[(h * S + s) * R], policy[((h * S + s) * A + a) * R], exploration);
            total += loss[(h * S + s) * A + a];
            if (h + 1 < H) {
                const int row = (AT(h) * S + s) * A + a;
                const real* sums_before = cumulative + row * BETWEEN_DRAWN;
                s = state_of(first_above<OUTCOMES>(unit(words.x2, words.x3), sums_before), row, my.successors);
            }
        }

        // the bonus, backwards, and every row of the next policy
        real value[S];
#pragma unroll
        for (int t = 0; t < S; ++t) value[t] = 0;
#pragma unroll 1
        for (int h = H - 1; h >= 0; --h) {
            const real* row = transitions + AT(h) * (S * A * WIDTH);
            real estimate;
            const real factor = visit(total, reached[h], step_size, &estimate);
            int seen = visited[h];  // becomes the action at the visited state, and out of range elsewhere
#pragma unroll 1
            for (int s = 0; s < S; ++s, seen -= A) {
                real future[A];
#pragma unroll
                for (int a = 0; a < A; ++a) future[a] = 0;
                if (h + 1 < H) {
#pragma unroll
                    for (int a = 0; a < A; ++a, row += WIDTH)
#pragma unroll
                        for (int c = 0; c < WIDTH; c += VECTOR) {
                            const Vector p = *(const Vector*)(row + c);
#pragma unroll
                            for (int j = 0; j < VECTOR; ++j)
                                if (c + j < S) future[a] = fused(p.v[j], value[c + j], future[a]);
                        }
                }
                const long long at = (h * S + s) * A * R;
                value_s[s * BLOCK] = improve_row(
                    policy + at, R, my.log_policy + r + at, R, future, occupancy[(h * S + s) * R], step_size,
                    exploration, bonus, seen, factor, estimate
                );
            }
#pragma unroll
            for (int t = 0; t < S; ++t) value[t] = value_s[t * BLOCK];
        }
    }
    for (int i = 0; i < 4; ++i) my.sums[4 * r + i] = sums[i];
}

#else

#define OWN ((S + GROUP - 1) / GROUP)  // states of a lane: j, j + GROUP, ...
#define MEMBERS (32 / GROUP)           // replicas of a warp
#define ACTIONS PADDED(A)
#ifndef STEPS_AT_ONCE
#define STEPS_AT_ONCE 1
#endif
constexpr int steps_at_once = STEPS_AT_ONCE;

// Shared memory: the dynamics thrice (forwards, turned, cumulative); then for each warp its policies, occupancies,
// weights, values, draws, and trajectories.
#define OF_POLICY (SHARED_POLICY ? H * OWN * A * 32 : 0)
#define OF_OCCUPANCY (H * OWN * 32)
#define OF_WEIGHTS (MEMBERS * S * ACTIONS)
#define OF_VALUES PADDED(MEMBERS * S)
#define OF_DRAWS PADDED(MEMBERS * (H + 1) * 2)
#define OF_REACHED PADDED(MEMBERS * H)
#define OF_VISITED PADDED(MEMBERS * H)  // as integers, no wider than a real
#define OF_WARP (OF_POLICY + OF_OCCUPANCY + OF_WEIGHTS + OF_VALUES + OF_DRAWS + OF_REACHED + OF_VISITED)

extern "C" __global__ void __launch_bounds__(BLOCK) play_groups(const Arguments* arguments) {
    SHARED_MEMORY
    const Arguments my = *arguments;
    real* shared = (real*)shared_memory;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#if SHARED_DYNAMICS
    for (int i = threadIdx.x; i < DYNAMICS; i += BLOCK) {
        shared[i] = my.transitions[i];
        shared[DYNAMICS + i] = my.turned[i];
    }
    for (int i = threadIdx.x; i < DRAWN; i += BLOCK) shared[2 * DYNAMICS + i] = my.cumulative[i];
    const real* transitions = shared;
    const real* turned = shared + DYNAMICS;
    const real* cumulative = shared + 2 * DYNAMICS;
    real* mine = shared + 2 * DYNAMICS + DRAWN + warp * OF_WARP;
#else
    const real* transitions = my.transitions;
    const real* turned = my.turned;
    const real* cumulative = my.cumulative;
    real* mine = shared + warp * OF_WARP;
#endif
    __syncthreads();
    real* kept_policy = mine;
    real* occupancy = kept_policy + OF_POLICY;
    real* weights = occupancy + OF_OCCUPANCY;
    real* values = weights + OF_WEIGHTS;
    real* draws = values + OF_VALUES;
    real* reached = draws + OF_DRAWS;
    int* visited = (int*)(reached + OF_REACHED);

    // A lane beyond the last group, or of a replica beyond the last, plays along with the first member and keeps
    // nothing: every lane reaches every barrier.
    const long long first_of_warp = ((long long)blockIdx.x * (BLOCK / 32) + warp) * MEMBERS;
    if (first_of_warp >= my.replicas) return;  // the whole warp; no barrier of the block below
    int member = lane / GROUP;
    const bool idle = member >= MEMBERS || first_of_warp + member >= my.replicas;
    if (idle) member = 0;
    const int j = idle ? lane % GROUP : lane - member * GROUP;
    const int group_lane = member * GROUP;  // the first lane of the group
    const unsigned group_mask = (GROUP == 32 ? ALL_LANES : ((1u << (GROUP % 32)) - 1u)) << group_lane;
    const long long r = first_of_warp + member;
    real* own_policy = my.policy + r * (H * S * A);
    real* own_log_policy = my.log_policy + r * (H * S * A);
    weights += member * S * ACTIONS;
    values += member * S;
    draws += member * (H + 1) * 2;
    reached += member * H;
    visited += member * H;
    const real step_size = (real)my.step_size, exploration = (real)my.exploration, bonus = (real)my.bonus;
    double sums[4];
    for (int i = 0; i < 4; ++i) sums[i] = my.sums[4 * r + i];

// where lane x keeps action a of its i-th state, and how far apart its actions lie
#if SHARED_POLICY
#define POLICY(h, i, x) (kept_policy + ((h) * OWN + (i)) * A * 32 + (x))
#define BETWEEN 32
#else
#define POLICY(h, i, x) (own_policy + ((h) * S + (x) - group_lane + (i) * GROUP) * A)
#define BETWEEN 1
#endif
#if SHARED_POLICY
    for (int h = 0; h < H; ++h)
        for (int i = 0; i < OWN; ++i)
            for (int a = 0; a < A; ++a) {
                const int s = j + i * GROUP;
                POLICY(h, i, lane)[a * BETWEEN] = s < S ? own_policy[(h * S + s) * A + a] : (real)0;
            }
#endif
    __syncwarp();

    for (long long k = 0; k < my.episodes; ++k) {
        const real* loss = my.tables + (long long)my.rows[k] * (H * S * A);
        const unsigned episode = (unsigned)(my.first_episode + k), replica = (unsigned)(my.first_replica + r);

        // draws: a lane a step
        for (int h = j; h <= H; h += GROUP) {
            const Words words = philox(replica, episode, h == H ? BEFORE_FIRST_STEP : (unsigned)h, 0, my.seed);
            if (!idle) {
                draws[2 * h] = unit(words.x0, words.x1);
                draws[2 * h + 1] = unit(words.x2, words.x3);
            }
        }

        // occupancy, forwards, and what each state costs
        real mu[OWN], cost[OWN], mean_cost[OWN];
#pragma unroll
        for (int i = 0; i < OWN; ++i) {
            mu[i] = j + i * GROUP < S ? my.initial[j + i * GROUP] : (real)0;
            cost[i] = mean_cost[i] = 0;
        }
#pragma unroll steps_at_once
        for (int h = 0; h < H; ++h) {
#pragma unroll
            for (int i = 0; i < OWN; ++i) {
                const int s = j + i * GROUP;
                if (s >= S || idle) continue;
                occupancy[(h * OWN + i) * 32 + lane] = mu[i];
                const real* p = POLICY(h, i, lane);
                Vector w[ACTIONS / VECTOR];
#pragma unroll
                for (int a = 0; a < A; ++a) {
                    const real x = mu[i] * p[a * BETWEEN];
                    w[a / VECTOR].v[a % VECTOR] = x;
                    cost[i] = fused(x, loss[(h * S + s) * A + a], cost[i]);
                    if (MEANS) mean_cost[i] = fused(x, my.means[(h * S + s) * A + a], mean_cost[i]);
                }
#pragma unroll
                for (int c = 0; c < ACTIONS / VECTOR; ++c) ((Vector*)(weights + s * ACTIONS))[c] = w[c];
            }
            __syncwarp();
            if (h + 1 < H) {
                real next[OWN];
#pragma unroll
                for (int i = 0; i < OWN; ++i) next[i] = 0;
                const real* table = transitions + AT(h) * (S * A * WIDTH) + j;
#pragma unroll 2
                for (int s = 0; s < S; ++s) {
                    Vector w[ACTIONS / VECTOR];
#pragma unroll
                    for (int c = 0; c < ACTIONS / VECTOR; ++c) w[c] = ((const Vector*)(weights + s * ACTIONS))[c];
#pragma unroll
                    for (int a = 0; a < A; ++a)
#pragma unroll
                        for (int i = 0; i < OWN; ++i)
                            if ((i + 1) * GROUP <= S || j + i * GROUP < S)
                                next[i] = fused(
                                    w[a / VECTOR].v[a % VECTOR], table[(s * A + a) * WIDTH + i * GROUP], next[i]
                                );
                }
#pragma unroll
                for (int i = 0; i < OWN; ++i) mu[i] = next[i];
            }
            __syncwarp();
        }
#pragma unroll
        for (int i = 0; i < OWN; ++i)
            if (j + i * GROUP < S && !idle) values[j + i * GROUP] = cost[i];
        __syncwarp();
        real spent = 0;
        for (int s = 0; s < S; ++s) spent += values[s];
        add_compensated(spent, sums);
        if (MEANS) {
            __syncwarp();
#pragma unroll
            for (int i = 0; i < OWN; ++i)
                if (j + i * GROUP < S && !idle) values[j + i * GROUP] = mean_cost[i];
            __syncwarp();
            spent = 0;
            for (int s = 0; s < S; ++s) spent += values[s];
            add_compensated(spent, sums + 2);
        }

        // one episode, told to all lanes of the group; a ballot counts how many cumulative entries the draw exceeds
        int s = first_above<S>(draws[2 * H + 1], my.initial_cumulative);
        real total = 0;
#pragma unroll steps_at_once
        for (int h = 0; h < H; ++h) {
            const int owner = group_lane + s % GROUP;
            const real* row = POLICY(h, s / GROUP, owner);
            real p[A];
#pragma unroll
            for (int a = 0; a < A; ++a) p[a] = row[a * BETWEEN];
            const int a = draw_action(draws[2 * h], p);
            const real chance = row[a * BETWEEN];
            if (j == 0 && !idle) {
                visited[h] = s * A + a;
                reached[h] = fused(occupancy[(h * OWN + s / GROUP) * 32 + owner], chance, exploration);
            }
            total += loss[(h * S + s) * A + a];
            if (h + 1 < H) {
                const real v = draws[2 * h + 1];
                const int row = (AT(h) * S + s) * A + a;
                const real* sums_before = cumulative + row * BETWEEN_DRAWN;
                int outcome = 0;
#pragma unroll
                for (int i = 0; i < OUTCOMES; i += GROUP) {
                    const int t = j + i;
                    const unsigned below =
                        __ballot_sync(ALL_LANES, t < OUTCOMES && sums_before[t < OUTCOMES ? t : 0] <= v);
                    outcome += __popc(below & group_mask);
                }
                s = state_of(outcome, row, my.successors);
            }
        }
        __syncwarp();

        // the bonus, backwards, and every row of the next policy
#pragma unroll steps_at_once
        for (int h = H - 1; h >= 0; --h) {
            real future[OWN][A];
#pragma unroll
            for (int i = 0; i < OWN; ++i)
#pragma unroll
                for (int a = 0; a < A; ++a) future[i][a] = 0;
            if (h + 1 < H) {
                const real* table = turned + AT(h) * (S * A * WIDTH) + j;
#pragma unroll 2
                for (int t = 0; t < S; ++t) {
                    const real v = values[t];
#pragma unroll
                    for (int i = 0; i < OWN; ++i)
#pragma unroll
                        for (int a = 0; a < A; ++a)
                            if ((i + 1) * GROUP <= S || j + i * GROUP < S)
                                future[i][a] = fused(table[(t * A + a) * WIDTH + i * GROUP], v, future[i][a]);
                }
            }
            __syncwarp();
            real estimate;
            const real factor = visit(total, reached[h], step_size, &estimate);
#pragma unroll
            for (int i = 0; i < OWN; ++i) {
                const int s = j + i * GROUP;
                if (s >= S || idle) continue;
                values[s] = improve_row(
                    POLICY(h, i, lane), BETWEEN, own_log_policy + (h * S + s) * A, 1, future[i],
                    occupancy[(h * OWN + i) * 32 + lane], step_size, exploration, bonus, visited[h] - s * A, factor,
                    estimate
                );
            }
            __syncwarp();
        }
    }
#if SHARED_POLICY
    for (int h = 0; h < H; ++h)
        for (int i = 0; i < OWN; ++i)
            for (int a = 0; a < A; ++a) {
                const int s = j + i * GROUP;
                if (s < S && !idle) own_policy[(h * S + s) * A + a] = POLICY(h, i, lane)[a * BETWEEN];
            }
#endif
    if (j == 0 && !idle)
        for (int i = 0; i < 4; ++i) my.sums[4 * r + i] = sums[i];
}

#endif
