// Matrix products on the tensor cores, a warp 16 rows: rows are replicas, columns the states (or pairs) that a product
// is for.  All in float64, whatever `real` is: on these cores it is as quick as float32 is without them.
//
// How an m16n8k4 product is spread over the lanes of a warp, with g = lane / 4 and q = lane % 4:
//   left   (16 x 4): lane holds (g, q) and (g + 8, q);
//   right  (4 x 8):  lane holds (q, g);
//   result (16 x 8): lane holds (g, 2q), (g, 2q + 1), (g + 8, 2q), (g + 8, 2q + 1).
// Rows g and g + 8 are replicas 2g and 2g + 1 here, so that what a lane holds of both lies side by side in memory.
// K such fours of the inner index in one instruction: the left and right parts of each, one after the other.
//
// The right sides come from shared memory as `tiles.fragments` lays them out: for each K fours, for each tile of eight
// columns, for each lane, its numbers of these fours; two at a time.
//
// Sizes: K_AT_ONCE: 1, 2 or 4.

struct __align__(2 * sizeof(real)) Pair {
    real one, other;  // of two replicas
};

template <int K>
__device__ __forceinline__ void multiply_add(double (&sum)[4], const double (&left)[2 * K], const double (&right)[K]) {
#if defined(ON_HOST)
    host_multiply_add(sum, left, right, K);
#elif __CUDA_ARCH__ >= 900
    if constexpr (K == 1) {
        asm volatile(
            "mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
            : "+d"(sum[0]), "+d"(sum[1]), "+d"(sum[2]), "+d"(sum[3])
            : "d"(left[0]), "d"(left[1]), "d"(right[0])
        );
    } else if constexpr (K == 2) {
        asm volatile(
            "mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 "
            "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
            : "+d"(sum[0]), "+d"(sum[1]), "+d"(sum[2]), "+d"(sum[3])
            : "d"(left[0]), "d"(left[1]), "d"(left[2]), "d"(left[3]), "d"(right[0]), "d"(right[1])
        );
    } else {
        asm volatile(
            "mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 "
            "{%0, %1, %2, %3}, {%4, %5, %6, %7, %8, %9, %10, %11}, {%12, %13, %14, %15}, {%0, %1, %2, %3};"
            : "+d"(sum[0]), "+d"(sum[1]), "+d"(sum[2]), "+d"(sum[3])
            : "d"(left[0]), "d"(left[1]), "d"(left[2]), "d"(left[3]), "d"(left[4]), "d"(left[5]), "d"(left[6]),
              "d"(left[7]), "d"(right[0]), "d"(right[1]), "d"(right[2]), "d"(right[3])
        );
    }
#elif __CUDA_ARCH__ >= 800
#pragma unroll
    for (int k = 0; k < K; ++k)
#pragma unroll
        for (int half = 0; half < 2; ++half)
            asm volatile(
                "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
                : "+d"(sum[2 * half]), "+d"(sum[2 * half + 1])
                : "d"(left[2 * k + half]), "d"(right[k])
            );
#else  // no such cores: the lanes hand one another what each needs
    const int lane = threadIdx.x % 32, g = lane / 4, q = lane % 4;
#pragma unroll
    for (int k = 0; k < K; ++k)
        for (int i = 0; i < 4; ++i) {
            const double one = __shfl_sync(ALL_LANES, left[2 * k], 4 * g + i);
            const double other = __shfl_sync(ALL_LANES, left[2 * k + 1], 4 * g + i);
            const double first = __shfl_sync(ALL_LANES, right[k], 8 * q + i);
            const double second = __shfl_sync(ALL_LANES, right[k], 8 * q + 4 + i);
            sum[0] = fma(one, first, sum[0]);
            sum[1] = fma(one, second, sum[1]);
            sum[2] = fma(other, first, sum[2]);
            sum[3] = fma(other, second, sum[3]);
        }
#endif
}

// sums += left right for an inner index of LENGTH fours; `left(k, one, other)` gives the k-th four's numbers.
template <int LENGTH, int K_DONE = 0, int TILES, class Left>
__device__ __forceinline__ void multiply(double (&sums)[TILES][4], const double* right, Left&& left) {
    if constexpr (K_DONE < LENGTH) {
        constexpr int REST = LENGTH - K_DONE;
        constexpr int K = K_AT_ONCE >= 4 && REST >= 4 ? 4 : K_AT_ONCE >= 2 && REST >= 2 ? 2 : 1;
        const int lane = threadIdx.x % 32;
        double of_left[2 * K];
#pragma unroll
        for (int k = 0; k < K; ++k) left(K_DONE + k, of_left[2 * k], of_left[2 * k + 1]);
#pragma unroll
        for (int tile = 0; tile < TILES; ++tile) {
            const double* from = right + (K_DONE * TILES + tile * K) * 32;
            double of_right[K];
            if constexpr (K == 1) {
                of_right[0] = from[lane];
            } else {
#pragma unroll
                for (int k = 0; k < K; k += 2) {
                    const double2 two = ((const double2*)from)[k / 2 * 32 + lane];
                    of_right[k] = two.x;
                    of_right[k + 1] = two.y;
                }
            }
            multiply_add<K>(sums[tile], of_left, of_right);
        }
        multiply<LENGTH, K_DONE + K>(sums, right, left);
    }
}

// Copy into shared memory, in pieces of 16 bytes, without waiting: `copies_arrive`, then a barrier, ends it.
__device__ __forceinline__ void start_copy(double* to, const double* from, int count) {
    for (int i = 2 * threadIdx.x; i < count; i += 2 * blockDim.x) {
#if defined(ON_HOST)
        host_start_copy(to + i, from + i);
#elif __CUDA_ARCH__ >= 800
        asm volatile(
            "cp.async.cg.shared.global [%0], [%1], 16;"
            :: "r"((unsigned)__cvta_generic_to_shared(to + i)), "l"(from + i)
            : "memory"
        );
#else
        *(double2*)(to + i) = *(const double2*)(from + i);
#endif
    }
}

__device__ __forceinline__ void copies_arrive() {
#if defined(ON_HOST)
    host_copies_arrive();
#elif __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}
