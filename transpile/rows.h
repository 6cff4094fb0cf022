/* Rows of a few elements: to[k] = from[k], or +=, for k < n; their largest, least and farthest from zero (NaN, if one
   is, but of `_number`; what changes no other, if there are none). What does not fill a vector goes through a mask, where there are masks;
   nothing else is touched. At the end one half of a vector is compared with the other. LC_REAL is the type, LC_AS(name) a
   name for it. */
#if defined(__AVX512F__) && defined(__GNUC__) && !defined(__clang__)
#define LC_SOME_f32 __builtin_ia32_loadups512_mask
#define LC_SOME_f64 __builtin_ia32_loadupd512_mask
#define LC_PUT_f32 __builtin_ia32_storeups512_mask
#define LC_PUT_f64 __builtin_ia32_storeupd512_mask
#define LC_PLACE_f32 int32_t
#define LC_PLACE_f64 long long
#define LC_TURNED_f32(n) {n & 15, (n + 1) & 15, (n + 2) & 15, (n + 3) & 15, (n + 4) & 15, (n + 5) & 15, (n + 6) & 15, (n + 7) & 15, \
    (n + 8) & 15, (n + 9) & 15, (n + 10) & 15, (n + 11) & 15, (n + 12) & 15, (n + 13) & 15, (n + 14) & 15, (n + 15) & 15}
#define LC_TURNED_f64(n) {n & 7, (n + 1) & 7, (n + 2) & 7, (n + 3) & 7, (n + 4) & 7, (n + 5) & 7, (n + 6) & 7, (n + 7) & 7}
#define LC_EVEN_f32 {0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30}
#define LC_EVEN_f64 {0, 2, 4, 6, 8, 10, 12, 14}
typedef LC_REAL LC_AS(lc_whole) __attribute__((vector_size(64)));
typedef LC_REAL LC_AS(lc_span) __attribute__((vector_size(64), aligned(sizeof(LC_REAL)), may_alias));
#define LC_WHOLE (64 / (int64_t)sizeof(LC_REAL))

LC_USED static inline void LC_AS(lc_copy)(LC_REAL *to, const LC_REAL *from, int64_t n)
{
    for (; n >= LC_WHOLE; n -= LC_WHOLE, to += LC_WHOLE, from += LC_WHOLE)
        *(LC_AS(lc_span) *)to = *(const LC_AS(lc_span) *)from;
    if (n <= 0) return;
    const unsigned some = (1u << n) - 1;
    LC_AS(LC_PUT)((void *)to, LC_AS(LC_SOME)((const void *)from, (LC_AS(lc_whole)){0}, some), some);
}

LC_USED static inline void LC_AS(lc_add)(LC_REAL *to, const LC_REAL *from, int64_t n)
{
    for (; n >= LC_WHOLE; n -= LC_WHOLE, to += LC_WHOLE, from += LC_WHOLE)
        *(LC_AS(lc_span) *)to += *(const LC_AS(lc_span) *)from;
    if (n <= 0) return;
    const unsigned some = (1u << n) - 1;
    const LC_AS(lc_whole) x = LC_AS(LC_SOME)((const void *)from, (LC_AS(lc_whole)){0}, some);
    LC_AS(LC_PUT)((void *)to, LC_AS(LC_SOME)((const void *)to, (LC_AS(lc_whole)){0}, some) + x, some);
}

/* Of two, the second where one is NaN: that is asked for apart, for all at once. */
#define LC_LARGER_f32(a, b) __builtin_ia32_maxps512_mask(a, b, a, 0xffff, 4)
#define LC_LARGER_f64(a, b) __builtin_ia32_maxpd512_mask(a, b, a, 0xff, 4)
#define LC_LESSER_f32(a, b) __builtin_ia32_minps512_mask(a, b, a, 0xffff, 4)
#define LC_LESSER_f64(a, b) __builtin_ia32_minpd512_mask(a, b, a, 0xff, 4)
#define LC_ODD_f32(a) __builtin_ia32_cmpps512_mask(a, a, 3, 0xffff, 4)
#define LC_ODD_f64(a) __builtin_ia32_cmppd512_mask(a, a, 3, 0xff, 4)
typedef LC_AS(LC_PLACE) LC_AS(lc_places) __attribute__((vector_size(64)));
#define LC_TURN(v, n) __builtin_shuffle(v, (LC_AS(lc_places))LC_AS(LC_TURNED)(n))

