/* What the kernels need besides mathematics: integer helpers, scratch memory, growing lists, the way out. */
#ifndef LC_SUPPORT_H
#define LC_SUPPORT_H
/* gcc (seen in 12.2) makes copies of a loop that is marked `omp simd`, and puts them in the wrong order: of
   s[i] = b[i]; b[i] = a[i]; it stored a in s. Nothing here is faster for being a call of memcpy. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-tree-loop-distribute-patterns")
#endif
#include <stdlib.h>
#include <string.h>
#ifdef __linux__
#include <sys/mman.h>
#include <sys/syscall.h>
#endif
#ifdef _OPENMP
#include <omp.h>
static inline int lc_thread(void) { return omp_get_thread_num(); }
#else
#pragma GCC diagnostic ignored "-Wunknown-pragmas"
static inline int lc_thread(void) { return 0; }
#endif
#define LC_USED __attribute__((unused))
#define LC_CALLED __attribute__((noinline, unused)) /* written out, it would take the C compiler long */
#define LC_PRAGMA(text) _Pragma(#text)
#define LC_UNROLL(n) LC_PRAGMA(GCC unroll n)

/* `side` vectors of as many numbers are turned, rows into columns: blocks of h by h change places across the diagonal.
   `lanes` is a vector of integers as large as the numbers. */
#define LC_TURN_SQUARE(row, side, vector, lanes) \
    do { \
        lanes lane; \
        LC_UNROLL(16) for (int i = 0; i < (side); i++) lane[i] = i; \
        LC_UNROLL(4) for (int h = (side) / 2; h; h /= 2) { \
            const lanes odd = (lane & h) != 0, other = lane ^ h; \
            LC_UNROLL(16) for (int i = 0; i < (side); i++) \
                if (!(i & h)) { \
                    const vector x = row[i], y = row[i | h]; \
                    row[i] = __builtin_shuffle(x, y, (odd & ((side) + other)) | (~odd & lane)); \
                    row[i | h] = __builtin_shuffle(x, y, (odd & ((side) + lane)) | (~odd & other)); \
                } \
        } \
    } while (0)

/* Underflow to 0 while a gradient is computed. Cotangents fade geometrically in loops, and a processor takes many
   times as long for numbers below the smallest normal one (1e-38 in float32), which no gradient needs. Operands
   that are such numbers keep their value. The memory barriers hold the arithmetic inside. */
#ifdef __SSE__
#include <xmmintrin.h>
LC_USED static inline unsigned lc_flush(void)
{
    const unsigned mode = _mm_getcsr();
    _mm_setcsr(mode | 0x8000);
    __asm__ volatile("" ::: "memory");
    return mode;
}
LC_USED static inline void lc_gradual(unsigned mode) { __asm__ volatile("" ::: "memory"); _mm_setcsr(mode); }
LC_USED static inline unsigned lc_rounding(void) { return _mm_getcsr(); }
LC_USED static inline void lc_round_as(unsigned mode)
{
    if (mode != _mm_getcsr()) lc_gradual(mode);
    __asm__ volatile("" ::: "memory");
}
LC_USED static inline void lc_round_again(unsigned own)
{
    if ((own & 0x8000u) && lc_thread()) own &= ~0x8000u;
    if (own != _mm_getcsr()) lc_gradual(own);
}
#else
LC_USED static inline unsigned lc_flush(void) { return 0; }
LC_USED static inline void lc_gradual(unsigned mode) { (void)mode; }
LC_USED static inline unsigned lc_rounding(void) { return 0; }
LC_USED static inline void lc_round_as(unsigned mode) { (void)mode; }
LC_USED static inline void lc_round_again(unsigned own) { (void)own; }
#endif

/* What a parallel loop has of its caller: how it rounds, where it runs, and where each helper ran last (and 1; 0: nobody
   knows). */
typedef struct { unsigned mode; int cpu; int *helpers; } lc_caller;

