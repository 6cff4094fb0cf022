/* Matrix products: C = A B or C += A B, each operand with a stride for its rows and one for its columns, so that
   transposes, slices and reversed axes cost nothing.

   As in BLIS (Van Zee & van de Geijn, "BLIS: A Framework for Rapidly Instantiating BLAS Functionality", 2015): a tile
   of C, LC_ROWS rows of two vectors, stays in registers while a block of the depth runs by; each step takes two vectors
   of B and a number of each row of A. Blocks of B (and of A, where they are large) are packed, so that tiles read
   straight through memory; small operands are read where they are, unless vectors of B would have to be gathered.

   Every number of C is summed over the depth in order, in blocks of at most LC_DEPTH, whatever tile it lies in: cutting
   rows and columns into parts changes no bit. Nothing outside the operands is read. NaN and infinity pass as in a
   plain loop. Where the rows of a tile begin or end with zeros (triangles, masks), the depth is shorter for it, if what
   they meet is finite: that, too, changes no bit.

   This text stands once for each float type: LC_REAL is the type, LC_AS(name) a name for it. */
#ifndef LC_ROWS
#if defined(__AVX512F__)
#define LC_BYTES 64
#define LC_ROWS 14 /* 28 of the 32 registers hold the tile */
#define LC_MASKED 1
#define LC_DEPTH 512 /* of a block: long tiles pay for a panel of B that leaves L1 */
#define LC_LOAD_MASKED_f32 __builtin_ia32_loadups512_mask
#define LC_LOAD_MASKED_f64 __builtin_ia32_loadupd512_mask
#define LC_STORE_MASKED_f32 __builtin_ia32_storeups512_mask
#define LC_STORE_MASKED_f64 __builtin_ia32_storeupd512_mask
#else
#if defined(__AVX__)
#define LC_BYTES 32
#else
#define LC_BYTES 16
#endif
#define LC_ROWS 6 /* 12 of 16 */
#define LC_MASKED 0
#define LC_DEPTH 384 /* of a block: a panel of B stays in L1 */
#endif
#define LC_COLUMNS 512   /* of a block of B */
#define LC_MANY 224      /* rows of a block of A: both blocks stay in L2 */
#define LC_STREAM (1 << 18) /* bytes of an operand that are worth a thread */
#define LC_LARGE (1 << 19) /* bytes of an operand that is packed though its rows are vectors */
/* A vector that several sums use stays in a register: gcc would load it again for each, and a processor adds more products
   than it loads. */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define LC_HOLD(x) __asm__("" : "+v"(x))
#else
#define LC_HOLD(x) ((void)0)
#endif
#define LC_INLINE LC_USED static inline __attribute__((always_inline))
typedef int32_t lc_lanes_f32 __attribute__((vector_size(LC_BYTES)));
typedef int64_t lc_lanes_f64 __attribute__((vector_size(LC_BYTES)));
#endif

#undef LC_V
#undef LC_WIDE
#define LC_V ((int)(LC_BYTES / sizeof(LC_REAL)))
#define LC_WIDE ((LC_ROWS + LC_V - 1) / LC_V * LC_V) /* of a packed panel of A: whole vectors */
typedef LC_REAL LC_AS(lc_vector) __attribute__((vector_size(LC_BYTES)));
typedef LC_REAL LC_AS(lc_unaligned) __attribute__((vector_size(LC_BYTES), aligned(sizeof(LC_REAL)), may_alias));

LC_INLINE LC_AS(lc_vector) LC_AS(lc_load)(const LC_REAL *p) { return *(const LC_AS(lc_unaligned) *)p; }
LC_INLINE void LC_AS(lc_save)(LC_REAL *p, LC_AS(lc_vector) x) { *(LC_AS(lc_unaligned) *)p = x; }

