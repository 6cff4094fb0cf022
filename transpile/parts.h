/* Part of a vector: what a loop over vectors leaves, or its ends have. lc_among loads the elements of some lanes, and zeros;
   lc_back stores those; lc_some and lc_put do so with the first n. Nothing else is touched. LC_REAL is the type,
   LC_AS(name) a name for it. Where there are no masks a vector has one lane, so that nothing is left. */
#if defined(__AVX512F__) && defined(__GNUC__) && !defined(__clang__)
#define LC_LANES 1 /* a vector has several */
#define LC_PART_f32(name) __builtin_ia32_##name##ups512_mask
#define LC_PART_f64(name) __builtin_ia32_##name##upd512_mask
typedef LC_REAL LC_AS(lc_part) __attribute__((vector_size(64), may_alias));

typedef unsigned LC_AS(lc_mask);

LC_USED static inline LC_AS(lc_mask) LC_AS(lc_before)(int lane) { return (1u << lane) - 1; }

LC_USED static inline void LC_AS(lc_among)(void *to, const void *from, LC_AS(lc_mask) lanes)
{
    *(LC_AS(lc_part) *)to = LC_AS(LC_PART)(load)(from, (LC_AS(lc_part)){0}, lanes);
}

LC_USED static inline void LC_AS(lc_back)(void *to, const void *from, LC_AS(lc_mask) lanes)
{
    LC_AS(LC_PART)(store)(to, *(const LC_AS(lc_part) *)from, lanes);
}
#undef LC_PART_f32
#undef LC_PART_f64
#elif defined(__AVX2__) && defined(__GNUC__) && !defined(__clang__)
#define LC_LANES 1
#define LC_EACH_f32 {0, 1, 2, 3, 4, 5, 6, 7}
#define LC_EACH_f64 {0, 1, 2, 3}
#define LC_LOAD_f32 __builtin_ia32_maskloadps256
#define LC_LOAD_f64 __builtin_ia32_maskloadpd256
#define LC_KEEP_f32 __builtin_ia32_maskstoreps256
#define LC_KEEP_f64 __builtin_ia32_maskstorepd256
#define LC_SIGNS_f32 __builtin_ia32_movmskps256
#define LC_SIGNS_f64 __builtin_ia32_movmskpd256
#define LC_COUNT_f32 int32_t
#define LC_COUNT_f64 long long
typedef LC_REAL LC_AS(lc_part) __attribute__((vector_size(32), may_alias));
typedef LC_AS(LC_COUNT) LC_AS(lc_mask) __attribute__((vector_size(32)));

LC_USED static inline LC_AS(lc_mask) LC_AS(lc_before)(int lane)
{
    const LC_AS(lc_mask) each = LC_AS(LC_EACH);
    return each < (LC_AS(LC_COUNT))lane;
}

LC_USED static inline void LC_AS(lc_among)(void *to, const void *from, LC_AS(lc_mask) lanes)
{
    *(LC_AS(lc_part) *)to = LC_AS(LC_LOAD)(from, lanes);
}

/* Some processors take many times as long for a masked store as for a store. What is stored may be of another type as
   wide, which is why nothing is assigned. */
LC_USED static inline void LC_AS(lc_put)(void *to, const void *from, int n)
{
    const LC_REAL *f = from;
    LC_REAL *t = to;
    if (sizeof *t == 4 && n & 4) memcpy(t, f, 4 * sizeof *t), t += 4, f += 4;
    if (n & 2) memcpy(t, f, 2 * sizeof *t), t += 2, f += 2;
    if (n & 1) memcpy(t, f, sizeof *t);
}

LC_USED static inline void LC_AS(lc_back)(void *to, const void *from, LC_AS(lc_mask) lanes)
{
    const LC_AS(lc_part) all = *(const LC_AS(lc_part) *)from;
    if (LC_AS(LC_SIGNS)((LC_AS(lc_part))lanes) + 1 == 1 << sizeof all / sizeof(LC_REAL)) memcpy(to, &all, sizeof all);
    else LC_AS(LC_KEEP)(to, lanes, all);
}
#undef LC_EACH_f32
#undef LC_EACH_f64
#undef LC_SIGNS_f32
#undef LC_SIGNS_f64
#undef LC_LOAD_f32
#undef LC_LOAD_f64
#undef LC_KEEP_f32
#undef LC_KEEP_f64
#undef LC_COUNT_f32
#undef LC_COUNT_f64
#else
#define LC_LANES 0
typedef LC_REAL LC_AS(lc_part) __attribute__((vector_size(sizeof(LC_REAL)), may_alias));
enum { LC_AS(lc_wide) = 1, LC_AS(lc_abreast) = 1 << 30 };
LC_USED static inline void LC_AS(lc_some)(void *to, const void *from, int n) { memcpy(to, from, (size_t)n * sizeof(LC_REAL)); }
LC_USED static inline void LC_AS(lc_put)(void *to, const void *from, int n) { memcpy(to, from, (size_t)n * sizeof(LC_REAL)); }
#endif

