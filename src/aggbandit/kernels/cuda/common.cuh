// What all kernels share: the number type, exact arithmetic, counter-based draws, compensated sums.
//
// Sources are put together by `sources.py`: this file, then one other.  Sizes are compile-time constants (macros in
// capitals), so that loops unroll and indices fold.  FLOAT64 chooses the number type.
//
// In float64 every operation is the CPU kernels' own, in their order: fused where they fuse, nowhere else (compiled
// with --fmad=false), division correctly rounded.  A replica then follows the CPU's bits, but for logarithms and
// exponentials of rows that must go through them.
//
// The tests compile the same sources for the CPU, with threads, warps and barriers played by `host.hpp`, which defines
// ON_HOST and the few names below that a host compiler lacks.

#ifndef ON_HOST
#define SHARED_MEMORY extern __shared__ __align__(16) unsigned char shared_memory[];
#define INFINITE __longlong_as_double(0x7ff0000000000000LL)
#else
#define SHARED_MEMORY unsigned char* shared_memory = host_shared_memory();
#define INFINITE (1.0 / 0.0)
#endif

#define ALL_LANES 0xffffffffu

#if FLOAT64
typedef double real;
#define TINY 0x1p-900   // below it a probability's logarithm counts, as in kernels.po_known
#define SAFE 0x1p-899   // a product at least this comes from a factor of at least TINY
#define LOWEST -700.0   // least argument of `exp_bounded`
#else
typedef float real;
#define TINY 0x1p-100f
#define SAFE 0x1p-99f
#define LOWEST -80.0f
#endif
#define SMALL ((real)0.0625)  // where `exp_small` holds

#define VECTOR (16 / (int)sizeof(real))  // numbers in one load of 16 bytes
#define PADDED(n) (((n) + VECTOR - 1) / VECTOR * VECTOR)

struct __align__(16) Vector {
    real v[VECTOR];
};

__device__ __forceinline__ real fused(real x, real y, real z) {
#if FLOAT64
    return fma(x, y, z);
#else
    return fmaf(x, y, z);
#endif
}

// x / y, correctly rounded in float64 where neither it nor its parts leave the normal numbers: the quick path of the
// compiler's own division, without the branch to its slow one.  y is never 0, infinite, or beyond 2^±1000 here.
__device__ __forceinline__ real divided(real x, real y) {
#if defined(ON_HOST)
    return x / y;
#elif FLOAT64
    double r;
    asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(r) : "d"(y));
    double e = fma(-y, r, 1.0);
    e = fma(e, e, e);
    r = fma(r, e, r);
    e = fma(-y, r, 1.0);
    r = fma(r, e, r);
    double q = x * r;
    return fma(fma(-y, q, x), r, q);
#else
    return __fdividef(x, y);
#endif
}

// exp(x) for |x| <= SMALL; the polynomials of kernels.simd.
__device__ __forceinline__ real exp_small(real x) {
#if FLOAT64
    real q = fused(x, 0.00019839790863118316, 0.0013890742271279739);
    q = fused(q, x, 0.008333333497703425);
    q = fused(q, x, 0.0416666662498031);
    q = fused(q, x, 0.1666666666664008);
    q = fused(q, x, 0.5000000000002649);
#else
    real q = fused(x, 0.041666668f, 0.16666667f);
    q = fused(q, x, 0.5f);
#endif
    q = fused(q, x, (real)1.0);
    return fused(q, x, (real)1.0);
}

// exp(x) for -|LOWEST| <= x <= |LOWEST|
__device__ __forceinline__ real exp_bounded(real x) {
#if FLOAT64
    const double shift = 6755399441055744.0;  // 1.5 2^52: the sum's low bits are the integer nearest to x / ln 2
    double shifted = fma(x, 1.4426950408889634, shift);
    double k = shifted - shift;
    double r = fma(k, -1.9082149292705877e-10, fma(k, -0.6931471803691238, x));
    double q = fma(r, 2.500007143815505e-08, 2.763023549528393e-07);
    q = fma(q, r, 2.7557586274809706e-06);
    q = fma(q, r, 2.480149313232483e-05);
    q = fma(q, r, 0.00019841269506764886);
    q = fma(q, r, 0.0013888888943600877);
    q = fma(q, r, 0.008333333333494342);
    q = fma(q, r, 0.04166666666653026);
    q = fma(q, r, 0.16666666666666413);
    q = fma(q, r, 0.5000000000000011);
    q = fma(q, r, 1.0);
    q = fma(q, r, 1.0);
    return __longlong_as_double(__double_as_longlong(q) + (__double_as_longlong(shifted) << 52));
#else
    return expf(x);
#endif
}