/* The first n numbers of a vector, 1 <= n <= LC_V, with zeros behind them; nothing else is touched. */
LC_INLINE LC_AS(lc_vector) LC_AS(lc_load_some)(const LC_REAL *p, int64_t n)
{
#if LC_MASKED
    return LC_AS(LC_LOAD_MASKED)((const void *)p, (LC_AS(lc_vector)){0}, (1u << n) - 1);
#else
    LC_AS(lc_vector) x = {0};
    if (n == LC_V) return LC_AS(lc_load)(p);
    for (int64_t k = 0; k < n; k++) x[k] = p[k];
    return x;
#endif
}
LC_INLINE void LC_AS(lc_save_some)(LC_REAL *p, LC_AS(lc_vector) x, int64_t n)
{
#if LC_MASKED
    LC_AS(LC_STORE_MASKED)((void *)p, x, (1u << n) - 1);
#else
    if (n == LC_V) LC_AS(lc_save)(p, x);
    else
        for (int64_t k = 0; k < n; k++) p[k] = x[k];
#endif
}

/* A tile of n = rows or rows - 1 rows; the last of its vectors has `last` numbers. Rows of A are `down` apart, and its
   columns `along`. Five rows share a pointer: all addresses then fit in the integer registers. A row that is too many
   is the one before it again, and not stored. */
LC_INLINE void LC_AS(lc_tile)(const int rows, const int vectors, int64_t n, int64_t last, int64_t depth, const LC_REAL *a,
                              int64_t down, int64_t along, const LC_REAL *b, int64_t next, LC_REAL *c, int64_t step,
                              int add)
{
    LC_AS(lc_vector) sum[LC_ROWS][2];
    LC_UNROLL(16) for (int i = 0; i < rows; i++)
        LC_UNROLL(2) for (int v = 0; v < vectors; v++) sum[i][v] = (LC_AS(lc_vector)){0};
    const LC_REAL *a0 = a, *a1 = a + 5 * down, *a2 = a + 10 * down;
    const int64_t down2 = 2 * down, down3 = 3 * down, down4 = 4 * down, end = (n - 1 - (rows - 1) / 5 * 5) * down;
    for (int64_t k = 0; k < depth; k++, a0 += along, a1 += along, a2 += along, b += next) {
        LC_AS(lc_vector) right[2];
        LC_UNROLL(2) for (int v = 0; v < vectors; v++) {
            if (LC_MASKED && v + 1 == vectors) right[v] = LC_AS(lc_load_some)(b + v * LC_V, last);
            else right[v] = LC_AS(lc_load)(b + v * LC_V); /* packed: zeros behind the last */
            LC_HOLD(right[v]);
        }
        LC_UNROLL(16) for (int i = 0; i < rows; i++) {
            const LC_REAL *p = i < 5 ? a0 : i < 10 ? a1 : a2;
            const int r = i % 5;
            const LC_REAL x = p[i == rows - 1 ? end : r == 0 ? 0 : r == 1 ? down : r == 2 ? down2 : r == 3 ? down3 : down4];
            const LC_AS(lc_vector) left = x - (LC_AS(lc_vector)){0};
            LC_UNROLL(2) for (int v = 0; v < vectors; v++) sum[i][v] += left * right[v];
        }
    }
    LC_UNROLL(16) for (int i = 0; i < rows; i++) {
        if (i == rows - 1 && n < rows) break;
        LC_UNROLL(2) for (int v = 0; v < vectors; v++) {
            LC_REAL *to = c + i * step + v * LC_V;
            if (v + 1 < vectors) LC_AS(lc_save)(to, add ? sum[i][v] + LC_AS(lc_load)(to) : sum[i][v]);
            else LC_AS(lc_save_some)(to, add ? sum[i][v] + LC_AS(lc_load_some)(to, last) : sum[i][v], last);
        }
    }
}

/* Chooses the tile of n <= LC_ROWS rows and w <= 2 LC_V columns. */
LC_USED static void LC_AS(lc_rows_of)(int64_t n, int64_t w, int64_t depth, const LC_REAL *a, int64_t down, int64_t along,
                                      const LC_REAL *b, int64_t next, LC_REAL *c, int64_t step, int add)
{
#define LC_CASE(rows)                                                                                       \
    case rows:                                                                                              \
        if (w > LC_V) LC_AS(lc_tile)(rows, 2, n, w - LC_V, depth, a, down, along, b, next, c, step, add);   \
        else LC_AS(lc_tile)(rows, 1, n, w, depth, a, down, along, b, next, c, step, add);                   \
        break;
    switch (n == 1 ? 1 : n + n % 2) {
        LC_CASE(1) LC_CASE(2) LC_CASE(4) LC_CASE(6)
#if LC_ROWS > 6
        LC_CASE(8) LC_CASE(10) LC_CASE(12) LC_CASE(14)
#endif
    }
#undef LC_CASE
}

