// CUDA's threads, warps and barriers on a CPU, to test kernels where there is no GPU.
//
// A thread is a fiber.  Blocks run one after the other; in a block each fiber runs until a barrier, then the next one
// does.  The order of lanes changes from barrier to barrier, and warps lag behind one another, so that a missing barrier
// shows.  A barrier that some
// thread of the warp (or block) never reaches ends the program with a message.

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ucontext.h>
#include <vector>

#define ON_HOST
#define __device__
#define __global__
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __align__(n) alignas(n)
#define __launch_bounds__(...)
#define __restrict__

struct Dim {
    unsigned x, y, z;
};
struct double2 {
    double x, y;
};
struct Copy {
    double* to;
    const double* from;
};
struct Fiber {
    ucontext_t context;
    std::vector<char> stack;
    enum { READY, AT_WARP, AT_BLOCK, DONE } state;
    std::vector<Copy> copies;  // begun and not waited for
};

static thread_local struct Machine {
    std::vector<Fiber> fibers;
    ucontext_t scheduler;
    unsigned current, block_size, turn;
    Dim grid, block;
    std::vector<unsigned char> shared;
    std::vector<double> exchanged, fragments;
    void (*kernel)(const void*);
    const void* arguments;
} machine;

static inline unsigned char* host_shared_memory() {
    auto raw = machine.shared.data();
    return raw + (16 - (size_t)raw % 16) % 16;
}
static inline Dim host_thread() { return {machine.current, 0, 0}; }
#define threadIdx (host_thread())
#define blockIdx (machine.block)
#define blockDim (Dim{machine.block_size, 1, 1})
#define gridDim (machine.grid)

static void host_pause(int why) {
    Fiber& fiber = machine.fibers[machine.current];
    fiber.state = (decltype(fiber.state))why;
    swapcontext(&fiber.context, &machine.scheduler);
}
static inline void __syncthreads() { host_pause(Fiber::AT_BLOCK); }
static inline void __syncwarp(unsigned mask = 0xffffffffu) {
    if (mask != 0xffffffffu) std::fprintf(stderr, "only whole warps are played here\n"), std::abort();
    host_pause(Fiber::AT_WARP);
}
template <class Value>
static inline Value host_exchange(Value mine, unsigned source) {
    static_assert(sizeof(Value) <= sizeof(double), "one slot a lane");
    unsigned warp = machine.current / 32 * 32;
    std::memcpy(&machine.exchanged[machine.current], &mine, sizeof mine);
    __syncwarp();
    Value theirs;
    std::memcpy(&theirs, &machine.exchanged[warp + source % 32], sizeof theirs);
    __syncwarp();
    return theirs;
}
template <class Value>
static inline Value __shfl_sync(unsigned, Value mine, int source, int width = 32) {
    unsigned lane = machine.current % 32;
    return host_exchange(mine, lane / width * width + (unsigned)source % width);
}
template <class Value>
static inline Value __shfl_xor_sync(unsigned, Value mine, int mask) {
    return host_exchange(mine, (machine.current % 32) ^ mask);
}
static inline unsigned __ballot_sync(unsigned, bool mine) {
    unsigned warp = machine.current / 32 * 32, votes = 0;
    machine.exchanged[machine.current] = mine;
    __syncwarp();
    for (unsigned lane = 0; lane < 32; ++lane) votes |= (unsigned)(machine.exchanged[warp + lane] != 0) << lane;
    __syncwarp();
    return votes;
}
// A warp's matrix product, a lane's numbers as PTX spreads those of `mma.sync.m16n8k4` and its multiples in k.
static inline void host_multiply_add(double* sum, const double* left, const double* right, int fours) {
    unsigned warp = machine.current / 32 * 32, g = machine.current % 32 / 4, q = machine.current % 4;
    double* all = machine.fragments.data();
    for (int i = 0; i < fours; ++i) {
        double* mine = all + (machine.current * 4 + i) * 3;
        mine[0] = left[2 * i], mine[1] = left[2 * i + 1], mine[2] = right[i];
    }
    __syncwarp();
    for (int k = 0; k < 4 * fours; ++k) {
        auto of = [&](unsigned row_or_column, int which) {
            return all[((warp + row_or_column * 4 + k % 4) * 4 + k / 4) * 3 + which];
        };
        for (int i = 0; i < 4; ++i) sum[i] = std::fma(of(g, i / 2), of(2 * q + i % 2, 2), sum[i]);
    }
    __syncwarp();
}
// A copy that has not arrived before somebody waits for it.
static inline void host_start_copy(double* to, const double* from) {
    if ((size_t)to % 16 || (size_t)from % 16) std::fprintf(stderr, "a copy is not aligned\n"), std::abort();
    machine.fibers[machine.current].copies.push_back({to, from});
}
static inline void host_copies_arrive() {
    for (auto& copy : machine.fibers[machine.current].copies) std::memcpy(copy.to, copy.from, 16);
    machine.fibers[machine.current].copies.clear();
}
static inline int min(int x, int y) { return x < y ? x : y; }
static inline bool __any_sync(unsigned mask, bool mine) { return __ballot_sync(mask, mine) != 0; }
static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline int __clz(unsigned x) { return x ? __builtin_clz(x) : 32; }
static inline int __ffs(unsigned x) { return __builtin_ffs((int)x); }
static inline long long __double_as_longlong(double x) {
    long long bits;
    std::memcpy(&bits, &x, 8);
    return bits;
}
static inline double __longlong_as_double(long long bits) {
    double x;
    std::memcpy(&x, &bits, 8);
    return x;
}