/* Linux may wake two threads on one processor and leave them there for tens of milliseconds while another one idles (the
   idle ones of a virtual machine look taken). As who waits for the others does not sleep at once, each of them then has
   what a turn of the scheduler leaves, and a loop takes five times as long as it should. So a helper that finds itself
   beside its caller keeps off that processor for the next LC_APART loops, and a caller that finds itself where a helper ran
   last moves before it wakes the helper; where it may run is then what it was. */
#if defined(__linux__) && defined(_OPENMP)
#define LC_HELPERS 64
#define LC_APART 256
typedef struct { unsigned long bits[1024 / 8 / sizeof(long)]; long bytes; } lc_cpus;
extern int sched_getcpu(void);
extern long syscall(long number, ...);
__attribute__((weak, visibility("hidden"))) __thread int lc_helpers[LC_HELPERS];
/* Of a helper that keeps off a processor: where it might run, where it may, and for how many loops. */
__attribute__((weak, visibility("hidden"))) __thread struct { lc_cpus all, some; int loops; } lc_apart;

LC_USED static int lc_allowed(lc_cpus *cpus)
{
    cpus->bytes = syscall(SYS_sched_getaffinity, 0, sizeof cpus->bits, cpus->bits);
    return cpus->bytes > 0;
}
LC_USED static int lc_allow(const lc_cpus *cpus) { return !syscall(SYS_sched_setaffinity, 0, cpus->bytes, cpus->bits); }

/* Takes this thread off the processors of its caller and of the helpers before `threads`. `all`: where it might run till
   now; `some`: where it may. False where nothing would be left, or the system says no. */
LC_USED static __attribute__((noinline, cold)) int lc_keep_off(lc_cpus *all, lc_cpus *some, lc_caller caller, int64_t threads)
{
    const unsigned bits = 8 * sizeof(long);
    unsigned long left = 0;
    if (!lc_allowed(all)) return 0;
    *some = *all;
    for (int64_t k = 0; k < threads && k < LC_HELPERS; k++) {
        const int cpu = k ? caller.helpers[k] - 1 : caller.cpu;
        if (cpu >= 0 && cpu < 8 * some->bytes) some->bits[(unsigned)cpu / bits] &= ~(1ul << (unsigned)cpu % bits);
    }
    for (size_t k = 0; k < (size_t)some->bytes / sizeof(long); k++) left |= some->bits[k];
    return left && lc_allow(some);
}

/* A helper may run again where it might, unless somebody else has said meanwhile where it may (and something else than
   we had: the same cannot be told apart). */
LC_USED static __attribute__((noinline, cold)) void lc_come_back(void)
{
    lc_cpus now;
    lc_apart.loops = 0;
    if (lc_allowed(&now) && now.bytes == lc_apart.some.bytes && !memcmp(now.bits, lc_apart.some.bits, (size_t)now.bytes))
        lc_allow(&lc_apart.all);
}

/* Before a loop of so many threads. */
LC_USED static inline lc_caller lc_calling(int64_t threads)
{
    lc_caller caller = {lc_rounding(), -1, 0};
    if (threads < 2) return caller;
    caller.cpu = sched_getcpu(), caller.helpers = lc_helpers;
    for (int64_t k = 1; k < threads && k < LC_HELPERS; k++)
        if (caller.helpers[k] == caller.cpu + 1) {
            lc_cpus all, some;
            if (lc_keep_off(&all, &some, caller, threads)) lc_allow(&all);
            caller.cpu = sched_getcpu();
            break;
        }
    return caller;
}

LC_USED static inline void lc_settle(lc_caller caller)
{
    const int number = lc_thread();
    if (!number || number >= LC_HELPERS || !caller.helpers) return;
    if (lc_apart.loops && !--lc_apart.loops) lc_come_back();
    if (sched_getcpu() == caller.cpu) {
        if (lc_apart.loops) lc_come_back(); /* it keeps off another one */
        if (lc_keep_off(&lc_apart.all, &lc_apart.some, caller, 1)) lc_apart.loops = LC_APART;
    }
    caller.helpers[number] = sched_getcpu() + 1;
}
#else
LC_USED static inline lc_caller lc_calling(int64_t threads) { (void)threads; return (lc_caller){lc_rounding(), -1, 0}; }
LC_USED static inline void lc_settle(lc_caller caller) { (void)caller; }
#endif