/* The same where neighbours in a row of C are `apart`. */
LC_USED static void LC_AS(lc_rows_apart)(int64_t n, int64_t w, int64_t depth, const LC_REAL *a, int64_t down,
                                         int64_t along, const LC_REAL *b, int64_t next, LC_REAL *c, int64_t step,
                                         int64_t apart, int add)
{
    LC_REAL tile[LC_ROWS * 2 * LC_V];
    if (apart == 1) {
        LC_AS(lc_rows_of)(n, w, depth, a, down, along, b, next, c, step, add);
        return;
    }
    LC_AS(lc_rows_of)(n, w, depth, a, down, along, b, next, tile, 2 * LC_V, 0);
    for (int64_t j = 0; j < w; j++)
        for (int64_t i = 0; i < n; i++) {
            LC_REAL *to = c + i * step + j * apart;
            *to = add ? *to + tile[i * 2 * LC_V + j] : tile[i * 2 * LC_V + j];
        }
}

/* n <= LC_V rows become columns: to[k * width + i] = from[i * stride + k], and zeros behind the n-th. */
LC_USED static void LC_AS(lc_turn)(int64_t n, int64_t depth, const LC_REAL *from, int64_t stride, LC_REAL *to,
                                   int64_t width)
{
#if defined(__GNUC__) && !defined(__clang__)
    for (int64_t k = 0; k < depth; k += LC_V) {
        const int64_t some = depth - k < LC_V ? depth - k : LC_V;
        LC_AS(lc_vector) row[LC_V];
        LC_UNROLL(16) for (int i = 0; i < LC_V; i++)
            row[i] = i < n ? LC_AS(lc_load_some)(from + i * stride + k, some) : (LC_AS(lc_vector)){0};
        LC_TURN_SQUARE(row, LC_V, LC_AS(lc_vector), LC_AS(lc_lanes));
        LC_UNROLL(16) for (int i = 0; i < LC_V; i++)
            if (i < some) LC_AS(lc_save)(to + (k + i) * width, row[i]);
    }
#else
    for (int64_t k = 0; k < depth; k++)
        for (int64_t i = 0; i < LC_V; i++) to[k * width + i] = i < n ? from[i * stride + k] : 0;
#endif
}

/* A panel: to[k * width + i] = from[i * across + k * along] for i < n, and zeros up to the end of a vector. */
LC_USED static void LC_AS(lc_pack)(int64_t n, int64_t depth, const LC_REAL *from, int64_t across, int64_t along,
                                   LC_REAL *to, int64_t width)
{
    for (int64_t at = 0; at < width && at < n; at += LC_V, from += LC_V * across, to += LC_V) {
        const int64_t some = n - at < LC_V ? n - at : LC_V;
        if (across == 1)
            for (int64_t k = 0; k < depth; k++)
                LC_AS(lc_save)(to + k * width, LC_AS(lc_load_some)(from + k * along, some));
        else if (along == 1) LC_AS(lc_turn)(some, depth, from, across, to, width);
        else
            for (int64_t k = 0; k < depth; k++)
                for (int64_t i = 0; i < LC_V; i++) to[k * width + i] = i < some ? from[i * across + k * along] : 0;
    }
}

/* The same for n numbers of rows that are vectors, in panels of two vectors one behind the other: row by row, as a row of
   a wide matrix is a page of its own. */
LC_USED static void LC_AS(lc_pack_rows)(int64_t n, int64_t depth, const LC_REAL *from, int64_t along, LC_REAL *to)
{
    const int64_t wide = 2 * LC_V;
    for (int64_t k = 0; k < depth; k++, from += along, to += wide) {
        LC_REAL *panel = to;
        int64_t at = 0;
        for (; at + wide <= n; at += wide, panel += wide * depth)
            LC_UNROLL(2) for (int v = 0; v < 2; v++) LC_AS(lc_save)(panel + v * LC_V, LC_AS(lc_load)(from + at + v * LC_V));
        for (; at < n; at += LC_V, panel += LC_V)
            LC_AS(lc_save)(panel, LC_AS(lc_load_some)(from + at, n - at < LC_V ? n - at : LC_V));
    }
}

