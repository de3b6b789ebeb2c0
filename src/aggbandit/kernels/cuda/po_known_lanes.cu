// Algorithm 1 [eq:LM25-alg-1] where states are too many for a thread: the two recursions are matrix products of the
// shared transitions with all replicas, and these kernels do what is between the products.  The replica comes last.
//
// One episode: for each h `weigh` makes the product's right-hand side μ π and adds up the cost, and the product is the
// next occupancy; `sample` plays the episode; then, from the last step on, a product gives the future of B, and
// `improve` the policy and the value.  `advance` counts the episode: launches take the same arguments every time.
//
// Sizes: H, S, A; T; MEANS; BLOCK threads a block; in `weigh` 32 replicas by BLOCK / 32 states.

#define STEPS (T == 1 ? 1 : H - 1)
#define WIDTH PADDED(S)
#define AT(h) (T == 1 ? 0 : (h))

struct Arguments {
    const real* cumulative;          // (STEPS, S, A, WIDTH)
    const real* initial_cumulative;  // (S)
    const real* tables;              // (m, H, S, A)
    const real* means;               // (H, S, A)
    const int* rows;                 // (episodes): which table
    long long* now;                  // (1): the episode of this block of episodes
    real* policy;                    // (H, S, A, stride)
    real* log_policy;                // (H, S, A, stride)
    real* occupancy;                 // (H, S, stride)
    real* weights;                   // (S, A, stride): μ π, then what B expects of the future
    real* value;                     // (S, stride): of the step after
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

extern "C" __global__ void __launch_bounds__(BLOCK) weigh(const Arguments* arguments) {
    SHARED_MEMORY
    const Arguments my = *arguments;
    double* parts = (double*)shared_memory;  // (2, BLOCK)
    const long long R = my.stride, r = (long long)blockIdx.x * 32 + threadIdx.x % 32;
    const int h = (int)my.h, warp = threadIdx.x / 32;
    const real* loss = my.tables + (long long)my.rows[*my.now] * (H * S * A) + h * (S * A);
    double cost = 0, mean_cost = 0;
    for (int s = warp; s < S; s += BLOCK / 32) {
        const real mu = my.occupancy[(h * S + s) * R + r];
        real here = 0, mean_here = 0;
#pragma unroll
        for (int a = 0; a < A; ++a) {
            const real w = mu * my.policy[((h * S + s) * A + a) * R + r];
            if (h + 1 < H) my.weights[(s * A + a) * R + r] = w;
            here = fused(w, loss[s * A + a], here);
            if (MEANS) mean_here = fused(w, my.means[(h * S + s) * A + a], mean_here);
        }
        cost += here;
        mean_cost += mean_here;
    }
    parts[threadIdx.x] = cost;
    parts[BLOCK + threadIdx.x] = mean_cost;
    __syncthreads();
    if (warp < 1 + MEANS) {
        double total = h > 0 ? my.episode_costs[warp * R + r] : 0;
        for (int w = 0; w < BLOCK / 32; ++w) total += parts[warp * BLOCK + w * 32 + threadIdx.x % 32];
        my.episode_costs[warp * R + r] = total;
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
    int s = first_above(unit(words.x2, words.x3), my.initial_cumulative);
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
        if (h + 1 < H) s = first_above(unit(words.x2, words.x3), my.cumulative + ((AT(h) * S + s) * A + a) * WIDTH);
    }
    for (int h = 0; h < H; ++h) {
        real estimate;
        my.factor[h * R + r] = visit(total, my.factor[h * R + r], (real)my.step_size, &estimate);
        my.estimate[h * R + r] = estimate;
    }
}

// A thread an (s, r) of step h.
extern "C" __global__ void __launch_bounds__(BLOCK) improve(const Arguments* arguments) {
    const Arguments my = *arguments;
    const long long R = my.stride, i = (long long)blockIdx.x * BLOCK + threadIdx.x;
    if (i >= S * R) return;
    const int h = (int)my.h, s = (int)(i / R);
    const long long r = i % R, at = (h * S + s) * A * R + r;
    real future[A];
#pragma unroll
    for (int a = 0; a < A; ++a) future[a] = h + 1 < H ? my.weights[(s * A + a) * R + r] : (real)0;
    my.value[i] = improve_row(
        my.policy + at, R, my.log_policy + at, R, future, my.occupancy[(h * S + s) * R + r], (real)my.step_size,
        (real)my.exploration, (real)my.bonus, my.visited[h * R + r] - s * A, my.factor[h * R + r],
        my.estimate[h * R + r]
    );
}

extern "C" __global__ void advance(const Arguments* arguments) {
    if (threadIdx.x == 0) *arguments->now += 1;
}