/* A thread rounds as its caller does, and runs beside it. Returns how it rounded. One that is born while a gradient is
   computed begins with its caller's mode: it does not keep that. */
LC_USED static inline unsigned lc_join(lc_caller caller)
{
    const unsigned own = lc_rounding();
    lc_settle(caller);
    lc_round_as(caller.mode);
    return own;
}

typedef struct { int32_t code; int64_t info[4]; } lc_fault_t;

LC_USED static inline int64_t lc_smaller(int64_t a, int64_t b) { return a < b ? a : b; }
/* Which place of a row that begins at `lo` has been found, if one has (see lc_first). */
LC_USED static inline int64_t lc_place(int64_t found, int64_t lo, int64_t none) { return found < 0 ? none : lo + found; }

/* Of a vector: the lane that is so many behind the first, or the nearest. */
LC_USED static inline int lc_lane_at(int64_t n, int lanes) { return n < 0 ? 0 : n < lanes ? (int)n : lanes; }
LC_USED static inline int64_t lc_larger(int64_t a, int64_t b) { return a > b ? a : b; }

/* Has memory fetch what is read next, of a row no more elements than LC_AHEAD: a core's own cache has to hold it. */
enum { LC_AHEAD = 16384 };
LC_USED static inline void lc_ahead(const void *from, int64_t bytes)
{
    for (int64_t k = 0; k < bytes; k += 64) __builtin_prefetch((const char *)from + k, 0, 2);
}

/* What has gone past the caches (past.h) is there for all threads. */
#ifdef __SSE2__
#define LC_FENCE() __builtin_ia32_sfence()
#else
#define LC_FENCE() ((void)0)
#endif

/* a ** b by squaring; wraps as NumPy's. A negative exponent leaves 0, but for a = 1 and -1. */
LC_USED static inline int64_t lc_pow_i64(int64_t a, int64_t b)
{
    if (b < 0) return a == 1 ? 1 : a == -1 ? (b % 2 ? -1 : 1) : 0;
    uint64_t x = (uint64_t)a, y = 1;
    for (; b; b >>= 1, x *= x) y = b & 1 ? y * x : y;
    return (int64_t)y;
}

/* NaN wins, as in NumPy; `reduction(max:)` would drop it. */
#pragma omp declare reduction(lc_maxf : float : omp_out = lc_maxf(omp_out, omp_in)) initializer(omp_priv = -INFINITY)
#pragma omp declare reduction(lc_minf : float : omp_out = lc_minf(omp_out, omp_in)) initializer(omp_priv = INFINITY)
#pragma omp declare reduction(lc_max : double : omp_out = lc_max(omp_out, omp_in)) initializer(omp_priv = -INFINITY)
#pragma omp declare reduction(lc_min : double : omp_out = lc_min(omp_out, omp_in)) initializer(omp_priv = INFINITY)

/* Room for an array at the end of *room bytes: returns where, 64-byte aligned. SIZE_MAX says too much and stays. */
LC_USED static size_t lc_reserve(size_t *room, size_t element, const int64_t *extents, int count)
{
    size_t at = *room, bytes = element;
    for (int k = 0; k < count; k++) {
        const size_t extent = extents[k] > 0 ? (size_t)extents[k] : 0;
        if (__builtin_mul_overflow(bytes, extent, &bytes)) at = SIZE_MAX;
    }
    if (at == SIZE_MAX || bytes > SIZE_MAX / 2 || __builtin_add_overflow(at, (bytes + 63) & ~(size_t)63, room)) *room = SIZE_MAX;
    return at;
}