/* Few rows or few columns, both operands running along the depth: dot products. */
LC_USED static void LC_AS(lc_dots)(int64_t m, int64_t n, int64_t depth, const LC_REAL *a, int64_t ai, const LC_REAL *b,
                                   int64_t bj, LC_REAL *c, int64_t ci, int64_t cj, int add)
{
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            const LC_REAL *p = a + i * ai, *q = b + j * bj;
            LC_AS(lc_vector) sum[4] = {{0}};
            int64_t k = 0;
            for (; k + 4 * LC_V <= depth; k += 4 * LC_V)
                LC_UNROLL(4) for (int v = 0; v < 4; v++)
                    sum[v] += LC_AS(lc_load)(p + k + v * LC_V) * LC_AS(lc_load)(q + k + v * LC_V);
            for (; k < depth; k += LC_V) {
                const int64_t some = depth - k < LC_V ? depth - k : LC_V;
                sum[0] += LC_AS(lc_load_some)(p + k, some) * LC_AS(lc_load_some)(q + k, some);
            }
            sum[0] = (sum[0] + sum[1]) + (sum[2] + sum[3]);
            LC_REAL lane[LC_V], *to = c + i * ci + j * cj;
            LC_AS(lc_save)(lane, sum[0]);
            LC_UNROLL(4) for (int h = LC_V / 2; h; h /= 2)
                for (int v = 0; v < h; v++) lane[v] += lane[v + h];
            *to = add ? *to + lane[0] : lane[0];
        }
}

/* Rows of a tile where there are m: even, and alike for all tiles but the last. */
LC_INLINE int64_t LC_AS(lc_height)(int64_t m)
{
    const int64_t pairs = (m + 1) / 2, tiles = (pairs + LC_ROWS / 2 - 1) / (LC_ROWS / 2);
    return m <= LC_ROWS ? LC_ROWS : 2 * ((pairs + tiles - 1) / tiles);
}

/* How many threads share a product: none is worth waking for less than some 20 microseconds of sums, as what one of them
   has just made takes the other long to read, or for 10 of memory. */
LC_INLINE int64_t LC_AS(lc_parts)(int64_t m, int64_t n, int64_t depth, int64_t threads)
{
    const int64_t longest = m > n ? m : n, size = sizeof(LC_REAL);
    const double flow = (double)longest * (double)depth * (double)size / LC_STREAM;
    const double sums = (double)m * (double)n * (double)depth / (1 << 20), work = sums > flow ? sums : flow;
    const int64_t most = longest / (2 * LC_V) < threads ? longest / (2 * LC_V) : threads;
    return most < 2 || work < 2 ? 1 : work < (double)most ? (int64_t)work : most;
}

/* Bytes that a product packs into, at most: none where both operands are small and read where they are. Grows with the
   extents. */
LC_USED static int64_t LC_AS(lc_product_room)(int64_t m, int64_t n, int64_t depth, int64_t ai, int64_t bj, int64_t ci,
                                              int64_t cj, int64_t threads)
{
    const int64_t longest = m > n ? m : n, deep = depth < LC_DEPTH ? depth : LC_DEPTH;
    const int64_t columns = longest < LC_COLUMNS ? longest : LC_COLUMNS, many = longest < LC_MANY ? longest : LC_MANY;
    const int direct = LC_MASKED && (cj != 1 && ci == 1 ? ai == 1 : bj == 1);
    if (m <= 0 || n <= 0 || depth <= 0) return 0;
    if (direct && longest * depth * (int64_t)sizeof(LC_REAL) < LC_LARGE) return 0;
    const int64_t packed = columns + 2 * LC_V + (many / LC_ROWS + 1) * LC_WIDE;
    return packed * deep * (int64_t)sizeof(LC_REAL) * LC_AS(lc_parts)(m, n, depth, threads);
}

