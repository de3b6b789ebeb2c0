// Algorithm 1's arithmetic on one row (h, s): kernels.po_known's, operation for operation.

// One row by its log weights, whatever their size.  [eq:LM25-update]
__device__ __noinline__ void softmax_row(
    real* policy, long long between, real* log_policy, long long log_between, const real (&future)[A], real mean,
    real step_size, int visited, real estimate
) {
    real greatest = -(real)INFINITE;
    for (int a = 0; a < A; ++a) {
        real p = policy[a * between];
        real x = (p < TINY ? log_policy[a * log_between] : log(p)) + step_size * (future[a] - mean);
        if (a == visited) x -= estimate;
        log_policy[a * log_between] = x;
        greatest = greater_of(greatest, x);
    }
    real total = 0;
    for (int a = 0; a < A; ++a) total += exp(log_policy[a * log_between] - greatest);
    real shift = greatest + log(total);
    for (int a = 0; a < A; ++a) {
        real x = log_policy[a * log_between] - shift;
        log_policy[a * log_between] = x;
        policy[a * between] = exp(x);
    }
}

struct Renewed {
    real mean;   // of the future, under the old row
    real value;  // of B under the old row
    bool done;   // else `p` holds nothing and the row goes through its logarithms
};

// One (h, s): the new row in place of the old.  [eq:LM25-b] [eq:LM25-B] [eq:LM25-update]
__device__ __forceinline__ Renewed renew_row(
    real (&p)[A], const real (&future)[A], real mu, real step_size, real exploration, real bonus, int visited,
    real factor
) {
    real ratios = 0, mean = 0;
#pragma unroll
    for (int a = 0; a < A; ++a) {
        ratios += divided(p[a], fused(mu, p[a], exploration));
        mean = fused(p[a], future[a], mean);
    }
    real greatest = 0, least = (real)INFINITE, total = 0;
#pragma unroll
    for (int a = 0; a < A; ++a) {
        real x = step_size * (future[a] - mean);
        real y = p[a] * exp_small(x);
        if (a == visited) y *= factor;
        p[a] = y;
        total += y;
        greatest = greater_of(x < 0 ? -x : x, greatest);
        least = lesser_of(y, least);
    }
    const bool done = greatest <= SMALL && least >= SAFE;
    if (done) {
        real scale = divided((real)1, total);
#pragma unroll
        for (int a = 0; a < A; ++a) p[a] *= scale;
    }
    Renewed renewed = {mean, ratios * bonus + mean, done};
    return renewed;
}

// The same where actions lie `between` apart in memory; returns the value of B under the old row.
__device__ __forceinline__ real improve_row(
    real* policy, long long between, real* log_policy, long long log_between, const real (&future)[A], real mu,
    real step_size, real exploration, real bonus, int visited, real factor, real estimate
) {
    real p[A];
#pragma unroll
    for (int a = 0; a < A; ++a) p[a] = policy[a * between];
    const Renewed renewed = renew_row(p, future, mu, step_size, exploration, bonus, visited, factor);
    if (renewed.done) {
#pragma unroll
        for (int a = 0; a < A; ++a) policy[a * between] = p[a];
    } else {
        softmax_row(policy, between, log_policy, log_between, future, renewed.mean, step_size, visited, estimate);
    }
    return renewed.value;
}

// exp(-η Û) of the visited action, and η Û.  [eq:LM25-U-hat]
__device__ __forceinline__ real visit(real total, real reached, real step_size, real* out_estimate) {
    real estimate = step_size * divided(total, reached);
    *out_estimate = estimate;
    return exp_bounded(greater_of(-estimate, (real)LOWEST));
}