/* Repeats what was reserved since `from`, one copy a thread; returns the size of a copy. */
LC_USED static size_t lc_copies(size_t *room, size_t from, int threads)
{
    size_t step = *room == SIZE_MAX ? 0 : *room - from, all;
    if (*room != SIZE_MAX)
        if (__builtin_mul_overflow(step, (size_t)threads, &all) || __builtin_add_overflow(from, all, room)) *room = SIZE_MAX;
    return step;
}

/* The arena of one call is kept for the next: pages that are given back have to be cleared when they are taken again,
   which takes longer than most kernels work on them. A library keeps one, the last; calls at the same time take their
   own. What lies behind the first LC_KEPT bytes is given back: an arena has room for ways that a call does not take, too,
   which are never touched. Where the system maps memory, arenas that are no small ones have pages of their own, so that
   no other allocation is held up by them. */
#define LC_KEPT ((size_t)1 << 26)
#define LC_MAPPED ((size_t)1 << 20)
typedef struct { size_t room; char rest[56]; } lc_block;
__attribute__((weak, visibility("hidden"))) lc_block *lc_kept; /* one for all parts that a library is compiled in */

LC_USED static void lc_drop(lc_block *block)
{
#ifdef MADV_HUGEPAGE
    if (block && block->room >= LC_MAPPED) {
        munmap(block, block->room + sizeof(lc_block));
        return;
    }
#endif
    free(block);
}

LC_USED static char *lc_take(size_t room)
{
    lc_block *block = __atomic_exchange_n(&lc_kept, 0, __ATOMIC_ACQUIRE);
    if (block && block->room >= room) return (char *)(block + 1);
    lc_drop(block);
    if (room > PTRDIFF_MAX - 4096) return 0;
    room = (room + 63) & ~(size_t)63;
#ifdef MADV_HUGEPAGE
    if (room >= LC_MAPPED) {
        block = mmap(0, room + sizeof(lc_block), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (block == MAP_FAILED) return 0;
        madvise(block, room + sizeof(lc_block), MADV_HUGEPAGE);
    } else
#endif
        block = aligned_alloc(64, room + sizeof(lc_block));
    if (!block) return 0;
    block->room = room;
    return (char *)(block + 1);
}

LC_USED static void lc_give(char *arena)
{
    lc_block *block = arena ? (lc_block *)arena - 1 : 0;
#ifdef MADV_HUGEPAGE
    if (block && block->room > LC_KEPT)
        madvise((char *)block + LC_KEPT, block->room + sizeof(lc_block) - LC_KEPT, MADV_DONTNEED);
    if (block) block = __atomic_exchange_n(&lc_kept, block, __ATOMIC_ACQ_REL);
#else
    if (block && block->room <= LC_KEPT) block = __atomic_exchange_n(&lc_kept, block, __ATOMIC_ACQ_REL);
#endif
    lc_drop(block);
}

LC_USED __attribute__((destructor)) static void lc_give_back(void)
{
    lc_drop(__atomic_exchange_n(&lc_kept, 0, __ATOMIC_ACQUIRE));
}

/* Makes room for `count` rows of a list, half as much again as it had; what is there stays. */
LC_USED static int lc_grow(void **list, int64_t *room, int64_t count, size_t element, const int64_t *extents, int axes)
{
    int64_t wanted = *room + *room / 2 + 8;
    if (wanted < count) wanted = count;
    size_t bytes = 0, none = lc_reserve(&bytes, element * (size_t)wanted, extents, axes);
    if (none == SIZE_MAX || bytes > PTRDIFF_MAX || (uint64_t)wanted > SIZE_MAX / 2 / element) return 0;
    void *grown = realloc(*list, bytes ? bytes : 64);
    if (!grown) return 0;
    *list = grown, *room = wanted;
    return 1;
}

LC_USED static int lc_leave(lc_call *call, const lc_fault_t *fault)
{
    const int code = fault ? fault->code : 0;
    if (call) {
        call->code = code;
        for (int k = 0; fault && k < 4; k++) call->info[k] = fault->info[k];
    }
    return code;
}
#endif