__device__ __forceinline__ real greater_of(real x, real y) { return x > y ? x : y; }
__device__ __forceinline__ real lesser_of(real x, real y) { return x < y ? x : y; }

// --------------------------------------------------------------------------------------------- counter-based draws

struct Words {
    unsigned x0, x1, x2, x3;
};

#define BEFORE_FIRST_STEP 0xffffffffu

// Philox4x32-10, as kernels.philox: a pure function of (replica, episode, step, stream) and the seed.
__device__ __forceinline__ Words philox(unsigned c0, unsigned c1, unsigned c2, unsigned c3, unsigned long long seed) {
    unsigned k0 = (unsigned)seed, k1 = (unsigned)(seed >> 32);
#pragma unroll
    for (int round = 0; round < 10; ++round) {
        unsigned long long p0 = (unsigned long long)c0 * 0xD2511F53u, p1 = (unsigned long long)c2 * 0xCD9E8D57u;
        unsigned y0 = (unsigned)(p1 >> 32) ^ c1 ^ k0, y2 = (unsigned)(p0 >> 32) ^ c3 ^ k1;
        c0 = y0;
        c1 = (unsigned)p1;
        c2 = y2;
        c3 = (unsigned)p0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    Words words = {c0, c1, c2, c3};
    return words;
}

// In [0, 1): from the upper 53 of 64 bits, or in float32 the upper 24, so never above what float64 draws.
__device__ __forceinline__ real unit(unsigned high, unsigned low) {
#if FLOAT64
    return (double)(((unsigned long long)high << 21) | (low >> 11)) * 0x1p-53;
#else
    return (float)(high >> 8) * 0x1p-24f;
#endif
}

// The first a with u < π(0) + ... + π(a); beyond the rounded last sum, the last a with π(a) > 0.
__device__ __forceinline__ int draw_action(real u, const real (&policy)[A]) {
    int a = 0, last = 0;
    real below = 0;
#pragma unroll
    for (int other = 0; other < A; ++other) {
        below += policy[other];
        a += below <= u;
        if (policy[other] > 0) last = other;
    }
    return a < A ? a : last;
}

// How many of a cumulative row's entries are at most v: the index drawn, as the last possible ones are infinite.
template <int ENTRIES>
__device__ __forceinline__ int first_above(real v, const real* cumulative) {
    int first = 0, count = ENTRIES - 1;
    while (count > 0) {
        int half = count / 2;
        if (cumulative[first + half] <= v) {
            first += half + 1;
            count -= half + 1;
        } else {
            count = half;
        }
    }
    return first;
}

// Rows of dynamics are drawn from in their own order: all S states, or SUCCESSORS of them where a model names its
// successors (0 where it does not), so that a draw leads where it does on the CPU.
#define OUTCOMES (SUCCESSORS ? SUCCESSORS : S)

__device__ __forceinline__ int state_of(int outcome, int row, const int* successors) {
    return SUCCESSORS ? successors[row * (long long)OUTCOMES + outcome] : outcome;
}

// ------------------------------------------------------------------------------------------------------------ sums

// Add x to (sum, rest), exact to about one rounding however long: the bits of kernels.episode.add_compensated.
__device__ __forceinline__ void add_compensated(double x, double* sum_and_rest) {
    double old = sum_and_rest[0];
    double sum = old + x;
    double added = sum - old;
    sum_and_rest[1] += (old - (sum - added)) + (x - added);
    sum_and_rest[0] = sum;
}