static void host_enter() {
    machine.kernel(machine.arguments);
    machine.fibers[machine.current].state = Fiber::DONE;
    swapcontext(&machine.fibers[machine.current].context, &machine.scheduler);
}

static void host_release(unsigned first, unsigned last, int from) {
    for (unsigned i = first; i < last; ++i)
        if (machine.fibers[i].state == from) machine.fibers[i].state = Fiber::READY;
}

// Whether nobody between `first` and `last` is still to come to a barrier at which somebody waits.
static bool host_all_wait(unsigned first, unsigned last, int why) {
    bool some = false;
    for (unsigned i = first; i < last; ++i) {
        int state = machine.fibers[i].state;
        if (state != why && state != Fiber::DONE) return false;
        some = some || state == why;
    }
    return some;
}

static void host_run(void (*kernel)(const void*), const void* arguments, unsigned grid, unsigned block, size_t shared) {
    Machine& m = machine;
    m.kernel = kernel, m.arguments = arguments, m.grid = {grid, 1, 1}, m.block_size = block, m.turn = 0;
    m.exchanged.assign(block, 0.0);
    m.fragments.assign(12 * block, 0.0);
    m.fibers.resize(block);
    for (auto& fiber : m.fibers) fiber.stack.resize(1 << 17);
    for (unsigned b = 0; b < grid; ++b) {
        m.block = {b, 0, 0};
        m.shared.assign(shared + 16, 0xff);  // not a number to whoever reads before writing
        for (auto& fiber : m.fibers) {
            fiber.state = Fiber::READY;
            getcontext(&fiber.context);
            fiber.context.uc_stack.ss_sp = fiber.stack.data();
            fiber.context.uc_stack.ss_size = fiber.stack.size();
            fiber.context.uc_link = nullptr;
            makecontext(&fiber.context, host_enter, 0);
        }
        for (bool alive = true; alive;) {
            bool moved = false;
            alive = false;
            // forwards or backwards from some lane on: another order every time, and the same in every run
            m.turn = m.turn * 1664525u + 1013904223u;
            const unsigned from = (m.turn >> 8) % block;
            const bool backwards = m.turn >> 31;
            for (unsigned n = 0; n < block; ++n) {
                const unsigned i = (from + (backwards ? block - n : n)) % block;
                if (m.fibers[i].state != Fiber::READY) continue;
                if (m.turn >> (i / 32 + 12) & 1) {  // this warp lags behind the others
                    moved = true;
                    continue;
                }
                m.current = i;
                swapcontext(&m.scheduler, &m.fibers[i].context);
                moved = true;
            }
            for (unsigned first = 0; first < block; first += 32)
                if (host_all_wait(first, first + 32 < block ? first + 32 : block, Fiber::AT_WARP)) {
                    host_release(first, first + 32 < block ? first + 32 : block, Fiber::AT_WARP);
                    moved = true;
                }
            if (host_all_wait(0, block, Fiber::AT_BLOCK)) host_release(0, block, Fiber::AT_BLOCK), moved = true;
            for (auto& fiber : m.fibers) alive = alive || fiber.state != Fiber::DONE;
            if (alive && !moved) std::fprintf(stderr, "a barrier is not reached by all\n"), std::abort();
        }
    }
}

#define HOST_LAUNCHER(kernel)                                                                                \
    extern "C" void launch_##kernel(const void* arguments, unsigned grid, unsigned block, unsigned shared) { \
        host_run((void (*)(const void*))kernel, arguments, grid, block, shared);                             \
    }