typedef unsigned LC_AS(lc_odd);
#define LC_ODD_ANY(odd) (odd)
#define LC_EQUAL_f32(a, b) __builtin_ia32_cmpps512_mask(a, b, 0, 0xffff, 4)
#define LC_EQUAL_f64(a, b) __builtin_ia32_cmppd512_mask(a, b, 0, 0xff, 4)
#define LC_FETCH(from, n, none) LC_AS(LC_SOME)((const void *)(from), none, (n) < LC_WHOLE ? (1u << (n)) - 1 : ~0u)
#elif defined(__AVX2__) && defined(__GNUC__) && !defined(__clang__)
/* Without masks for stores, which take some processors as long as twenty additions: what does not fill a vector is
   two parts of one that meet or overlap. Both are read before anything is written, as a row may be added to itself. */
#define LC_PLACE_f32 int32_t
#define LC_PLACE_f64 long long
#define LC_NUMBERS_f32 {0, 1, 2, 3, 4, 5, 6, 7}
#define LC_NUMBERS_f64 {0, 1, 2, 3}
#define LC_TURNED_f32(n) {n & 7, (n + 1) & 7, (n + 2) & 7, (n + 3) & 7, (n + 4) & 7, (n + 5) & 7, (n + 6) & 7, (n + 7) & 7}
#define LC_TURNED_f64(n) {n & 3, (n + 1) & 3, (n + 2) & 3, (n + 3) & 3}
#define LC_EVEN_f32 {0, 2, 4, 6, 8, 10, 12, 14}
#define LC_EVEN_f64 {0, 2, 4, 6}
typedef LC_REAL LC_AS(lc_whole) __attribute__((vector_size(32)));
typedef LC_REAL LC_AS(lc_span) __attribute__((vector_size(32), aligned(sizeof(LC_REAL)), may_alias));
typedef LC_REAL LC_AS(lc_half) __attribute__((vector_size(16), aligned(sizeof(LC_REAL)), may_alias));
typedef LC_AS(LC_PLACE) LC_AS(lc_places) __attribute__((vector_size(32)));
typedef char LC_AS(lc_bytes) __attribute__((vector_size(32)));
#define LC_WHOLE (32 / (int64_t)sizeof(LC_REAL))
#define LC_AT(kind, p) (*(LC_AS(kind) *)(p))
#define LC_FROM(kind, p) (*(const LC_AS(kind) *)(p))

#define LC_MOVE(name, joined) \
LC_USED static inline void LC_AS(name)(LC_REAL *to, const LC_REAL *from, int64_t n) \
{ \
    if (n >= LC_WHOLE) { \
        const int64_t last = n - LC_WHOLE; \
        const LC_AS(lc_whole) end = joined(lc_span, last); \
        for (int64_t k = 0; k < last; k += LC_WHOLE) LC_AT(lc_span, to + k) = joined(lc_span, k); \
        LC_AT(lc_span, to + last) = end; \
    } else if (n >= LC_WHOLE / 2) { \
        const int64_t last = n - LC_WHOLE / 2; \
        const LC_AS(lc_half) begin = joined(lc_half, 0), end = joined(lc_half, last); \
        LC_AT(lc_half, to) = begin; \
        LC_AT(lc_half, to + last) = end; \
    } else \
        for (int64_t k = 0; k < n; k++) { \
            const LC_REAL x = from[k]; \
            to[k] = joined##_one(x, to[k]); \
        } \
}
#define LC_COPIED(kind, k) LC_FROM(kind, from + (k))
#define LC_COPIED_one(x, y) x
#define LC_ADDED(kind, k) (LC_FROM(kind, to + (k)) + LC_FROM(kind, from + (k)))
#define LC_ADDED_one(x, y) (y + x)
LC_MOVE(lc_copy, LC_COPIED)
LC_MOVE(lc_add, LC_ADDED)
#undef LC_MOVE
#undef LC_COPIED
#undef LC_COPIED_one
#undef LC_ADDED
#undef LC_ADDED_one
#undef LC_AT
#undef LC_FROM

