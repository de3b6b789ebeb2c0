// `learn` of po-practical (see learners.po_practical): Q̂ and V̂ of ℓ̂ under the policy that played, backwards over all
// (h, s, a), then the rows of the episode.  UNKNOWN = 1 where transitions are estimated from counts.
//
// Of each (h, s): the accumulated second moment, and the largest residual.

#define SECOND 0
#define LARGEST 1

#if UNKNOWN
struct __align__(16) Four {
    int v[4];
};
#endif

// E[V_{h+1}(s')] after every action at s.
__device__ __forceinline__ void step_back(
    const Arguments& my, const Place& at, int h, int s, const real* later, real (&future)[A]
) {
#if UNKNOWN
    real mean = 0;
    for (int t = 0; t < S; ++t) mean += later[t];
    mean = divided(mean, (real)S);
#pragma unroll
    for (int a = 0; a < A; ++a) future[a] = mean;  // one visit's worth
    const int* rows = my.counts + ((at.r * MOVES + h) * S + s) * (long long)(A * COUNTED);
#pragma unroll 2
    for (int c = 0; c < COUNTED; c += 4) {
        real v[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) v[i] = later[c + i];  // beyond S: 0
#pragma unroll
        for (int a = 0; a < A; ++a) {
            const Four n = *(const Four*)(rows + a * COUNTED + c);
#pragma unroll
            for (int i = 0; i < 4; ++i) future[a] += (real)n.v[i] * v[i];
        }
    }
#pragma unroll
    for (int a = 0; a < A; ++a) future[a] = divided(future[a], (real)rows[a * COUNTED + S] + (real)1);
#else
    const real* column = at.turned + AT(h) * ((long long)S * A * WIDTH) + s;
#pragma unroll 2
    for (int t = 0; t < S; ++t) {
        const real v = later[t];
#pragma unroll
        for (int a = 0; a < A; ++a) future[a] += column[(t * A + a) * WIDTH] * v;
    }
#endif
}

__device__ __forceinline__ void learn(const Arguments& my, const Place& at, real total) {
#if UNKNOWN
    for (int h = at.j; h < H - 1; h += GROUP)
        if (!at.idle) {
            int* row = my.counts + ((at.r * MOVES + h) * (S * A) + at.visited[h]) * (long long)COUNTED;
            row[at.visited[h + 1] / A] += 1;
            row[S] += 1;
        }
    __syncwarp();
#endif
#pragma unroll 1
    for (int h = H - 1; h >= 0; --h) {
        real* value_s = at.values + h % 2 * COUNTED;
        const real* later = at.values + (h + 1) % 2 * COUNTED;
        for (int s = at.j; s < S; s += GROUP) {
            real policy[A], loss[A], future[A];
            read_row(row_of(my, at, 0, h, s), BETWEEN, policy);
            read_row(row_of(my, at, 1, h, s), BETWEEN, loss);
#pragma unroll
            for (int a = 0; a < A; ++a) future[a] = 0;
            if (h + 1 < H) step_back(my, at, h, s, later, future);
            const int seen = at.visited[h] - s * A;  // the action at the visited state, and out of range elsewhere
            real value = 0, chosen = 0, told = 0;
#pragma unroll
            for (int a = 0; a < A; ++a) {
                future[a] += loss[a];
                value += policy[a] * future[a];
                if (a == seen) {
                    chosen = future[a];
                    told = loss[a];
                }
            }
            if (at.idle) continue;
            value_s[s] = value;
            if (seen >= 0 && seen < A) {
                at.advantage[h] = chosen - value;
                at.told[h] = told;
            }
        }
        __syncwarp();
    }
    real surprise = total;
    for (int h = 0; h < H; ++h) surprise -= at.told[h];
    for (int h = at.j; h < H; h += GROUP) {
        if (at.idle) continue;
        const int s = at.visited[h] / A, a = at.visited[h] - s * A;
        real* policy_row = row_of(my, at, 0, h, s);
        real* marks = my.marks + ((at.r * H + h) * S + s) * MARKS;
        row_of(my, at, 1, h, s)[a * BETWEEN] = at.told[h] + MODEL_RATE * surprise / (real)H;
        const real now = policy_row[a * BETWEEN], keep = (real)my.keep;
        const real residual = at.advantage[h] + surprise;
        const real estimate = residual / (now + (real)my.exploration);
        const real second = keep * marks[SECOND] + now * estimate * estimate;
        const real largest = greater_of(keep * marks[LARGEST], residual < 0 ? -residual : residual);
        marks[SECOND] = second;
        marks[LARGEST] = largest;
        improve_row(my, my.score + ((at.r * H + h) * S + s) * A, policy_row, a, estimate, second, largest);
    }
    __syncwarp();
}