#if LC_LANES
enum { LC_AS(lc_wide) = sizeof(LC_AS(lc_part)) / sizeof(LC_REAL), LC_AS(lc_abreast) = 4 * LC_AS(lc_wide) };
LC_USED static inline void LC_AS(lc_some)(void *to, const void *from, int n) { LC_AS(lc_among)(to, from, LC_AS(lc_before)(n)); }
#if defined(__AVX512F__)
LC_USED static inline void LC_AS(lc_put)(void *to, const void *from, int n) { LC_AS(lc_back)(to, from, LC_AS(lc_before)(n)); }
#endif
#endif

/* The first n lanes, from places that are some elements apart, and back to them; those between are left alone. */
LC_USED static inline void LC_AS(lc_pick)(void *to, const void *from, int64_t step, int n)
{
    for (int l = 0; l < n; l++) memcpy((LC_REAL *)to + l, (const LC_REAL *)from + l * step, sizeof(LC_REAL));
    for (int l = n; l < LC_AS(lc_wide); l++) memset((LC_REAL *)to + l, 0, sizeof(LC_REAL));
}
LC_USED static inline void LC_AS(lc_lay)(void *to, const void *from, int64_t step, int n)
{
    for (int l = 0; l < n; l++) memcpy((LC_REAL *)to + l * step, (const LC_REAL *)from + l, sizeof(LC_REAL));
}

/* The first n of the truths that lie side by side, each in a lane of its own: gcc knows no vectors of bytes beside those
   of numbers. */
#define LC_WORD_f32 int32_t
#define LC_WORD_f64 int64_t
typedef LC_AS(LC_WORD) LC_AS(lc_word);
LC_USED static inline void LC_AS(lc_truths)(LC_AS(lc_word) *to, const uint8_t *from, int n)
{
#if LC_LANES
    typedef int8_t bytes __attribute__((vector_size(LC_AS(lc_wide)), may_alias));
    typedef LC_AS(lc_word) words __attribute__((vector_size(LC_AS(lc_wide) * sizeof(LC_REAL)), may_alias));
    bytes all = {0};
    if (n == LC_AS(lc_wide)) memcpy(&all, from, sizeof all);
#if defined(__AVX512BW__) && defined(__AVX512VL__)
    else {
        typedef char masked __attribute__((vector_size(16), may_alias));
        const masked some = __builtin_ia32_loaddquqi128_mask((const char *)from, (masked){0}, (1u << n) - 1);
        memcpy(&all, &some, sizeof all);
    }
#else
    else memcpy(&all, from, (size_t)n);
#endif
    const words told = __builtin_convertvector(all != 0, words) & 1;
    memcpy(to, &told, sizeof told);
#else
    for (int l = 0; l < n; l++) to[l] = from[l] != 0;
#endif
}
#undef LC_WORD_f32
#undef LC_WORD_f64

/* What the lanes of a vector have accumulated, joined two by two. */
#define LC_JOIN(name, OF) \
    LC_USED static inline LC_REAL LC_AS(name)(LC_AS(lc_part) lanes) \
    { \
        LC_REAL p[LC_AS(lc_wide)] __attribute__((aligned(64))); \
        *(LC_AS(lc_part) *)p = lanes; \
        if (LC_AS(lc_wide) > 8) for (int l = 0; l < 8; l++) p[l] = OF(p[l], p[l + 8]); \
        if (LC_AS(lc_wide) > 4) for (int l = 0; l < 4; l++) p[l] = OF(p[l], p[l + 4]); \
        if (LC_AS(lc_wide) > 2) for (int l = 0; l < 2; l++) p[l] = OF(p[l], p[l + 2]); \
        return LC_AS(lc_wide) > 1 ? OF(p[0], p[1]) : p[0]; \
    }
