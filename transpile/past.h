/* to[k] = from[k] for k < n, past the caches: whole lines of `to` are written as such and not read before; parts of lines
   at both ends go through the caches. LC_FENCE() has other threads see them. LC_REAL is the type, LC_AS(name) a name for
   it. */
#undef LC_LINE
#if defined(__GNUC__) && !defined(__clang__) && defined(__SSE2__)
#if defined(__AVX512F__)
#define LC_LINE 64
#define LC_LEAVE_f32 __builtin_ia32_movntps512
#define LC_LEAVE_f64 __builtin_ia32_movntpd512
#elif defined(__AVX__)
#define LC_LINE 32
#define LC_LEAVE_f32 __builtin_ia32_movntps256
#define LC_LEAVE_f64 __builtin_ia32_movntpd256
#else
#define LC_LINE 16
#define LC_LEAVE_f32 __builtin_ia32_movntps
#define LC_LEAVE_f64 __builtin_ia32_movntpd
#endif
typedef LC_REAL LC_AS(lc_line) __attribute__((vector_size(LC_LINE), aligned(sizeof(LC_REAL)), may_alias));
#endif

LC_USED static void LC_AS(lc_past)(LC_REAL *restrict to, const LC_REAL *restrict from, int64_t n)
{
    int64_t k = 0;
#ifdef LC_LINE
    const int64_t each = 64 / (int64_t)sizeof(LC_REAL);
    const int64_t first = (int64_t)(-(uintptr_t)to % 64 / sizeof(LC_REAL));
    for (; k < first && k < n; k++) to[k] = from[k];
    for (; k <= n - each; k += each)
        LC_UNROLL(4) for (int64_t at = k; at < k + each; at += LC_LINE / (int64_t)sizeof(LC_REAL))
            LC_AS(LC_LEAVE)(to + at, *(const LC_AS(lc_line) *)(from + at));
#endif
    for (; k < n; k++) to[k] = from[k];
}