/* One row of C: a vector of A runs down the rows of B, eight vectors at a time. Returns how many columns are done. */
LC_USED static int64_t LC_AS(lc_row)(int64_t n, int64_t depth, const LC_REAL *a, int64_t along, const LC_REAL *b,
                                     int64_t next, LC_REAL *c, int add)
{
    int64_t j = 0;
    for (; j + 8 * LC_V <= n; j += 8 * LC_V) {
        LC_AS(lc_vector) sum[8] = {{0}};
        for (int64_t k = 0; k < depth; k++) {
            const LC_AS(lc_vector) left = a[k * along] - (LC_AS(lc_vector)){0};
            LC_UNROLL(8) for (int v = 0; v < 8; v++) sum[v] += left * LC_AS(lc_load)(b + k * next + j + v * LC_V);
        }
        LC_UNROLL(8) for (int v = 0; v < 8; v++) {
            LC_REAL *to = c + j + v * LC_V;
            LC_AS(lc_save)(to, add ? sum[v] + LC_AS(lc_load)(to) : sum[v]);
        }
    }
    return j;
}

/* Whether one of n numbers, in vectors `next` apart, each `some` long, is not 0. */
LC_INLINE int LC_AS(lc_any)(int64_t n, int64_t some, const LC_REAL *p, int64_t next)
{
    LC_AS(lc_lanes) bits = {0};
    for (int64_t i = 0; i < n; i++)
        bits |= (LC_AS(lc_lanes))(some == LC_V ? LC_AS(lc_load)(p + i * next) : LC_AS(lc_load_some)(p + i * next, some));
    const LC_AS(lc_lanes) found = (LC_AS(lc_vector))bits != (LC_AS(lc_vector)){0};
    int64_t word[LC_BYTES / 8], any = 0;
    memcpy(word, &found, LC_BYTES);
    LC_UNROLL(8) for (int k = 0; k < LC_BYTES / 8; k++) any |= word[k];
    return any != 0;
}

/* Whether one of n rows has a number that is not 0 in [from, from + LC_V) of the depth. */
LC_INLINE int LC_AS(lc_any_of)(int64_t n, const LC_REAL *a, int64_t ai, int64_t ak, int64_t from)
{
    if (ak == 1) return LC_AS(lc_any)(n, LC_V, a + from, ai);
    for (int64_t i = 0; i < n; i += LC_V)
        if (LC_AS(lc_any)(LC_V, n - i < LC_V ? n - i : LC_V, a + i + from * ak, ak)) return 1;
    return 0;
}

/* Where, of the depth, n rows are not all 0, to whole vectors: rows of a triangle, what a mask has left. */
LC_USED static void LC_AS(lc_extent)(int64_t n, int64_t depth, const LC_REAL *a, int64_t ai, int64_t ak, int64_t *from,
                                     int64_t *to)
{
    *from = 0, *to = depth;
    if (ak != 1 && ai != 1) return;
    if (a[(depth - 1) * ak] == 0)
        while (*to >= LC_V && !LC_AS(lc_any_of)(n, a, ai, ak, *to - LC_V)) *to -= LC_V;
    if (a[(n - 1) * ai] == 0)
        while (*from + LC_V <= *to && !LC_AS(lc_any_of)(n, a, ai, ak, *from)) *from += LC_V;
}

/* Whether d rows of w numbers are all finite: else 0 times them is not 0. */
LC_USED static int LC_AS(lc_finite)(int64_t d, int64_t w, const LC_REAL *b, int64_t next)
{
    LC_AS(lc_vector) sum[4] = {{0}};
    for (int64_t k = 0; k < d; k++, b += next) {
        int64_t j = 0;
        for (; j + 4 * LC_V <= w; j += 4 * LC_V)
            LC_UNROLL(4) for (int v = 0; v < 4; v++) sum[v] += LC_AS(lc_load)(b + j + v * LC_V) * 0;
        for (; j < w; j += LC_V) sum[0] += LC_AS(lc_load_some)(b + j, w - j < LC_V ? w - j : LC_V) * 0;
    }
    sum[0] = (sum[0] + sum[1]) + (sum[2] + sum[3]);
    for (int v = 0; v < LC_V; v++)
        if (sum[0][v] != 0) return 0;
    return 1;
}

/* `low`, `high`: in row i nobody asks for columns before i + low, nor for those from i + high on: tiles of such are not
   made. */
