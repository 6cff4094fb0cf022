/* Where the results of calls lie: memory of results that nobody has any more is kept for the next ones.

   A page that is given back has to be cleared by the system when it is taken again, which takes several times as long as
   a kernel writes to it. So NumPy allocates large results through this handler (NEP 49). At most KEPT bytes are kept, in
   SLOTS blocks; a block serves what it is at most a quarter too large for. Lock-free: a slot is taken and filled by one
   exchange. */

#define Py_LIMITED_API 0x030b0000
#include <Python.h>
#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define NPY_TARGET_VERSION NPY_2_0_API_VERSION
#include <numpy/ndarraytypes.h>
#include <stdlib.h>
#include <string.h>
#ifdef __linux__
#include <sys/mman.h>
#endif
#include "kept.h"

#define SLOTS 16
#define KEPT ((size_t)1 << 27)
#define MAPPED ((size_t)1 << 20) /* bytes that have pages of their own, large ones where there are */

typedef struct { size_t room; char rest[56]; } block; /* in front of the memory, which it leaves aligned */

static block *slots[SLOTS];
static size_t kept;
static unsigned turn;

static void drop(block *b)
{
#ifdef MADV_HUGEPAGE
    if (b && b->room >= MAPPED) {
        munmap(b, b->room + sizeof *b);
        return;
    }
#endif
    free(b);
}

static block *out_of(int slot)
{
    block *b = __atomic_exchange_n(&slots[slot], NULL, __ATOMIC_ACQUIRE);
    if (b) __atomic_sub_fetch(&kept, b->room, __ATOMIC_RELAXED);
    return b;
}

/* Keeps a block in a slot, and gives back what was there. */
static void into(int slot, block *b)
{
    __atomic_add_fetch(&kept, b->room, __ATOMIC_RELAXED);
    block *other = __atomic_exchange_n(&slots[slot], b, __ATOMIC_ACQ_REL);
    if (other) __atomic_sub_fetch(&kept, other->room, __ATOMIC_RELAXED);
    drop(other);
}

static void *take(void *context, size_t size)
{
    (void)context;
    if (size > PTRDIFF_MAX - 4096) return NULL;
    const size_t room = (size + 63) & ~(size_t)63;
    for (int k = 0; k < SLOTS; k++) {
        block *b = out_of(k);
        if (!b) continue;
        if (b->room >= room && b->room - room <= room / 4) return b + 1;
        into(k, b);
    }
    block *b;
#ifdef MADV_HUGEPAGE
    if (room >= MAPPED) {
        b = mmap(NULL, room + sizeof *b, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (b == MAP_FAILED) return NULL;
        madvise(b, room + sizeof *b, MADV_HUGEPAGE);
    } else
#endif
        b = aligned_alloc(64, room + sizeof *b);
    if (!b) return NULL;
    b->room = room;
    return b + 1;
}

static void give(void *context, void *memory, size_t size)
{
    (void)context, (void)size;
    if (!memory) return;
    block *b = (block *)memory - 1;
    if (b->room > KEPT / 2) {
        drop(b);
        return;
    }
    int slot = 0;
    while (slot < SLOTS && __atomic_load_n(&slots[slot], __ATOMIC_RELAXED)) slot++;
    if (slot == SLOTS) slot = (int)(__atomic_fetch_add(&turn, 1, __ATOMIC_RELAXED) % SLOTS);
    into(slot, b);
    for (int k = 1; k < SLOTS && __atomic_load_n(&kept, __ATOMIC_RELAXED) > KEPT; k++) drop(out_of((slot + k) % SLOTS));
}

static void *take_zeros(void *context, size_t count, size_t size)
{
    size_t all;
    void *memory = __builtin_mul_overflow(count, size, &all) ? NULL : take(context, all);
    return memory ? memset(memory, 0, all) : NULL;
}

static void *take_again(void *context, void *memory, size_t size)
{
    if (!memory) return take(context, size);
    const size_t room = ((block *)memory - 1)->room;
    if (size <= room) return memory;
    void *more = take(context, size);
    if (!more) return NULL;
    memcpy(more, memory, room);
    give(context, memory, room);
    return more;
}

static PyDataMem_Handler handler = {"layerc_results", 1, {NULL, take, take_zeros, take_again, give}};

PyObject *results_handler(void) { return PyCapsule_New(&handler, "mem_handler", NULL); }

size_t results_kept(void) { return __atomic_load_n(&kept, __ATOMIC_RELAXED); }

void results_release(void)
{
    for (int k = 0; k < SLOTS; k++) drop(out_of(k));
}
