/* Columns become rows: to[a * step + b] = from[b * apart + a] for a < n, b < m. In squares of LC_SIDE, which turn in
   registers: gcc goes number by number through one of the two, and each is a line of its own. What does not fill a
   square lies in one that overlaps its neighbour. LC_REAL is the type, LC_AS(name) a name for it. */
#undef LC_SIDE
#undef LC_BAND
#define LC_SIDE ((int64_t)(32 / sizeof(LC_REAL)))
#define LC_BAND 128
#if defined(__GNUC__) && !defined(__clang__)
typedef int32_t lc_sides_f32 __attribute__((vector_size(32)));
typedef int64_t lc_sides_f64 __attribute__((vector_size(32)));
typedef LC_REAL LC_AS(lc_side) __attribute__((vector_size(32)));
typedef LC_REAL LC_AS(lc_at_side) __attribute__((vector_size(32), aligned(sizeof(LC_REAL)), may_alias));

LC_USED static inline void LC_AS(lc_turn_square)(LC_REAL *to, int64_t step, const LC_REAL *from, int64_t apart)
{
    LC_AS(lc_side) row[LC_SIDE];
    LC_UNROLL(16) for (int i = 0; i < LC_SIDE; i++) row[i] = *(const LC_AS(lc_at_side) *)(from + i * apart);
    LC_TURN_SQUARE(row, LC_SIDE, LC_AS(lc_side), LC_AS(lc_sides));
    LC_UNROLL(16) for (int i = 0; i < LC_SIDE; i++) *(LC_AS(lc_at_side) *)(to + i * step) = row[i];
}
#define LC_SQUARES 1
#else
#define LC_SQUARES 0
#define lc_turn_square_f32(to, step, from, apart)
#define lc_turn_square_f64(to, step, from, apart)
#endif

LC_USED static void LC_AS(lc_columns)(LC_REAL *restrict to, int64_t step, const LC_REAL *restrict from, int64_t apart,
                                      int64_t n, int64_t m)
{
    if (m >= n && (!LC_SQUARES || n < LC_SIDE)) {
        for (int64_t a = 0; a < n; a++) {
#pragma omp simd
            for (int64_t b = 0; b < m; b++) to[a * step + b] = from[b * apart + a];
        }
        return;
    }
    if (!LC_SQUARES || m < LC_SIDE) {
        for (int64_t b = 0; b < m; b++) {
#pragma omp simd
            for (int64_t a = 0; a < n; a++) to[a * step + b] = from[b * apart + a];
        }
        return;
    }
    for (int64_t first = 0; first < m; first += LC_BAND) /* both halves of a line are read while it is near */
        for (int64_t a = 0; a < n; a += LC_SIDE) {
            a = a < n - LC_SIDE ? a : n - LC_SIDE;
            for (int64_t b = first; b < m && b < first + LC_BAND; b += LC_SIDE) {
                const int64_t there = b < m - LC_SIDE ? b : m - LC_SIDE;
                LC_AS(lc_turn_square)(to + a * step + there, step, from + there * apart + a, apart);
            }
        }
}
#undef LC_SQUARES