LC_USED static void LC_AS(lc_blocks)(int64_t m, int64_t n, int64_t depth, const LC_REAL *a, int64_t ai, int64_t ak,
                                     const LC_REAL *b, int64_t bk, int64_t bj, LC_REAL *c, int64_t ci, int64_t cj,
                                     int add, LC_REAL *room, int64_t low, int64_t high)
{
    const int64_t size = sizeof(LC_REAL), wide = 2 * LC_V;
    const int pack_b = bj != 1 || (!LC_MASKED && n % wide) || (m >= 128 && n * depth * size >= LC_LARGE);
    const int pack_a = n >= 256 && m * depth * size >= 4 * LC_LARGE;
    const int64_t blocks = (depth + LC_DEPTH - 1) / LC_DEPTH, deep = (depth + blocks - 1) / blocks;
    for (int64_t k = 0; k < depth; k += deep)
        for (int64_t j = 0; j < n; j += LC_COLUMNS) {
            const int64_t d = depth - k < deep ? depth - k : deep, w = n - j < LC_COLUMNS ? n - j : LC_COLUMNS;
            const LC_REAL *right = b + k * bk + j * bj;
            LC_REAL *rest = room;
            int finite = -1; /* not known */
            if (pack_b && bj == 1) LC_AS(lc_pack_rows)(w, d, right, bk, room);
            else if (pack_b)
                for (int64_t t = 0; t < w; t += wide)
                    LC_AS(lc_pack)(w - t, d, right + t * bj, bj, bk, room + t * d, wide);
            if (pack_b) rest += (w + wide - 1) / wide * wide * d;
            for (int64_t i = 0; i < m; i += LC_MANY) {
                const int64_t h = m - i < LC_MANY ? m - i : LC_MANY, height = LC_AS(lc_height)(h);
                const LC_REAL *left = a + i * ai + k * ak;
                if (pack_a)
                    for (int64_t s = 0; s < h; s += height)
                        LC_AS(lc_pack)(h - s < height ? h - s : height, d, left + s * ai, ai, ak,
                                       rest + s / height * LC_WIDE * d, LC_WIDE);
                const int64_t done = m == 1 && !pack_b && cj == 1
                                         ? LC_AS(lc_row)(w, d, left, ak, right, bk, c + j, add || k)
                                         : 0;
                int64_t from[LC_MANY / 2], to[LC_MANY / 2];
                for (int64_t s = 0; s < h; s += height) {
                    int64_t *const first = &from[s / height], *const last = &to[s / height];
                    const int64_t rows = h - s < height ? h - s : height;
                    const LC_REAL *at = left + s * ai;
                    *first = 0, *last = d;
                    if (d < 4 * LC_V || (at[(d - 1) * ak] != 0 && at[(rows - 1) * ai] != 0)) continue; /* as a rule */
                    LC_AS(lc_extent)(rows, d, at, ai, ak, first, last);
                    if (finite < 0 && *last - *first < d)
                        finite = pack_b ? LC_AS(lc_finite)(1, (w + wide - 1) / wide * wide * d, room, 0)
                                        : LC_AS(lc_finite)(d, w, right, bk);
                    if (!finite) *first = 0, *last = d;
                }
                for (int64_t t = done; t < w; t += wide)
                    for (int64_t s = 0; s < h; s += height) {
                        const int64_t rows = h - s < height ? h - s : height, columns = w - t < wide ? w - t : wide;
                        if (j + t >= i + s + rows - 1 + high || j + t + columns <= i + s + low) continue;
                        const int64_t at = from[s / height], next = pack_b ? wide : bk, along = pack_a ? LC_WIDE : ak;
                        LC_AS(lc_rows_apart)(rows, columns, to[s / height] - at,
                                             (pack_a ? rest + s / height * LC_WIDE * d : left + s * ai) + at * along,
                                             pack_a ? 1 : ai, along, (pack_b ? room + t * d : right + t) + at * next,
                                             next, c + (i + s) * ci + (j + t) * cj, ci, cj, add || k);
                    }
            }
        }
}

