/* Rows of a few elements: to[k] = from[k], or +=, for k < n. What does not fill a vector goes through a mask, where
   there are masks; nothing else is touched. LC_REAL is the type, LC_AS(name) a name for it. */
#if defined(__AVX512F__) && defined(__GNUC__) && !defined(__clang__)
#define LC_SOME_f32 __builtin_ia32_loadups512_mask
#define LC_SOME_f64 __builtin_ia32_loadupd512_mask
#define LC_PUT_f32 __builtin_ia32_storeups512_mask
#define LC_PUT_f64 __builtin_ia32_storeupd512_mask
typedef LC_REAL LC_AS(lc_masked) __attribute__((vector_size(64)));
typedef LC_REAL LC_AS(lc_span) __attribute__((vector_size(64), aligned(sizeof(LC_REAL)), may_alias));
#define LC_WHOLE (64 / (int64_t)sizeof(LC_REAL))

LC_USED static inline void LC_AS(lc_copy)(LC_REAL *to, const LC_REAL *from, int64_t n)
{
    for (; n >= LC_WHOLE; n -= LC_WHOLE, to += LC_WHOLE, from += LC_WHOLE)
        *(LC_AS(lc_span) *)to = *(const LC_AS(lc_span) *)from;
    if (n <= 0) return;
    const unsigned some = (1u << n) - 1;
    LC_AS(LC_PUT)((void *)to, LC_AS(LC_SOME)((const void *)from, (LC_AS(lc_masked)){0}, some), some);
}

LC_USED static inline void LC_AS(lc_add)(LC_REAL *to, const LC_REAL *from, int64_t n)
{
    for (; n >= LC_WHOLE; n -= LC_WHOLE, to += LC_WHOLE, from += LC_WHOLE)
        *(LC_AS(lc_span) *)to += *(const LC_AS(lc_span) *)from;
    if (n <= 0) return;
    const unsigned some = (1u << n) - 1;
    const LC_AS(lc_masked) x = LC_AS(LC_SOME)((const void *)from, (LC_AS(lc_masked)){0}, some);
    LC_AS(LC_PUT)((void *)to, LC_AS(LC_SOME)((const void *)to, (LC_AS(lc_masked)){0}, some) + x, some);
}
#undef LC_WHOLE
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
#endif