#define LC_SOME_f32 __builtin_ia32_maskloadps256
#define LC_SOME_f64 __builtin_ia32_maskloadpd256
#define LC_ELSE_f32 __builtin_ia32_blendvps256
#define LC_ELSE_f64 __builtin_ia32_blendvpd256
#define LC_LARGER_f32 __builtin_ia32_maxps256 /* as above */
#define LC_LARGER_f64 __builtin_ia32_maxpd256
#define LC_LESSER_f32 __builtin_ia32_minps256
#define LC_LESSER_f64 __builtin_ia32_minpd256
#define LC_TURN(v, n) __builtin_shuffle(v, (LC_AS(lc_places))LC_AS(LC_TURNED)(n))

typedef LC_AS(lc_places) LC_AS(lc_odd);
#define LC_ODD_f32(a) ((a) != (a))
#define LC_ODD_f64(a) ((a) != (a))
#define LC_ODD_ANY(odd) __builtin_ia32_pmovmskb256((LC_AS(lc_bytes))(odd))
#define LC_EQUAL_f32(a, b) (unsigned)__builtin_ia32_movmskps256((LC_AS(lc_whole))((a) == (b)))
#define LC_EQUAL_f64(a, b) (unsigned)__builtin_ia32_movmskpd256((LC_AS(lc_whole))((a) == (b)))
#define LC_INSIDE(n) ((LC_AS(lc_places))LC_AS(LC_NUMBERS) < (LC_AS(LC_PLACE))(n))
#define LC_FETCH(from, n, none) \
    LC_AS(LC_ELSE)(none, LC_AS(LC_SOME)((const void *)(from), LC_INSIDE(n)), (LC_AS(lc_whole))LC_INSIDE(n))
#else
LC_USED static inline void LC_AS(lc_copy)(LC_REAL *to, const LC_REAL *from, int64_t n)
{
#pragma omp simd
    for (int64_t k = 0; k < n; k++) to[k] = from[k];
}

LC_USED static inline void LC_AS(lc_add)(LC_REAL *to, const LC_REAL *from, int64_t n)
{
#pragma omp simd
    for (int64_t k = 0; k < n; k++) to[k] += from[k];
}

LC_USED static inline LC_REAL LC_AS(lc_largest)(const LC_REAL *from, int64_t n)
{
    LC_REAL a = -__builtin_inff(), odd = 0; /* odd: NaN, if one is */
#pragma omp simd reduction(max:a) reduction(+:odd)
    for (int64_t k = 0; k < n; k++) {
        a = from[k] > a ? from[k] : a;
        odd += from[k] == from[k] ? 0 : from[k];
    }
    return odd == odd ? a : odd;
}

LC_USED static inline LC_REAL LC_AS(lc_least)(const LC_REAL *from, int64_t n)
{
    LC_REAL a = __builtin_inff(), odd = 0;
#pragma omp simd reduction(min:a) reduction(+:odd)
    for (int64_t k = 0; k < n; k++) {
        a = from[k] < a ? from[k] : a;
        odd += from[k] == from[k] ? 0 : from[k];
    }
    return odd == odd ? a : odd;
}