/* Rows, or columns where there are more, are dealt out to the threads. */
LC_USED static void LC_AS(lc_share)(int64_t m, int64_t n, int64_t depth, const LC_REAL *a, int64_t ai, int64_t ak,
                                    const LC_REAL *b, int64_t bk, int64_t bj, LC_REAL *c, int64_t ci, int64_t cj,
                                    int add, LC_REAL *room, int64_t room_each, int64_t threads, int64_t low,
                                    int64_t high)
{
    const int64_t parts = LC_AS(lc_parts)(m, n, depth, threads);
    const int dots = ak == 1 && bk == 1 && (m <= 2 || n <= 2);
    if (parts == 1) {
        if (dots) LC_AS(lc_dots)(m, n, depth, a, ai, b, bj, c, ci, cj, add);
        else LC_AS(lc_blocks)(m, n, depth, a, ai, ak, b, bk, bj, c, ci, cj, add, room, low, high);
        return;
    }
    const int down = m >= n;
    const int64_t longest = down ? m : n, unit = down ? 2 : 2 * LC_V;
    const int64_t step = ((longest + parts - 1) / parts + unit - 1) / unit * unit;
    const lc_caller caller = lc_calling(parts);
#pragma omp parallel for schedule(static) num_threads(parts)
    for (int64_t p = 0; p < parts; p++) {
        const int64_t from = p * step, count = longest - from < step ? longest - from : step;
        const unsigned own = lc_join(caller);
        if (dots && count > 0)
            LC_AS(lc_dots)(down ? count : m, down ? n : count, depth, down ? a + from * ai : a, ai,
                           down ? b : b + from * bj, bj, c + from * (down ? ci : cj), ci, cj, add);
        else if (count > 0)
            LC_AS(lc_blocks)(down ? count : m, down ? n : count, depth, down ? a + from * ai : a, ai, ak,
                             down ? b : b + from * bj, bk, bj, c + from * (down ? ci : cj), ci, cj, add,
                             room + p * room_each, down ? low + from : low - from, down ? high + from : high - from);
        lc_round_again(own);
    }
}

/* C[i,j] = or += the sum over k of A[i,k] B[k,j], for i < m, j < n, k < depth. A[i,k] is a[i * ai + k * ak], and so on.
   `room`: as many bytes as lc_product_room says, aligned. C is apart from A and B. Elements but those with
   i + low <= j < i + high may be left as they are. */
LC_USED static void LC_AS(lc_product_between)(int64_t m, int64_t n, int64_t depth, const LC_REAL *a, int64_t ai,
                                              int64_t ak, const LC_REAL *b, int64_t bk, int64_t bj, LC_REAL *c,
                                              int64_t ci, int64_t cj, int add, void *room, int64_t threads, int64_t low,
                                              int64_t high)
{
    const int64_t each = LC_AS(lc_product_room)(m, n, depth, ai, bj, ci, cj, 1) / (int64_t)sizeof(LC_REAL);
    if (m <= 0 || n <= 0) return;
    if (depth <= 0) {
        for (int64_t i = 0; i < m && !add; i++)
            for (int64_t j = 0; j < n; j++) c[i * ci + j * cj] = 0;
    } else if (ak == 1 && bk == 1 && (m <= 2 || n <= 2))
        LC_AS(lc_share)(m, n, depth, a, ai, ak, b, bk, bj, c, ci, cj, add, room, each, threads, low, high);
    else if (cj != 1 ? ci == 1 : n < LC_V && m > 2 * LC_V && ai == 1 && depth >= 32) /* vectors run down C */
        LC_AS(lc_share)(n, m, depth, b, bj, bk, a, ak, ai, c, cj, ci, add, room, each, threads, 1 - high, 1 - low);
    else
        LC_AS(lc_share)(m, n, depth, a, ai, ak, b, bk, bj, c, ci, cj, add, room, each, threads, low, high);
}

LC_USED static void LC_AS(lc_product)(int64_t m, int64_t n, int64_t depth, const LC_REAL *a, int64_t ai, int64_t ak,
                                      const LC_REAL *b, int64_t bk, int64_t bj, LC_REAL *c, int64_t ci, int64_t cj,
                                      int add, void *room, int64_t threads)
{
    LC_AS(lc_product_between)(m, n, depth, a, ai, ak, b, bk, bj, c, ci, cj, add, room, threads, -m, n);
}