#define LC_ADD(a, b) (a + b)
#define LC_MUL(a, b) (a * b)
#define LC_MAX_f32 lc_maxf
#define LC_MAX_f64 lc_max
#define LC_MIN_f32 lc_minf
#define LC_MIN_f64 lc_min
LC_JOIN(lc_add_lanes, LC_ADD)
LC_JOIN(lc_mul_lanes, LC_MUL)
LC_JOIN(lc_max_lanes, LC_AS(LC_MAX))
LC_JOIN(lc_min_lanes, LC_AS(LC_MIN))
#undef LC_JOIN
#undef LC_ADD
#undef LC_MUL
#undef LC_MAX_f32
#undef LC_MAX_f64
#undef LC_MIN_f32
#undef LC_MIN_f64

/* The same for the sums of four vectors, in the same order, with half the work: halves of two vectors make one. */
#if LC_LANES
#if defined(__AVX512F__)
#define LC_ADD_FOUR_f32(a, b, c, d, to) \
    const LC_AS(lc_part) ab = LC_BOTH(a, b, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23) \
        + LC_BOTH(a, b, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31); \
    const LC_AS(lc_part) cd = LC_BOTH(c, d, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23) \
        + LC_BOTH(c, d, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31); \
    const LC_AS(lc_part) all = LC_BOTH(ab, cd, 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27) \
        + LC_BOTH(ab, cd, 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31); \
    const LC_AS(lc_part) two = all + LC_BOTH(all, all, 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13); \
    const LC_AS(lc_part) one = two + LC_BOTH(two, two, 1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14); \
    to[0] = one[0], to[1] = one[4], to[2] = one[8], to[3] = one[12];
#define LC_ADD_FOUR_f64 LC_ADD_FOUR_8
#else
#define LC_ADD_FOUR_f32 LC_ADD_FOUR_8
#define LC_ADD_FOUR_f64(a, b, c, d, to) \
    const LC_AS(lc_part) ab = LC_BOTH(a, b, 0, 1, 4, 5) + LC_BOTH(a, b, 2, 3, 6, 7); \
    const LC_AS(lc_part) cd = LC_BOTH(c, d, 0, 1, 4, 5) + LC_BOTH(c, d, 2, 3, 6, 7); \
    const LC_AS(lc_part) one = LC_BOTH(ab, cd, 0, 4, 2, 6) + LC_BOTH(ab, cd, 1, 5, 3, 7); \
    to[0] = one[0], to[1] = one[2], to[2] = one[1], to[3] = one[3];
#endif
#define LC_ADD_FOUR_8(a, b, c, d, to) \
    const LC_AS(lc_part) ab = LC_BOTH(a, b, 0, 1, 2, 3, 8, 9, 10, 11) + LC_BOTH(a, b, 4, 5, 6, 7, 12, 13, 14, 15); \
    const LC_AS(lc_part) cd = LC_BOTH(c, d, 0, 1, 2, 3, 8, 9, 10, 11) + LC_BOTH(c, d, 4, 5, 6, 7, 12, 13, 14, 15); \
    const LC_AS(lc_part) two = LC_BOTH(ab, cd, 0, 1, 8, 9, 4, 5, 12, 13) + LC_BOTH(ab, cd, 2, 3, 10, 11, 6, 7, 14, 15); \
    const LC_AS(lc_part) one = two + LC_BOTH(two, two, 1, 0, 3, 2, 5, 4, 7, 6); \
    to[0] = one[0], to[1] = one[4], to[2] = one[2], to[3] = one[6];
#define LC_PLACES_f32 int32_t
#define LC_PLACES_f64 long long
#define LC_BOTH(a, b, ...) __builtin_shuffle(a, b, (LC_AS(lc_lane_of)){__VA_ARGS__})
typedef LC_AS(LC_PLACES) LC_AS(lc_lane_of) __attribute__((vector_size(sizeof(LC_AS(lc_part)))));

LC_USED static inline void LC_AS(lc_add_four)(LC_REAL *to, LC_AS(lc_part) a, LC_AS(lc_part) b, LC_AS(lc_part) c,
                                              LC_AS(lc_part) d)
{
    LC_AS(LC_ADD_FOUR)(a, b, c, d, to)
}
#undef LC_ADD_FOUR_f32
#undef LC_ADD_FOUR_f64
#undef LC_ADD_FOUR_8
#undef LC_PLACES_f32
#undef LC_PLACES_f64
#undef LC_BOTH
#endif