LC_USED static inline LC_REAL LC_AS(lc_largest_number)(const LC_REAL *from, int64_t n)
{
    LC_REAL a = -__builtin_inff();
#pragma omp simd reduction(max:a)
    for (int64_t k = 0; k < n; k++) a = from[k] > a ? from[k] : a;
    return a;
}

LC_USED static inline LC_REAL LC_AS(lc_least_number)(const LC_REAL *from, int64_t n)
{
    LC_REAL a = __builtin_inff();
#pragma omp simd reduction(min:a)
    for (int64_t k = 0; k < n; k++) a = from[k] < a ? from[k] : a;
    return a;
}

LC_CALLED static LC_REAL LC_AS(lc_farthest)(const LC_REAL *from, int64_t n)
{
    LC_REAL a = -__builtin_inff(), odd = 0;
#pragma omp simd reduction(max:a) reduction(+:odd)
    for (int64_t k = 0; k < n; k++) {
        const LC_REAL x = from[k] < 0 ? -from[k] : from[k];
        a = x > a ? x : a;
        odd += x == x ? 0 : x;
    }
    return odd == odd ? a : odd;
}

#define LC_ROWS(name, none, better) \
LC_CALLED static LC_REAL LC_AS(name##_in)(const LC_REAL *at, int64_t rows, int64_t step, int64_t n) \
{ \
    LC_REAL a = none; \
    for (; rows > 0 && a == a; rows--, at += step) { \
        const LC_REAL x = LC_AS(name)(at, n); \
        if (x better a || x != x) a = x; \
    } \
    return a; \
}
LC_ROWS(lc_largest, -__builtin_inff(), >)
LC_ROWS(lc_least, __builtin_inff(), <)
LC_ROWS(lc_farthest, -__builtin_inff(), >)
LC_ROWS(lc_largest_number, -__builtin_inff(), >)
LC_ROWS(lc_least_number, __builtin_inff(), <)
#undef LC_ROWS

LC_USED static inline void LC_AS(lc_even)(LC_REAL *to, const LC_REAL *from, int64_t n)
{
#pragma omp simd
    for (int64_t k = 0; k < n; k++) to[k] = from[2 * k];
}

LC_USED static inline int64_t LC_AS(lc_first)(const LC_REAL *from, int64_t n, LC_REAL x)
{
    for (int64_t k = 0; k < n; k++)
        if (from[k] == x) return k;
    return -1;
}

LC_CALLED static int64_t LC_AS(lc_equal_in)(const LC_REAL *at, int64_t rows, int64_t step, int64_t n, LC_REAL x)
{
    int64_t count = 0;
    for (; rows > 0; rows--, at += step)
#pragma omp simd reduction(+:count)
        for (int64_t k = 0; k < n; k++) count += at[k] == x;
    return count;
}

LC_CALLED static void LC_AS(lc_give_in)(LC_REAL *to, int64_t further, const LC_REAL *at, int64_t rows, int64_t step,
                                        int64_t n, LC_REAL x, LC_REAL share)
{
    for (; rows > 0; rows--, at += step, to += further)
#pragma omp simd
        for (int64_t k = 0; k < n; k++) to[k] += at[k] == x ? share : 0;
}
#endif

#ifdef LC_WHOLE
/* of: what is compared of an element; neutral: what none of them come to; fill: elements that change nothing; any:
   whether NaN among them is all that counts. Beside
   the row, `name##_in`: all of a rectangle of rows, `step` elements apart, whose lanes are compared once. */
#define LC_ROW(how, name, join, of, neutral, fill, any) \
how static LC_REAL LC_AS(name)(const LC_REAL *from, int64_t n) \
{ \
    LC_BEGIN(neutral, fill) \
    LC_ALONG(join, of) \
    LC_END(join, any) \
} \
LC_CALLED static LC_REAL LC_AS(name##_in)(const LC_REAL *at, int64_t rows, int64_t step, int64_t m) \
{ \
    LC_BEGIN(neutral, fill) \
    if (step == m) { /* they go on in memory */ \
        m *= rows; \
        rows = 1; \
    } \
    if (m > 0 && m <= LC_WHOLE) \
        for (; rows > 1; rows -= 2, at += 2 * step) { \
            v = of(LC_FETCH(at, m, none)), w = of(LC_FETCH(at + step, m, none)); \
            LC_BOTH(join) \
        } \
    for (; rows > 0; rows--, at += step) { \
        const LC_REAL *from = at; \
        int64_t n = m; \
        LC_ALONG(join, of) \
    } \
    LC_END(join, any) \
}
#define LC_BEGIN(neutral, fill) \
    const LC_AS(lc_whole) zeros = {0}, none = zeros + (LC_REAL)(fill); \
    LC_AS(lc_whole) v, w, a = zeros + (LC_REAL)(neutral), b = a; \
    LC_AS(lc_odd) odd = {0};
#define LC_BOTH(join) \
    a = LC_AS(join)(v, a), b = LC_AS(join)(w, b); \
    odd |= LC_AS(LC_ODD)(v) | LC_AS(LC_ODD)(w);
#define LC_ALONG(join, of) \
    for (; n >= 2 * LC_WHOLE; n -= 2 * LC_WHOLE, from += 2 * LC_WHOLE) { \
        v = of(*(const LC_AS(lc_span) *)from), w = of(*(const LC_AS(lc_span) *)(from + LC_WHOLE)); \
        LC_BOTH(join) \
    } \
    for (; n > 0; n -= LC_WHOLE, from += LC_WHOLE) { \
        v = of(LC_FETCH(from, n, none)); \
        a = LC_AS(join)(v, a); \
        odd |= LC_AS(LC_ODD)(v); \
    }
#define LC_END(join, any) \
    if (any(odd)) return (LC_REAL)__builtin_nan(""); \
    a = LC_AS(join)(a, b); \
    if (LC_WHOLE > 8) a = LC_AS(join)(a, LC_TURN(a, 8)); \
    if (LC_WHOLE > 4) a = LC_AS(join)(a, LC_TURN(a, 4)); \
    a = LC_AS(join)(a, LC_TURN(a, 2)); \
    return LC_AS(join)(a, LC_TURN(a, 1))[0];
#define LC_PLAIN(v) (v)
#define LC_MAGNITUDE_f32 0x7fffffff
#define LC_MAGNITUDE_f64 0x7fffffffffffffffll
#define LC_MAGNITUDE(v) ((LC_AS(lc_whole))((LC_AS(lc_places))(v) & LC_AS(LC_MAGNITUDE)))
#define LC_LEFT_OUT(odd) ((void)(odd), 0)
LC_ROW(LC_USED inline, lc_largest, LC_LARGER, LC_PLAIN, -__builtin_inff(), -__builtin_inff(), LC_ODD_ANY)
LC_ROW(LC_USED inline, lc_least, LC_LESSER, LC_PLAIN, __builtin_inff(), __builtin_inff(), LC_ODD_ANY)
LC_ROW(LC_CALLED, lc_farthest, LC_LARGER, LC_MAGNITUDE, -__builtin_inff(), 0, LC_ODD_ANY)
LC_ROW(LC_USED inline, lc_largest_number, LC_LARGER, LC_PLAIN, -__builtin_inff(), -__builtin_inff(), LC_LEFT_OUT)
LC_ROW(LC_USED inline, lc_least_number, LC_LESSER, LC_PLAIN, __builtin_inff(), __builtin_inff(), LC_LEFT_OUT)

/* to[k] = from[2 * k]: of two vectors one. Nothing behind the last element is read. */
LC_USED static inline void LC_AS(lc_even)(LC_REAL *to, const LC_REAL *from, int64_t n)
{
    const LC_AS(lc_whole) zeros = {0};
    for (; n > 0; n -= LC_WHOLE, to += LC_WHOLE, from += 2 * LC_WHOLE) {
        const int64_t there = 2 * n - 1;
        const LC_AS(lc_whole) v = LC_FETCH(from, there, zeros);
        const LC_AS(lc_whole) w = LC_FETCH(from + LC_WHOLE, there > LC_WHOLE ? there - LC_WHOLE : 0, zeros);
        const LC_AS(lc_whole) some = __builtin_shuffle(v, w, (LC_AS(lc_places))LC_AS(LC_EVEN));
        if (n >= LC_WHOLE)
            *(LC_AS(lc_span) *)to = some;
        else
            LC_AS(lc_copy)(to, (const LC_REAL *)&some, n);
    }
}

/* The first place where a row has x, or -1. */
LC_USED static inline int64_t LC_AS(lc_first)(const LC_REAL *from, int64_t n, LC_REAL x)
{
    const LC_AS(lc_whole) zeros = {0}, none = zeros + (LC_REAL)__builtin_nan(""), sought = zeros + x;
    for (int64_t k = 0; k < n; k += LC_WHOLE) {
        const unsigned same = LC_AS(LC_EQUAL)(LC_FETCH(from + k, n - k, none), sought);
        if (same) return k + __builtin_ctz(same);
    }
    return -1;
}

/* How many elements of a rectangle equal x: 0, if x is NaN. */
LC_CALLED static int64_t LC_AS(lc_equal_in)(const LC_REAL *at, int64_t rows, int64_t step, int64_t n, LC_REAL x)
{
    const LC_AS(lc_whole) zeros = {0}, none = zeros + (LC_REAL)__builtin_nan(""), sought = zeros + x;
    int64_t count = 0;
    if (step == n) {
        n *= rows;
        rows = 1;
    }
    for (; rows > 0; rows--, at += step) {
        int64_t k = 0;
        for (; k + LC_WHOLE <= n; k += LC_WHOLE)
            count += __builtin_popcount(LC_AS(LC_EQUAL)(*(const LC_AS(lc_span) *)(at + k), sought));
        if (k < n) count += __builtin_popcount(LC_AS(LC_EQUAL)(LC_FETCH(at + k, n - k, none), sought));
    }
    return count;
}

/* Adds a share to each place of a rectangle where another has x. Most often that is one place: no other is read or
   written, but in a vector that has two. */
LC_CALLED static void LC_AS(lc_give_in)(LC_REAL *to, int64_t further, const LC_REAL *at, int64_t rows, int64_t step,
                                        int64_t n, LC_REAL x, LC_REAL share)
{
    const LC_AS(lc_whole) zeros = {0}, none = zeros + (LC_REAL)__builtin_nan("");
    const LC_AS(lc_whole) sought = zeros + x, shares = zeros + share;
    if (step == n && further == n) {
        n *= rows;
        rows = 1;
    }
    for (; rows > 0; rows--, at += step, to += further)
        for (int64_t k = 0; k < n; k += LC_WHOLE) {
            const LC_AS(lc_whole) v = LC_FETCH(at + k, n - k, none);
            unsigned same = LC_AS(LC_EQUAL)(v, sought);
            if (n - k >= LC_WHOLE && (same & (same - 1)))
                *(LC_AS(lc_span) *)(to + k) += (LC_AS(lc_whole))((LC_AS(lc_places))(v == sought) & (LC_AS(lc_places))shares);
            else
                for (; same; same &= same - 1) to[k + __builtin_ctz(same)] += share;
        }
}
#undef LC_ROW
#undef LC_BEGIN
#undef LC_BOTH
#undef LC_ALONG
#undef LC_END
#undef LC_PLAIN
#undef LC_MAGNITUDE
#undef LC_MAGNITUDE_f32
#undef LC_MAGNITUDE_f64
#undef LC_TURN
#undef LC_WHOLE
#undef LC_FETCH
#undef LC_ODD_ANY
#undef LC_LEFT_OUT
#endif
