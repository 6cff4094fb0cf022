#ifndef LC_MATH_H
#define LC_MATH_H
/* Elementary functions for generated loops.

   Every function is a `static inline` without branches, so that gcc vectorises the loop it is inlined into
   (`#pragma omp simd`, -O3, 512-bit vectors), for float and double alike. Exceptions call libm and say "libm".
   One choice after the other, none by (a) & (b): where gcc knows one of them on some way, it keeps a truth for the
   other, which it cannot vectorise.
   Infinities, NaN, signed zeros, denormals and overflow follow C99 Annex F, or NumPy where it has a view.

   Names: lc_<numpy name>, with an `f` for float. lc__* is private.
   Needs -fno-math-errno -fno-trapping-math to vectorise; correct with any -O level, with and without FMA.
   Whole range, no limits on arguments. Largest errors: float 2.2 ulp (x^-3/4; sigmoid 1.97, log2 1.8, most 0.5 to
   1.6), double 2.1 ulp (tanh, x^-3/4), 3.3 (erfc); absolute, not relative, at the zeros of double gammaln and digamma
   and of logaddexp.
   libm, scalar: double sin, cos, tan, pow; gammaln; mod and floor_div. All others vectorise.
   Never put this folder on an include path (-I): <math.h> must stay the system's.

   NOT for -ffast-math: compensated sums and the rounding constants below must be left alone.
   Assumes round-to-nearest, and double arithmetic that is double (x86-64, not x87).

   The methods are the textbook ones: Cody & Waite, "Software Manual for the Elementary Functions" (1980) for the
   reductions with a split constant; Muller, "Elementary Functions" (2016) for the rest. The coefficients are
   minimax fits (Remez, 50 digits), each rounded in turn with the rest refitted; the error stands beside each.
   Measured errors: tests/test_math.py; times: benchmarks/math_kernels.py. */

#include <stdint.h>

#define LC_FN static inline __attribute__((always_inline))
#define LC_INFF __builtin_inff()
#define LC_NANF __builtin_nanf("")
#define LC_INF __builtin_inf()
#define LC_NAN __builtin_nan("")

LC_FN float lc__f(uint32_t u) { union { uint32_t u; float f; } v = { .u = u }; return v.f; }
LC_FN uint32_t lc__u(float f) { union { float f; uint32_t u; } v = { .f = f }; return v.u; }
LC_FN double lc__d(uint64_t u) { union { uint64_t u; double d; } v = { .u = u }; return v.d; }
LC_FN uint64_t lc__l(double d) { union { double d; uint64_t u; } v = { .d = d }; return v.u; }

/* ---- signs, rounding, comparisons ---------------------------------------------------------------------------- */

LC_FN float lc_absf(float x) { return __builtin_fabsf(x); }
LC_FN double lc_abs(double x) { return __builtin_fabs(x); }
LC_FN float lc_copysignf(float x, float y) { return __builtin_copysignf(x, y); }
LC_FN double lc_copysign(double x, double y) { return __builtin_copysign(x, y); }
/* v where c, else 0. */
LC_FN float lc_or_zerof(_Bool c, float v) { return lc__f(lc__u(v) & -(uint32_t)c); }
LC_FN double lc_or_zero(_Bool c, double v) { return lc__d(lc__l(v) & -(uint64_t)c); }
/* v where c, else w: by bits, as gcc would join the conditions of several choices. */
LC_FN float lc_eitherf(_Bool c, float v, float w) { return lc__f((lc__u(v) & -(uint32_t)c) | (lc__u(w) & ~-(uint32_t)c)); }
LC_FN double lc_either(_Bool c, double v, double w) { return lc__d((lc__l(v) & -(uint64_t)c) | (lc__l(w) & ~-(uint64_t)c)); }
#define lc_either_int(c, v, w) (((v) & -(int)(c)) | ((w) & ((int)(c) - 1)))
LC_FN int lc_signbitf(float x) { return (int)(lc__u(x) >> 31); }
LC_FN int lc_signbit(double x) { return (int)(lc__l(x) >> 63); }
LC_FN int lc_isnanf(float x) { return x != x; }
LC_FN int lc_isnan(double x) { return x != x; }
LC_FN int lc_isinff(float x) { return lc_absf(x) == LC_INFF; }
LC_FN int lc_isinf(double x) { return lc_abs(x) == LC_INF; }
LC_FN int lc_isfinitef(float x) { return lc_absf(x) < LC_INFF; }
LC_FN int lc_isfinite(double x) { return lc_abs(x) < LC_INF; }

/* Integers of 64 bits from numbers, as a cast of x86 makes them (what does not fit is the least one), and numbers from
   integers. Below AVX-512 a processor converts one at a time, and gcc leaves the loop around it scalar; here a number is
   two halves of 32 bits, each in the last bits of a double. A counter is below 2^51. A float is rounded once: the double
   in between is odd where it is not exact (Boldo & Melquiond, "Emulation of a FMA and correctly rounded sums", 2008). */
#if defined(__AVX2__) && !defined(__AVX512DQ__)
LC_FN int64_t lc_integer(double x) {
    double whole = __builtin_trunc(x), high = __builtin_floor(whole * 0x1p-32), low = whole - high * 0x1p32;
    uint64_t i = ((lc__l(high + 0x1.8p52) - lc__l(0x1.8p52)) << 32) + (lc__l(low + 0x1p52) - lc__l(0x1p52));
    return lc_abs(x) < 0x1p63 ? (int64_t)i : INT64_MIN;
}
LC_FN int64_t lc_integerf(float x) { return lc_integer(x); }
LC_FN double lc_counter(int64_t i) { return lc__d((uint64_t)i + lc__l(0x1.8p52)) - 0x1.8p52; }
LC_FN float lc_counterf(int64_t i) { return (float)lc_counter(i); }
LC_FN double lc__high(int64_t i) { return lc__d(((uint64_t)i >> 32) ^ 0x4530000080000000u) - 0x1.000008p84; }
LC_FN double lc__low(int64_t i) { return lc__d(((uint64_t)i & 0xffffffffu) | lc__l(0x1p52)) - 0x1p52; }
LC_FN double lc_number(int64_t i) { return lc__high(i) + lc__low(i); }
LC_FN float lc_numberf(int64_t i) {
    double high = lc__high(i), low = lc__low(i), sum = high + low, rest = low - (sum - high);
    uint64_t odd = (lc__l(sum) - ((rest < 0) != (sum < 0))) | 1;
    return (float)(rest != 0 ? lc__d(odd) : sum);
}
#else
LC_FN int64_t lc_integer(double x) { return (int64_t)x; }
LC_FN int64_t lc_integerf(float x) { return (int64_t)x; }
LC_FN double lc_counter(int64_t i) { return (double)i; }
LC_FN float lc_counterf(int64_t i) { return (float)i; }
LC_FN double lc_number(int64_t i) { return (double)i; }
LC_FN float lc_numberf(int64_t i) { return (float)i; }
#endif

/* v / d for a divisor that a loop does not change: before it are made f = lc_scale(d), s = d * f, r = lc_inverse(s), and
   l = lc_inverse_rest(s, r), what r lacks of 1 / s; in the loop stand v * f, a product, and a fused one (Brisebarre &
   Muller, "Correctly rounded multiplication by arbitrary precision constants", 2008). f, a power of two, keeps r normal.
   Equal to v / d, but for one rounding in some million, or where the quotient is as good as denormal. r is rounded
   towards 0 and l never 0, so that both products have the sign of the quotient: infinities are none that cancel. */
LC_FN float lc_scalef(float d) { return lc_absf(d) < 0x1p-64f ? 0x1p64f : lc_absf(d) > 0x1p64f ? 0x1p-64f : 1.0f; }
LC_FN double lc_scale(double d) { return lc_abs(d) < 0x1p-512 ? 0x1p512 : lc_abs(d) > 0x1p512 ? 0x1p-512 : 1.0; }
#ifdef __FMA__
LC_FN float lc_inversef(float s) { float r = 1.0f / s; return lc__f(lc__u(r) - (__builtin_fmaf(-s, r, 1.0f) < 0)); }
LC_FN double lc_inverse(double s) { double r = 1.0 / s; return lc__d(lc__l(r) - (__builtin_fma(-s, r, 1.0) < 0)); }
LC_FN float lc_inverse_restf(float s, float r) {
    float rest = __builtin_fmaf(-s, r, 1.0f);
    return rest == rest ? (rest + 0x1p-60f) * r : r;
}
LC_FN double lc_inverse_rest(double s, double r) {
    double rest = __builtin_fma(-s, r, 1.0);
    return rest == rest ? (rest + 0x1p-120) * r : r;
}
LC_FN float lc_quotientf(float v, float r, float l, float f) { return __builtin_fmaf(v * f, r, v * f * l); }
LC_FN double lc_quotient(double v, double r, double l, double f) { return __builtin_fma(v * f, r, v * f * l); }
#else
LC_FN float lc_inversef(float s) { return s; }
LC_FN double lc_inverse(double s) { return s; }
LC_FN float lc_inverse_restf(float s, float r) { (void)s; return r; }
LC_FN double lc_inverse_rest(double s, double r) { (void)s; return r; }
LC_FN float lc_quotientf(float v, float r, float l, float f) { (void)l; return v * f / r; }
LC_FN double lc_quotient(double v, double r, double l, double f) { (void)l; return v * f / r; }
#endif

/* One instruction from SSE4.1 on; libm calls (not vectorised) on older machines. */
LC_FN float lc_sqrtf(float x) { return __builtin_sqrtf(x); }
LC_FN double lc_sqrt(double x) { return __builtin_sqrt(x); }
LC_FN float lc_rintf(float x) { return __builtin_rintf(x); }
LC_FN double lc_rint(double x) { return __builtin_rint(x); }
LC_FN float lc_floorf(float x) { return __builtin_floorf(x); }
LC_FN double lc_floor(double x) { return __builtin_floor(x); }
LC_FN float lc_ceilf(float x) { return __builtin_ceilf(x); }
LC_FN double lc_ceil(double x) { return __builtin_ceil(x); }
LC_FN float lc_truncf(float x) { return __builtin_truncf(x); }
LC_FN double lc_trunc(double x) { return __builtin_trunc(x); }

/* NumPy's maximum and minimum: a NaN on either side wins; of equals (+0, -0) the first. */
LC_FN float lc_maxf(float a, float b) { float m = b > a ? b : a; return b != b ? b : m; }
LC_FN double lc_max(double a, double b) { double m = b > a ? b : a; return b != b ? b : m; }
LC_FN float lc_minf(float a, float b) { float m = b < a ? b : a; return b != b ? b : m; }
LC_FN double lc_min(double a, double b) { double m = b < a ? b : a; return b != b ? b : m; }
/* The same of a number c that is not NaN and a value: one instruction of x86, if gcc does not know the number. It makes up
   to ten of min(max(x, 0), 6), as it sees through both selects, and keeps constants in two places. */
#if defined(__x86_64__)
LC_FN float lc_heldf(float c) { __asm__("" : "+x"(c)); return c; }
LC_FN double lc_held(double c) { __asm__("" : "+x"(c)); return c; }
#else
LC_FN float lc_heldf(float c) { return c; }
LC_FN double lc_held(double c) { return c; }
#endif
LC_FN float lc_at_leastf(float c, float x) { return c > x ? c : x; }
LC_FN double lc_at_least(double c, double x) { return c > x ? c : x; }
LC_FN float lc_at_mostf(float c, float x) { return c < x ? c : x; }
LC_FN double lc_at_most(double c, double x) { return c < x ? c : x; }
/* A number that is more, or less, than c; else c, as for NaN. */
LC_FN float lc_abovef(float x, float c) { return x > c ? x : c; }
LC_FN double lc_above(double x, double c) { return x > c ? x : c; }
LC_FN float lc_belowf(float x, float c) { return x < c ? x : c; }
LC_FN double lc_below(double x, double c) { return x < c ? x : c; }
/* NumPy's fmax and fmin: a NaN loses against a number. */
LC_FN float lc_fmaxf(float a, float b) { float m = b > a ? b : a; return a != a ? b : m; }
LC_FN double lc_fmax(double a, double b) { double m = b > a ? b : a; return a != a ? b : m; }
LC_FN float lc_fminf(float a, float b) { float m = b < a ? b : a; return a != a ? b : m; }
LC_FN double lc_fmin(double a, double b) { double m = b < a ? b : a; return a != a ? b : m; }

/* -1, 0 (also for -0, as NumPy), 1, NaN. */
LC_FN float lc_signf(float x) { float s = x > 0 ? 1.f : (x < 0 ? -1.f : 0.f); return x != x ? x : s; }
LC_FN double lc_sign(double x) { double s = x > 0 ? 1. : (x < 0 ? -1. : 0.); return x != x ? x : s; }
/* 0 below zero, 1 above, h at zero, NaN at NaN. */
LC_FN float lc_heavisidef(float x, float h) { float s = x > 0 ? 1.f : (x < 0 ? 0.f : h); return x != x ? x : s; }
LC_FN double lc_heaviside(double x, double h) { double s = x > 0 ? 1. : (x < 0 ? 0. : h); return x != x ? x : s; }

/* ---- exponentials --------------------------------------------------------------------------------------------

   x = n ln2 + r, |r| <= ln2/2 (Cody & Waite: n*LN2_HI is exact), e^x = 2^n (1 + r + r^2 q(r)).
   Adding 1.5*2^23 (1.5*2^52) rounds to an integer and leaves it in the low bits of the sum, here already with the
   exponent bias added, so that one shift makes 2^n. */

#define LC_LOG2EF 0x1.715476p+0f
#define LC_LN2_HIF 0x1.62e4p-1f /* 14 bits: n*LN2_HI exact for |n| < 2^10 */
#define LC_LN2_LOF 0x1.7f7d1cp-20f
#define LC_LOG2E 0x1.71547652b82fep+0
#define LC_LN2_HI 0x1.62e42fefa3p-1 /* 41 bits: exact for |n| < 2^12 */
#define LC_LN2_LO 0x1.3de6af278ece6p-42
#define LC_ROUNDF 0x1.8p23f
#define LC_ROUND 0x1.8p52

/* (e^r - 1 - r) / r^2 for |r| <= 0.35; in pairs (Estrin), as what a vector of numbers waits for is its chain of terms */
LC_FN float lc__expqf(float r) /* 2^-28.8 of r */
{
    float z = r * r, a = 0x1.555556p-3f * r + 0.5f, b = 0x1.11104cp-7f * r + 0x1.5554aap-5f;
    float c = 0x1.a213a4p-13f * r + 0x1.6d7936p-10f;
    return (c * z + b) * z + a;
}
LC_FN double lc__expq(double r) /* 2^-61.6 of r */
{
    double z = r * r, w = z * z, a = 0x1.5555555555559p-3 * r + 0.5;
    double b = 0x1.111111110f5d4p-7 * r + 0x1.555555555555ep-5, c = 0x1.a01a01b05a16bp-13 * r + 0x1.6c16c16c11a2ap-10;
    double d = 0x1.71ddf6ef5f4ccp-19 * r + 0x1.a01a01c1a82ecp-16, e = 0x1.af6187845ddb0p-26 * r + 0x1.27e49adbae244p-22;
    return ((0x1.1fe0105b8b038p-29 * z + e) * w + (d * z + c)) * w + (b * z + a);
}

/* y * 2^(i - 254) (double: i - 2046) in two steps, as the result may overflow or be denormal; i in the low bits. */
LC_FN float lc__scalef(float y, uint32_t i)
{
    uint32_t half = (i << 22) & 0xff800000u;
    return y * lc__f(half) * lc__f((i << 23) - half);
}
LC_FN double lc__scale(double y, uint64_t i)
{
    uint64_t half = (i << 51) & 0xfff0000000000000u;
    return y * lc__d(half) * lc__d((i << 52) - half);
}

/* e^x * 2^k from t = x log2(e) + magic, magic = 2^23 * 1.5 + 254 + k (double: 2^52 * 1.5 + 2046 + k) */
LC_FN float lc__exptf(float x, float t, float magic)
{
    float n = t - magic, r = (x - n * LC_LN2_HIF) - n * LC_LN2_LOF;
    return lc__scalef(1.f + (r + r * r * lc__expqf(r)), lc__u(t));
}
LC_FN double lc__expt(double x, double t, double magic)
{
    double n = t - magic, r = (x - n * LC_LN2_HI) - n * LC_LN2_LO;
    return lc__scale(1. + (r + r * r * lc__expq(r)), lc__l(t));
}

/* e^x * 2^k, for -104 <= x <= 89 + 1 and k in -1..0 (double: -746 <= x <= 710 + 1); NaN stays NaN */
LC_FN float lc__expkf(float x, float k)
{
    float magic = LC_ROUNDF + 254.f + k;
    return lc__exptf(x, x * LC_LOG2EF + magic, magic);
}
LC_FN double lc__expk(double x, double k)
{
    double magic = LC_ROUND + 2046. + k;
    return lc__expt(x, x * LC_LOG2E + magic, magic);
}

/* e^x where neither x nor the result is extreme: |x| <= 87 */
LC_FN float lc__expnf(float x)
{
    float t = x * LC_LOG2EF + (LC_ROUNDF + 127.f), n = t - (LC_ROUNDF + 127.f);
    float r = (x - n * LC_LN2_HIF) - n * LC_LN2_LOF;
    return (1.f + (r + r * r * lc__expqf(r))) * lc__f(lc__u(t) << 23);
}

/* The lesser of two numbers above 0, by their bits; SSE2 compares no integers of 64. */
LC_FN float lc__leastf(float a, float b)
{
    int32_t i = (int32_t)lc__u(a), most = (int32_t)lc__u(b);
    return lc__f((uint32_t)(most < i ? most : i));
}
LC_FN double lc__least(double a, double b)
{
#if defined(__x86_64__) && !defined(__SSE4_2__)
    return b < a ? b : a;
#else
    int64_t i = (int64_t)lc__l(a), most = (int64_t)lc__l(b);
    return lc__d((uint64_t)(most < i ? most : i));
#endif
}

/* What is too large is bounded by its n alone: r grows with it, and all terms with r. A bound on x itself, a constant, would
   have gcc compute three versions of every number and choose. NaN passes by way of r. */
LC_FN float lc_expf(float x)
{
    float c = -104.f > x ? -104.f : x, magic = LC_ROUNDF + 254.f;
    return lc__exptf(c, lc__leastf(c * LC_LOG2EF + magic, magic + 129.f), magic);
}
LC_FN double lc_exp(double x)
{
    double c = -746. > x ? -746. : x, magic = LC_ROUND + 2046.;
    return lc__expt(c, lc__least(c * LC_LOG2E + magic, magic + 1025.), magic);
}

LC_FN float lc_exp2f(float x)
{
    float c = -151.f > x ? -151.f : x, t = lc__leastf(c + (LC_ROUNDF + 254.f), LC_ROUNDF + 254.f + 129.f);
    float r = c - (t - (LC_ROUNDF + 254.f)), z = r * r; /* (2^r - 1)/r for |r| <= 1/2, 2^-26.2 of r */
    float q = (0x1.168b32p-13f * r + 0x1.5ef87p-10f) * z + (0x1.3b69b4p-7f * r + 0x1.c6af9ap-5f);
    return lc__scalef(1.f + r * (q * z + (0x1.ebfb92p-3f * r + 0x1.62e43p-1f)), lc__u(t));
}
LC_FN double lc_exp2(double x)
{
    double c = -1076. > x ? -1076. : x;
    double t = lc__least(c + (LC_ROUND + 2046.), LC_ROUND + 2046. + 1025.);
    double r = c - (t - (LC_ROUND + 2046.)), z = r * r, w = z * z; /* 2^-57.7 of r */
    double a = 0x1.c6b08d704a1f7p-5 * r + 0x1.ebfbdff82c573p-3, b = 0x1.5d87fe786c0ebp-10 * r + 0x1.3b2ab6fbab16ep-7;
    double d = 0x1.ffcbfd7248c41p-17 * r + 0x1.430912dbcc413p-13, e = 0x1.b522df0c33389p-24 * r + 0x1.62c09590d1973p-20;
    double f = 0x1.ece74aa4d52c3p-32 * r + 0x1.e32a168e9ebe4p-28;
    double q = ((0x1.ffd983f611629p-35 * z + f) * w + (e * z + d)) * w + (b * z + a);
    return lc__scale(1. + (r * 0x1.62e42fefa39efp-1 + z * q), lc__l(t));
}

/* e^x - 1 = 2^n (r + r^2 q) + (2^n - 1) for |x| <= 87 (double: 708). The tail of r matters where the terms cancel. */
LC_FN float lc__expm1cf(float x)
{
    float t = x * LC_LOG2EF + (LC_ROUNDF + 127.f), n = t - (LC_ROUNDF + 127.f);
    float h = x - n * LC_LN2_HIF, l = n * LC_LN2_LOF, r = h - l;
    float s = lc__f(lc__u(t) << 23), tail = (h - r) - l;
    return (r * s + (s - 1.f)) + s * (r * r * lc__expqf(r) + tail);
}
LC_FN double lc__expm1c(double x)
{
    double t = x * LC_LOG2E + (LC_ROUND + 1023.), n = t - (LC_ROUND + 1023.);
    double h = x - n * LC_LN2_HI, l = n * LC_LN2_LO, r = h - l;
    double s = lc__d(lc__l(t) << 52), tail = (h - r) - l;
    return (r * s + (s - 1.)) + s * (r * r * lc__expq(r) + tail);
}
/* 2^128 is no float: the whole sum is taken at half size. Near zero, that would lose a denormal's last bit and -0. */
LC_FN float lc_expm1f(float x)
{
    float c = 89.f < x ? 89.f : x;
    c = -50.f > c ? -50.f : c;
    float t = c * LC_LOG2EF + (LC_ROUNDF + 126.f), n = t - (LC_ROUNDF + 126.f);
    float h = c - n * LC_LN2_HIF, l = n * LC_LN2_LOF, r = h - l;
    float s = lc__f(lc__u(t) << 23), tail = (h - r) - l; /* 2^(n-1) */
    float y = (r * s + (s - 0.5f)) + s * (r * r * lc__expqf(r) + tail);
    return lc_absf(x) < 0x1p-25f ? x : y + y;
}
LC_FN double lc_expm1(double x)
{
    double c = 710. < x ? 710. : x;
    c = -50. > c ? -50. : c;
    double t = c * LC_LOG2E + (LC_ROUND + 1022.), n = t - (LC_ROUND + 1022.);
    double h = c - n * LC_LN2_HI, l = n * LC_LN2_LO, r = h - l;
    double s = lc__d(lc__l(t) << 52), tail = (h - r) - l;
    double y = (r * s + (s - 0.5)) + s * (r * r * lc__expq(r) + tail);
    return lc_abs(x) < 0x1p-54 ? x : y + y;
}

/* 1/(1 + e^-x) from e^-|x|, so that the left tail keeps its digits down to the denormals. */
LC_FN float lc_sigmoidf(float x)
{
    float a = -lc_absf(x), e = lc__expkf(-104.f > a ? -104.f : a, 0.f);
    float s = 1.f + e, q = (x < 0 ? e : 1.f) / s;
    return q - q * ((1.f - s) + e); /* what s lost */
}
LC_FN double lc_sigmoid(double x)
{
    double a = -lc_abs(x), e = lc__expk(-746. > a ? -746. : a, 0.);
    double s = 1. + e, q = (x < 0 ? e : 1.) / s;
    return q - q * ((1. - s) + e);
}

/* float: below 0.55 a series in x^2, above 1 - 2/(e^{2|x|} + 1), which is 1 from |x| = 9.02 on. */
LC_FN float lc_tanhf(float x)
{
    float a = lc_absf(x), z = a * a, b = 10.f < a ? 10.f : a;
    float p = -0x1.9921ap-8f * z + 0x1.58e518p-6f; /* (tanh(a)/a - 1)/z, 2^-29.7 */
    p = p * z - 0x1.b91e7ep-5f;
    p = p * z + 0x1.110ceep-3f;
    p = p * z - 0x1.55554ap-2f;
    float far = 1.f - 2.f / (1.f + lc__expnf(b + b));
    return lc_copysignf(a < 0.55f ? a + a * (z * p) : far, x);
}
/* double: tanh|x| = m/(m + 2), m = e^{2|x|} - 1; 1 from |x| = 19.1 on. */
LC_FN double lc_tanh(double x)
{
    double a = lc_abs(x), m = lc__expm1c(2. * (20. < a ? 20. : a));
    double d = m + 2., q = m / d, lost = m < 2. ? (2. - d) + m : 0.;
    return lc_copysign(q - q * lost * (0.5 - 0.5 * q), x); /* 1/d = (1 - q)/2 */
}

/* From e = e^|x|/2: sinh = e - 1/(4e), cosh = e + 1/(4e); sinh below 1 by its own series in x^2. */
LC_FN float lc_sinhf(float x)
{
    float a = lc_absf(x), e = lc__expkf(90.f < a ? 90.f : a, -1.f), z = a * a;
    float p = 0x1.756df8p-19f * z + 0x1.a022b6p-13f; /* (sinh(a)/a - 1)/z for a <= 1, 2^-31.6 */
    p = p * z + 0x1.1110ep-7f;
    p = p * z + 0x1.555556p-3f;
    return lc_copysignf(a < 1.f ? a + a * (z * p) : e - 0.25f / e, x);
}
LC_FN double lc_sinh(double x)
{
    double a = lc_abs(x), e = lc__expk(711. < a ? 711. : a, -1.), z = a * a;
    double p = 0x1.b5bb7efa53d18p-41 * z + 0x1.61171cd37925cp-33; /* 2^-61.8 */
    p = p * z + 0x1.ae646f98213e7p-26;
    p = p * z + 0x1.71de3a3b6a16fp-19;
    p = p * z + 0x1.a01a01a036c6cp-13;
    p = p * z + 0x1.1111111111020p-7;
    p = p * z + 0x1.5555555555556p-3;
    return lc_copysign(a < 1. ? a + a * (z * p) : e - 0.25 / e, x);
}
LC_FN float lc_coshf(float x)
{
    float a = lc_absf(x), e = lc__expkf(90.f < a ? 90.f : a, -1.f);
    return e + 0.25f / e;
}
LC_FN double lc_cosh(double x)
{
    double a = lc_abs(x), e = lc__expk(711. < a ? 711. : a, -1.);
    return e + 0.25 / e;
}

/* ---- logarithms ----------------------------------------------------------------------------------------------

   x = 2^k (1 + f) with 2/3 <= 1 + f < 4/3, so that k = 0 around 1 and nothing cancels there.
   float: ln(1+f) = f - f^2/2 + f^3 p(f). double: s = f/(2+f), ln(1+f) = f - (f^2/2 - s (f^2/2 + R)),
   R = 2 artanh(s)/s - 2, a series in s^2 (Ng's arrangement, in which the rounding of s hardly counts). */

typedef struct { float k, f; } lc__splitf;
typedef struct { double k, f; } lc__split;

LC_FN lc__splitf lc__logsplitf(float x) /* x > 0, finite */
{
    int tiny = x < 0x1p-126f;
    uint32_t u = lc__u(tiny ? x * 0x1p24f : x);
    int32_t k = (int32_t)(u - 0x3f2aaaabu) >> 23; /* bits of 2/3 */
    lc__splitf r = { (float)k - (tiny ? 24.f : 0.f), lc__f(u - ((uint32_t)k << 23)) - 1.f };
    return r;
}
/* A 64-bit shift with sign and a conversion from int64 exist from AVX-512 on only; the bias and 2^52 do without. */
LC_FN lc__split lc__logsplit(double x)
{
    int tiny = x < 0x1p-1022;
    uint64_t u = lc__l(tiny ? x * 0x1p54 : x);
    uint64_t e = (u - 0x3fe5555555555555u + 0x4000000000000000u) >> 52; /* k + 1024 */
    double k = lc__d(0x4330000000000000u | e) - (0x1p52 + 1024.);
    lc__split r = { k - (tiny ? 54. : 0.), lc__d(u - ((e - 1024u) << 52)) - 1. };
    return r;
}
/* ln(1+f) - f for |f| <= 1/3 */
LC_FN float lc__ln1pf(float f) /* 2^-27.3 of f */
{
    float z = f * f, a = -0x1.fffe6cp-3f * f + 0x1.55550ap-2f, b = -0x1.55b5p-3f * f + 0x1.99cef4p-3f;
    float c = -0x1.f09b5p-4f * f + 0x1.1ee538p-3f, d = -0x1.0d3d14p-3f * f + 0x1.1e3492p-3f;
    float p = (d * z + c) * (z * z) + (b * z + a);
    return z * (f * p) - 0.5f * z;
}
LC_FN double lc__ln1p(double f) /* 2^-61.6 */
{
    double s = f / (2. + f), z = s * s, h = 0.5 * f * f;
    double p = 0x1.1b85eb01bdd45p-3 * z + 0x1.0dcaf2ee1ae6cp-3;
    p = p * z + 0x1.3b35ca59509e9p-3;
    p = p * z + 0x1.745c4a927b5e8p-3;
    p = p * z + 0x1.c71c7490e9f3bp-3;
    p = p * z + 0x1.24924921e31d2p-2;
    p = p * z + 0x1.999999999c188p-2;
    p = p * z + 0x1.555555555554fp-1;
    return s * (h + z * p) - h;
}
/* The edges of every logarithm: y inside, x at inf and NaN, -inf at 0, NaN below: by their bits, as a chain of choices
   takes longer than the terms do. */
LC_FN float lc__logedgef(float x, float y)
{
    uint32_t below = -(uint32_t)!(x >= 0), zero = -(uint32_t)(x == 0);
    y = x < LC_INFF ? y : x;
    return lc__f(((lc__u(y) | below) & ~zero) | zero << 23);
}
LC_FN double lc__logedge(double x, double y) /* gcc has no vectors of such bits where SSE2 is all there is */
{
    y = x < LC_INF ? y : x;
    return x > 0 ? y : (x == 0 ? -LC_INF : LC_NAN);
}

LC_FN float lc_logf(float x)
{
    lc__splitf s = lc__logsplitf(x);
    return lc__logedgef(x, s.k * LC_LN2_HIF + (s.f + (lc__ln1pf(s.f) + s.k * LC_LN2_LOF)));
}
LC_FN double lc_log(double x)
{
    lc__split s = lc__logsplit(x);
    return lc__logedge(x, s.k * LC_LN2_HI + (s.f + (lc__ln1p(s.f) + s.k * LC_LN2_LO)));
}
LC_FN float lc_log2f(float x)
{
    lc__splitf s = lc__logsplitf(x);
    float f = s.f, p = -0x1.9147aap-3f * f + 0x1.9f68a2p-3f; /* (log2(1+f) - f log2(e))/f^2, 2^-27 of f */
    p = p * f - 0x1.6310cap-3f;
    p = p * f + 0x1.9d6078p-3f;
    p = p * f - 0x1.ed3f44p-3f;
    p = p * f + 0x1.27a1ap-2f;
    p = p * f - 0x1.715228p-2f;
    p = p * f + 0x1.ec701cp-2f;
    p = p * f - 0x1.715478p-1f;
    return lc__logedgef(x, s.k + (f * LC_LOG2EF + f * (f * p + 0x1.4ae0cp-26f)));
}
LC_FN double lc_log2(double x)
{
    lc__split s = lc__logsplit(x);
    double l = lc__ln1p(s.f);
    return lc__logedge(x, s.k + (s.f * LC_LOG2E + (l * LC_LOG2E + s.f * 0x1.777d0ffda0d24p-56)));
}
LC_FN float lc_log10f(float x)
{
    lc__splitf s = lc__logsplitf(x);
    float f = s.f, p = -0x1.c0fd2ap-5f * f + 0x1.f633cep-5f; /* 2^-27.5 of f */
    p = p * f - 0x1.b329dap-5f;
    p = p * f + 0x1.f15bbap-5f;
    p = p * f - 0x1.28b0a4p-4f;
    p = p * f + 0x1.63fcbap-4f;
    p = p * f - 0x1.bcb6bp-4f;
    p = p * f + 0x1.287a22p-3f;
    p = p * f - 0x1.bcb7b2p-3f;
    float l = f * (f * p + 0x1.526e5p-26f) + s.k * 0x1.3509f8p-18f;
    return lc__logedgef(x, s.k * 0x1.344p-2f + (f * 0x1.bcb7bp-2f + l));
}
LC_FN double lc_log10(double x)
{
    lc__split s = lc__logsplit(x);
    double l = lc__ln1p(s.f) * 0x1.bcb7b1526e50ep-2 + (s.k * 0x1.3fde623e2566bp-43 + s.f * 0x1.95355baaafad3p-57);
    return lc__logedge(x, s.k * 0x1.34413509f7p-2 + (s.f * 0x1.bcb7b1526e50ep-2 + l));
}

/* 2^k (1 + f) = 1 + x: f = x 2^-k + (2^-k - 1) rounds once, so no correction is needed. g = 2^(2-k) stays normal
   up to k = 128 (double: 1024). The result has the sign of x, which also keeps -0. */
LC_FN float lc_log1pf(float x)
{
    int32_t k = (int32_t)(lc__u(1.f + x) - 0x3f2aaaabu) >> 23;
    float g = lc__f(0x40800000u - ((uint32_t)k << 23)), n = (float)k;
    float f = (x * g) * 0.25f + (0.25f * g - 1.f);
    float y = n * LC_LN2_HIF + (f + (lc__ln1pf(f) + n * LC_LN2_LOF));
    y = x < LC_INFF ? y : x;
    y = x > -1.f ? y : (x == -1.f ? -LC_INFF : LC_NANF);
    return lc_copysignf(y, x);
}
LC_FN double lc_log1p(double x)
{
    uint64_t e = (lc__l(1. + x) - 0x3fe5555555555555u + 0x4000000000000000u) >> 52;
    double n = lc__d(0x4330000000000000u | e) - (0x1p52 + 1024.);
    double g = lc__d(0x4010000000000000u - ((e - 1024u) << 52));
    double f = (x * g) * 0.25 + (0.25 * g - 1.);
    double y = n * LC_LN2_HI + (f + (lc__ln1p(f) + n * LC_LN2_LO));
    y = x < LC_INF ? y : x;
    y = x > -1. ? y : (x == -1. ? -LC_INF : LC_NAN);
    return lc_copysign(y, x);
}

/* ---- sine, cosine, tangent -----------------------------------------------------------------------------------

   float: the whole range, in double arithmetic. x/(2 pi) is needed modulo 1 only, so the bits of 1/(2 pi) that give
   whole turns are dropped (Payne & Hanek 1983). Floats are multiples of 2^(e-23): four windows of three pieces,
   29 bits, 29 bits and the rest, serve all exponents; x * piece is exact for the first two. Quarter turns are taken
   off after each (1.5*2^50 rounds to quarters), so what remains is exact where it is small. */

typedef struct { double r; uint32_t q; } lc__anglef;

#define LC_NEAR 0x1p20 /* up to here angles need pieces of pi/2 only, whose multiples are exact (Cody & Waite 1980) */

LC_FN lc__anglef lc__nearf(float x) /* 0 <= x <= LC_NEAR */
{
    double d = x, t = d * 0x1.45f306dc9c883p-1 + 0x1.8p52, n = t - 0x1.8p52;
    lc__anglef y = { (d - n * 0x1.921fb544p+0) - n * 0x1.0b4611a626331p-34, (uint32_t)lc__l(t) };
    return y;
}
LC_FN lc__anglef lc__quarterf(float x) /* x >= 0 = q pi/2 + r (q modulo 4), |r| <= pi/4; NaN at inf */
{
    double a = 0x1.45f306cp-3, b = 0x1.c9c882ap-31, c = 0x1.4fe13abe8fa9ap-61, d = x;
    int w1 = x >= 0x1p50f, w2 = x >= 0x1p76f, w3 = x >= 0x1p102f; /* multiples of 2^27, 2^53, 2^79 */
    a = w1 ? -0x1.1b1bbecp-30 : a;  b = w1 ? 0x1.29fc276p-58 : b;   c = w1 ? -0x1.05c1596447e49p-87 : c;
    a = w2 ? -0x1.5ac07b2p-55 : a;  b = w2 ? 0x1.5f47d4ep-84 : b;   c = w2 ? -0x1.911f924eb5336p-113 : c;
    a = w3 ? -0x1.505c158p-83 : a;  b = w3 ? -0x1.6447e48p-111 : b; c = w3 ? -0x1.3ad4cd8778df8p-139 : c;
    double t = d * a + 0x1.8p50, s = d * a - (t - 0x1.8p50), u = d * b + s;
    double v = u + 0x1.8p50, r = d * c + (u - (v - 0x1.8p50));
    lc__anglef y = { r * 0x1.921fb54442d18p+2, (uint32_t)(lc__l(t) + lc__l(v)) }, n = lc__nearf(x);
    y.r = x <= (float)LC_NEAR ? n.r : y.r; /* the same bits as where a loop knows that all are near */
    y.q = x <= (float)LC_NEAR ? n.q : y.q;
    return y;
}
LC_FN float lc__sincosf(lc__anglef a) /* sin(q pi/2 + r) */
{
    float r = (float)a.r, z = r * r;
    float s = -0x1.9954a4p-13f * z + 0x1.11077ap-7f; /* 2^-28 */
    s = s * z - 0x1.555546p-3f;
    float c = 0x1.99e0eep-16f * z - 0x1.6c0c1ap-10f; /* 2^-32.6 */
    c = c * z + 0x1.55554ap-5f;
    float y = a.q & 1 ? (1.f - 0.5f * z) + z * z * c : r + r * (z * s);
    return lc__f(lc__u(y) ^ ((a.q & 2) << 30));
}
LC_FN float lc__sinef(lc__anglef a, float x) /* a: of |x| */
{
    return lc__f(lc__u(lc__sincosf(a)) ^ (lc__u(x) & 0x80000000u));
}
LC_FN float lc__cosinef(lc__anglef a)
{
    a.q += 1;
    return lc__sincosf(a);
}
LC_FN float lc_sinf(float x) { return lc__sinef(lc__quarterf(lc_absf(x)), x); }
LC_FN float lc_cosf(float x) { return lc__cosinef(lc__quarterf(lc_absf(x))); }
LC_FN float lc_sin_nearf(float x) { return lc__sinef(lc__nearf(lc_absf(x)), x); }
LC_FN float lc_cos_nearf(float x) { return lc__cosinef(lc__nearf(lc_absf(x))); }
/* For loops that hardly ever run (see passes/near.py): called, not written out, as they would be most of the code. */
static __attribute__((noinline, cold, unused)) float lc_sin_farf(float x) { return lc_sinf(x); }
static __attribute__((noinline, cold, unused)) float lc_cos_farf(float x) { return lc_cosf(x); }
LC_FN float lc_tanf(float x)
{
    lc__anglef a = lc__quarterf(lc_absf(x));
    double r = a.r, z = r * r;
    double p = 0x1.0e6b8cdbecdc3p-9 * z - 0x1.543d57dad24b2p-11; /* (tan(r)/r - 1)/z, 2^-33.2 */
    p = p * z + 0x1.4a9c1fc967fffp-8;
    p = p * z + 0x1.1023b9d93ba87p-7;
    p = p * z + 0x1.68512daf86772p-6;
    p = p * z + 0x1.b9fcc53afba1bp-5;
    p = p * z + 0x1.1111831552d29p-3;
    p = p * z + 0x1.555554364d41dp-2;
    double y = r + r * (z * p);
    float f = (float)(a.q & 1 ? -1. / y : y);
    return lc__f(lc__u(f) ^ (lc__u(x) & 0x80000000u));
}
/* double: pi/2 in three pieces of 33 bits and the rest. What each difference rounds off is added again (Knuth's TwoSum),
   as doubles come within 2^-60 of multiples of pi/2. */
typedef struct { double r, l; uint64_t q; } lc__angle; /* q pi/2 + r + l */

LC_FN lc__angle lc__near(double x) /* 0 <= x <= LC_NEAR */
{
    double t = x * 0x1.45f306dc9c883p-1 + 0x1.8p52, n = t - 0x1.8p52;
    double a = n * 0x1.0b4611a6p-34, b = n * 0x1.3198a2ep-69, r = x - n * 0x1.921fb544p+0;
    double s = r - a, v = s - r, e = (r - (s - v)) - (a + v);
    double u = s - b, w = u - s, f = (s - (u - w)) - (b + w);
    double l = (e + f) - n * 0x1.b839a252049c1p-104;
    lc__angle y = { u + l, 0, lc__l(t) };
    y.l = (u - y.r) + l;
    return y;
}
LC_FN double lc__sincos(lc__angle a)
{
    double r = a.r, z = r * r, h = 0.5 * z, one = 1. - h;
    double s = 0x1.5d9416313a12ap-33 * z - 0x1.ae5e6a6589ec8p-26; /* 2^-58 */
    s = s * z + 0x1.71de357dc6e27p-19;
    s = s * z - 0x1.a01a019c19cd9p-13;
    s = s * z + 0x1.111111110f8cbp-7;
    s = s * z - 0x1.5555555555549p-3;
    double c = -0x1.8fbd854778866p-37 * z + 0x1.1eea0b3e77fd7p-29; /* 2^-64 */
    c = c * z - 0x1.27e4f83cbdeacp-22;
    c = c * z + 0x1.a01a019d00905p-16;
    c = c * z - 0x1.6c16c16c1551cp-10;
    c = c * z + 0x1.555555555554ep-5;
    double sine = r + (r * z * s + a.l * one), cosine = one + (((1. - one) - h) + (z * z * c - r * a.l));
    return lc__d(lc__l(a.q & 1 ? cosine : sine) ^ ((a.q & 2) << 62));
}
LC_FN double lc_sin_near(double x)
{
    return lc__d(lc__l(lc__sincos(lc__near(lc_abs(x)))) ^ (lc__l(x) & 0x8000000000000000u));
}
LC_FN double lc_cos_near(double x)
{
    lc__angle a = lc__near(lc_abs(x));
    a.q += 1;
    return lc__sincos(a);
}
LC_FN double lc_sin(double x) { return lc_abs(x) <= LC_NEAR ? lc_sin_near(x) : __builtin_sin(x); } /* libm */
LC_FN double lc_cos(double x) { return lc_abs(x) <= LC_NEAR ? lc_cos_near(x) : __builtin_cos(x); } /* libm */
static __attribute__((noinline, cold, unused)) double lc_sin_far(double x) { return lc_sin(x); }
static __attribute__((noinline, cold, unused)) double lc_cos_far(double x) { return lc_cos(x); }
LC_FN double lc_tan(double x) { return __builtin_tan(x); } /* libm */

/* ---- inverse trigonometric and hyperbolic -------------------------------------------------------------------- */

LC_FN float lc__atanqf(float z) /* (atan(t)/t - 1)/z, z = t^2 <= 1: 2^-31.1 */
{
    float p = 0x1.297636p-10f * z - 0x1.e6b34ap-8f;
    p = p * z + 0x1.753a74p-6f;
    p = p * z - 0x1.7086d2p-5f;
    p = p * z + 0x1.150c1cp-4f;
    p = p * z - 0x1.695494p-4f;
    p = p * z + 0x1.c5119ep-4f;
    p = p * z - 0x1.247622p-3f;
    p = p * z + 0x1.99981cp-3f;
    return p * z - 0x1.555552p-2f;
}
LC_FN double lc__atanq(double z) /* 2^-60.3 */
{
    double p = -0x1.28b13f3944a8bp-17 * z + 0x1.bbf39cf87033ep-14;
    p = p * z - 0x1.3be585a92d75dp-11;
    p = p * z + 0x1.1dcee49bdf6f7p-9;
    p = p * z - 0x1.73bfa529ffc25p-8;
    p = p * z + 0x1.75d79582183ecp-7;
    p = p * z - 0x1.32b0a86ec4b2bp-6;
    p = p * z + 0x1.adfe1a10d54ebp-6;
    p = p * z - 0x1.0d1ba7a27fee2p-5;
    p = p * z + 0x1.394e9586aac72p-5;
    p = p * z - 0x1.5f44317fdfc34p-5;
    p = p * z + 0x1.84bf2f02f385ep-5;
    p = p * z - 0x1.aedd3164d6573p-5;
    p = p * z + 0x1.e1d51c8d73db8p-5;
    p = p * z - 0x1.11103dddd6238p-4;
    p = p * z + 0x1.3b139d18c4507p-4;
    p = p * z - 0x1.745d15ea6e726p-4;
    p = p * z + 0x1.c71c71b78d13bp-4;
    p = p * z - 0x1.249249245c6d4p-3;
    p = p * z + 0x1.9999999998db6p-3;
    return p * z - 0x1.555555555554ep-2;
}
/* All of C99's cases follow from t = small/large once 0/0 is 0 and inf/inf is 1. */
LC_FN float lc_arctan2f(float y, float x)
{
    float ax = lc_absf(x), ay = lc_absf(y);
    float lo = ay > ax ? ax : ay, hi = ay > ax ? ay : ax;
    float t = lo / hi;
    t = lo == hi ? (hi == 0 ? 0.f : 1.f) : t;
    float z = t * t, p = t + t * (z * lc__atanqf(z));
    p = ay > ax ? 0x1.921fb4p+0f - (p - 0x1.4442d2p-24f) : p;
    p = lc_signbitf(x) ? 0x1.921fb4p+1f - (p - 0x1.4442d2p-23f) : p;
    return lc_copysignf(p, y);
}
LC_FN double lc_arctan2(double y, double x)
{
    double ax = lc_abs(x), ay = lc_abs(y);
    double lo = ay > ax ? ax : ay, hi = ay > ax ? ay : ax;
    double t = lo / hi;
    t = lo == hi ? (hi == 0 ? 0. : 1.) : t;
    double z = t * t, p = t + t * (z * lc__atanq(z));
    p = ay > ax ? 0x1.921fb54442d18p+0 - (p - 0x1.1a62633145c07p-54) : p;
    p = lc_copysign(1., x) < 0 ? 0x1.921fb54442d18p+1 - (p - 0x1.1a62633145c07p-53) : p;
    return lc_copysign(p, y);
}
LC_FN float lc_arctanf(float x)
{
    float a = lc_absf(x), t = a > 1.f ? 1.f / a : a, z = t * t, p = t + t * (z * lc__atanqf(z));
    return lc_copysignf(a > 1.f ? 0x1.921fb4p+0f - (p - 0x1.4442d2p-24f) : p, x);
}
LC_FN double lc_arctan(double x)
{
    double a = lc_abs(x), t = a > 1. ? 1. / a : a, z = t * t, p = t + t * (z * lc__atanq(z));
    return lc_copysign(a > 1. ? 0x1.921fb54442d18p+0 - (p - 0x1.1a62633145c07p-54) : p, x);
}

/* asin(a) by its series up to 1/2, above as pi/2 - 2 asin(sqrt((1-a)/2)). */
typedef struct { float s, p; } lc__asinf;
typedef struct { double s, p; } lc__asin;
LC_FN lc__asinf lc__asinhalff(float a) /* s + p: asin of a, or of sqrt((1-a)/2) for a > 1/2 */
{
    float z = a > 0.5f ? 0.5f * (1.f - a) : a * a, s = a > 0.5f ? lc_sqrtf(z) : a;
    float p = 0x1.34de9ep-5f * z + 0x1.d4f3d6p-7f; /* 2^-31.7 */
    p = p * z + 0x1.04d4ap-5f;
    p = p * z + 0x1.6ca74p-5f;
    p = p * z + 0x1.3338acp-4f;
    p = p * z + 0x1.55554cp-3f;
    lc__asinf r = { s, s * (z * p) };
    return r;
}
LC_FN lc__asin lc__asinhalf(double a)
{
    double z = a > 0.5 ? 0.5 * (1. - a) : a * a, s = a > 0.5 ? lc_sqrt(z) : a;
    double p = 0x1.0be294c1f3be3p-5 * z - 0x1.59f0f482ca56bp-6; /* 2^-59.8 */
    p = p * z + 0x1.64fe4deb2b94ep-6;
    p = p * z + 0x1.e16685306b080p-9;
    p = p * z + 0x1.618a0e224d3ccp-7;
    p = p * z + 0x1.7577a80ab5f4ep-7;
    p = p * z + 0x1.ca21418e6a4a8p-7;
    p = p * z + 0x1.1c49de17f8d8cp-6;
    p = p * z + 0x1.6e8bdfe5c7372p-6;
    p = p * z + 0x1.f1c71a8b9fb80p-6;
    p = p * z + 0x1.6db6db722b683p-5;
    p = p * z + 0x1.333333332df15p-4;
    p = p * z + 0x1.5555555555578p-3;
    lc__asin r = { s, s * (z * p) };
    return r;
}
LC_FN float lc_arcsinf(float x)
{
    float a = lc_absf(x);
    lc__asinf t = lc__asinhalff(a);
    float h = 0x1.921fb4p+0f - 2.f * t.s, l = (0x1.921fb4p+0f - h) - 2.f * t.s; /* what h lost */
    return lc_copysignf(a > 0.5f ? h + (l - (2.f * t.p - 0x1.4442d2p-24f)) : t.s + t.p, x);
}
LC_FN double lc_arcsin(double x)
{
    double a = lc_abs(x);
    lc__asin t = lc__asinhalf(a);
    double h = 0x1.921fb54442d18p+0 - 2. * t.s, l = (0x1.921fb54442d18p+0 - h) - 2. * t.s;
    return lc_copysign(a > 0.5 ? h + (l - (2. * t.p - 0x1.1a62633145c07p-54)) : t.s + t.p, x);
}
LC_FN float lc_arccosf(float x)
{
    float a = lc_absf(x);
    lc__asinf t = lc__asinhalff(a);
    float p = t.s + t.p, far = x < 0 ? 0x1.921fb4p+1f - (2.f * p - 0x1.4442d2p-23f) : 2.f * p;
    return a > 0.5f ? far : 0x1.921fb4p+0f - (lc_copysignf(p, x) - 0x1.4442d2p-24f);
}
LC_FN double lc_arccos(double x)
{
    double a = lc_abs(x);
    lc__asin t = lc__asinhalf(a);
    double p = t.s + t.p, far = x < 0 ? 0x1.921fb54442d18p+1 - (2. * p - 0x1.1a62633145c07p-53) : 2. * p;
    return a > 0.5 ? far : 0x1.921fb54442d18p+0 - (lc_copysign(p, x) - 0x1.1a62633145c07p-54);
}

/* Through log1p; above 2^28 arsinh and arcosh are ln(2x). The float versions are the double ones, rounded. */
LC_FN double lc_arcsinh(double x)
{
    double a = lc_abs(x), big = a > 0x1p28 ? 1. : 0., b = a > 0x1p28 ? 0. : a;
    double u = b + b * b / (1. + lc_sqrt(1. + b * b)), far = a - 1.;
    double y = lc_log1p(big > 0 ? far : u) + big * 0x1.62e42fefa39efp-1;
    return lc_copysign(y, x);
}
LC_FN double lc_arccosh(double x)
{
    double big = x > 0x1p28 ? 1. : 0., t = x - 1., b = x > 0x1p28 ? 0. : t;
    double u = b + lc_sqrt(2. * b + b * b);
    double y = lc_log1p(big > 0 ? t : u) + big * 0x1.62e42fefa39efp-1;
    return x < 1. ? LC_NAN : y;
}
LC_FN double lc_arctanh(double x)
{
    double a = lc_abs(x), d = a + a;
    return lc_copysign(0.5 * lc_log1p(a < 0.5 ? d + d * a / (1. - a) : d / (1. - a)), x);
}
LC_FN float lc_arcsinhf(float x) { return (float)lc_arcsinh(x); }
LC_FN float lc_arccoshf(float x) { return (float)lc_arccosh(x); }
LC_FN float lc_arctanhf(float x) { return (float)lc_arctanh(x); }

/* ---- erf, erfc ----------------------------------------------------------------------------------------------- */

/* Below 0.9 a series in x^2; above, 1 - e^-Q(x) with Q = -ln(erfc). */
LC_FN float lc_erff(float x)
{
    float a = lc_absf(x), z = a * a, b = 4.f < a ? 4.f : a;
    float p = 0x1.4d0356p-14f * z - 0x1.a57a78p-11f; /* erf(x)/x - 1, 2^-30 */
    p = p * z + 0x1.543e6ap-8f;
    p = p * z - 0x1.b80058p-6f;
    p = p * z + 0x1.ce2d6p-4f;
    p = p * z - 0x1.81274p-2f;
    p = p * z + 0x1.06eba8p-3f;
    float q = 0x1.5d1602p-17f * b - 0x1.49d5c6p-12f; /* -ln(erfc(x))/x on 0.9..4, 2^-30.1 of erf */
    q = q * b + 0x1.d90cdp-9f;
    q = q * b - 0x1.842ae4p-6f;
    q = q * b + 0x1.b2d086p-4f;
    q = q * b + 0x1.4538eep-1f;
    q = q * b + 0x1.20ee54p+0f;
    float e = lc__expm1cf(-(q * b));
    return lc_copysignf(a < 0.9f ? a + a * p : -e, x);
}
LC_FN double lc_erf(double x) /* the same, split at 1 */
{
    double a = lc_abs(x), z = a * a, b = 6. < a ? 6. : a;
    double p = 0x1.3c2a2e2fc674bp-33 * z - 0x1.c5180263acc53p-30; /* 2^-56.3 */
    p = p * z + 0x1.132e96d148f94p-26;
    p = p * z - 0x1.63931e647e8c4p-23;
    p = p * z + 0x1.ba6953f380b9fp-20;
    p = p * z - 0x1.f4dcf5b1b2b9cp-17;
    p = p * z + 0x1.f9a3b985170eep-14;
    p = p * z - 0x1.c02db93487eb3p-11;
    p = p * z + 0x1.565bcd2c6932cp-8;
    p = p * z - 0x1.b82ce31354eb0p-6;
    p = p * z + 0x1.ce2f21a0458dbp-4;
    p = p * z - 0x1.812746b037a25p-2;
    p = p * z + 0x1.06eba8214db69p-3;
    double q = 0x1.c5c1fafc2c93fp-43 * b - 0x1.5ec3827280b46p-37; /* 2^-61.7 */
    q = q * b + 0x1.ff0df9cf56997p-33;
    q = q * b - 0x1.d26e0592e1b00p-29;
    q = q * b + 0x1.2ad6621343f2ep-25;
    q = q * b - 0x1.1d28476b5bb18p-22;
    q = q * b + 0x1.a2a37127e4c6bp-20;
    q = q * b - 0x1.dfa8e2b22e541p-18;
    q = q * b + 0x1.aafcbbf54c2b2p-16;
    q = q * b - 0x1.1c53b68085e3cp-14;
    q = q * b + 0x1.eb2b340e1a592p-14;
    q = q * b - 0x1.11e7735b3035ap-15;
    q = q * b - 0x1.1a0b45f5c6f59p-11;
    q = q * b + 0x1.b302db45141cfp-10;
    q = q * b - 0x1.8cb2a35ae5598p-13;
    q = q * b - 0x1.3988a40a1d56cp-6;
    q = q * b + 0x1.a4f75021f59cdp-4;
    q = q * b + 0x1.45f2f90bc76e5p-1;
    q = q * b + 0x1.20dd7597e2918p+0;
    return lc_copysign(a < 1. ? a + a * p : -lc__expm1c(-(q * b)), x);
}
/* e^(-x^2) erfcx(x), erfcx by a polynomial in t = (x-4)/(x+4); in double, as e^(-x^2) needs all of x^2. */
LC_FN float lc_erfcf(float x)
{
    double a = lc_absf(x), b = 10.1 < a ? 10.1 : a, t = (b - 4.) / (b + 4.);
    double p = 0x1.a9b11af8805bcp-14 * t - 0x1.daf7100c13246p-16; /* 2^-32.2 */
    p = p * t - 0x1.ab616ef759f8cp-11;
    p = p * t + 0x1.09fd8a8368db0p-8;
    p = p * t - 0x1.a4bb81539455dp-7;
    p = p * t + 0x1.0068746dff557p-5;
    p = p * t - 0x1.027de22c91d73p-4;
    p = p * t + 0x1.be5016132eb5bp-4;
    p = p * t - 0x1.50666321ccd14p-3;
    p = p * t + 0x1.bff01ab807f6fp-3;
    p = p * t - 0x1.0949227ba9fdcp-2;
    p = p * t + 0x1.18932bf039f01p-3;
    double y = p * lc__expk(-b * b, 0.);
    return (float)(x < 0 ? 2. - y : y);
}
/* double: 1 - erf up to 1/2, above e^(-x^2) P((x-2)/(x+2))/x with P = x erfcx(x), and x^2 = h^2 + (x-h)(x+h), h of
   26 bits. 2.7 ulp. */
LC_FN double lc_erfc(double x)
{
    double a = lc_abs(x), b = 27.5 < a ? 27.5 : (a > 0.5 ? a : 0.5), t = (b - 2.) / (b + 2.);
    double p = -0x1.0106ed2ff0df5p-23 * t + 0x1.42c965d2c131dp-22; /* 2^-54.7 */
    p = p * t + 0x1.e0cbe8ddcb972p-24;
    p = p * t - 0x1.2e7b3483a0357p-21;
    p = p * t - 0x1.1b1aed9d094a6p-22;
    p = p * t - 0x1.2c61f87e72eddp-29;
    p = p * t + 0x1.9a1ab111e1ab1p-21;
    p = p * t + 0x1.6e01431934c42p-19;
    p = p * t + 0x1.75a974c42ca8bp-20;
    p = p * t - 0x1.20ed17742af47p-17;
    p = p * t - 0x1.3df28e24514c9p-16;
    p = p * t + 0x1.a1f4868b3f082p-18;
    p = p * t + 0x1.76a0c1a045812p-14;
    p = p * t + 0x1.770e3b0a58157p-14;
    p = p * t - 0x1.499f3e9b86939p-12;
    p = p * t - 0x1.8950144c28ba7p-11;
    p = p * t + 0x1.2758be6207887p-10;
    p = p * t + 0x1.399546cd5d50ap-8;
    p = p * t - 0x1.ec8d2ab1bc417p-8;
    p = p * t - 0x1.dac006bafa15dp-6;
    p = p * t + 0x1.f1b9a3c943fd8p-4;
    p = p * t - 0x1.a1791e43ecf19p-3;
    p = p * t + 0x1.5672b9ea13dd8p-3;
    p = p * t + 0x1.058671b52c776p-1;
    double h = lc__d(lc__l(b) & 0xfffffffff8000000u);
    double d = (b - h) * (b + h); /* < 2^-15 */
    double y = lc__expk(-h * h, 0.) * (p / b), far = y - y * (d * (1. - d * (0.5 - d * 0x1.5555555555555p-3)));
    return a > 0.5 ? (x < 0 ? 2. - far : far) : 1. - lc_erf(x);
}

/* ---- roots and powers ---------------------------------------------------------------------------------------- */

/* The logarithm of a float's value, and a power of 2 rounded to float: in double, but with no more digits than a power of
   floats needs. log2(m) = s p(s^2), s = (m - 1)/(m + 1). */
LC_FN double lc__log2w(double a) /* 0 <= a; 2^-42.3 */
{
    uint64_t u = lc__l(a), e = (u - 0x3fe5555555555555u + 0x4000000000000000u) >> 52; /* as in lc__logsplit */
    double k = lc__d(0x4330000000000000u | e) - (0x1p52 + 1024.), f = lc__d(u - ((e - 1024u) << 52)) - 1.;
    double s = f / (2. + f), z = s * s, w = z * z;
    double p = 0x1.2776bc4e19dffp-1 * z + 0x1.ec709dcb58f51p-1, q = 0x1.29d3ba5d00ed5p-2 * z + 0x1.46f25e06cc516p-2;
    p = (q * z + 0x1.a61e9fc41e3ffp-2) * w + p;
    double l = k + s * (p * z + 0x1.71547652b7e96p+1);
    l = a < LC_INF ? l : a;
    return a == 0 ? -LC_INF : l;
}
LC_FN float lc__exp2wf(double t) /* 2^-39 */
{
    double c = -200. > t ? -200. : t, u = lc__least(c + (LC_ROUND + 1023.), LC_ROUND + 1023. + 200.);
    double r = c - (u - (LC_ROUND + 1023.)), z = r * r, w = z * z;
    double a = 0x1.ebfbdff82a727p-3 * r + 0x1.62e42fef9cc3cp-1, b = 0x1.3b2ab70ad7014p-7 * r + 0x1.c6b08da71da60p-5;
    double d = 0x1.4308c708aee31p-13 * r + 0x1.5d87757c238f2p-10, e = 0x1.63b2f07a28632p-20 * r + 0x1.00c0fb54e0f1cp-16;
    double q = (e * z + d) * w + (b * z + a);
    return (float)((1. + r * q) * lc__d(lc__l(u) << 52));
}

LC_FN float lc_cbrtf(float x)
{
    double a = lc_absf(x);
    return lc_copysignf(lc__exp2wf(lc__log2w(a) * 0x1.5555555555555p-2), x);
}
LC_FN double lc_cbrt(double x)
{
    double a = lc_abs(x), y = lc_exp(lc_log(a) * 0x1.5555555555555p-2);
    y -= (y - a / (y * y)) * 0x1.5555555555555p-2; /* Newton: ln(a) may have lost eight bits */
    y = a == LC_INF ? x : lc_copysign(y, x);
    return a == 0 ? x : y;
}

/* No overflow in double; an infinity wins over NaN (C99 F.9.4.3). */
LC_FN float lc_hypotf(float x, float y)
{
    double a = x, b = y;
    float h = (float)lc_sqrt(a * a + b * b);
    h = lc_absf(x) == LC_INFF ? LC_INFF : h;
    return lc_absf(y) == LC_INFF ? LC_INFF : h;
}
LC_FN double lc_hypot(double x, double y)
{
    double ax = lc_abs(x), ay = lc_abs(y), hi = ay > ax ? ay : ax, lo = ay > ax ? ax : ay;
    double g = hi > 0x1p500 ? 0x1p-600 : (hi < 0x1p-500 ? 0x1p600 : 1.), u = hi * g, v = lo * g;
    double h = lc_sqrt(u * u + v * v) * (hi > 0x1p500 ? 0x1p600 : (hi < 0x1p-500 ? 0x1p-600 : 1.));
    h = ax == LC_INF ? LC_INF : h;
    return ay == LC_INF ? LC_INF : h;
}

/* |x|^y = 2^(y log2|x|), off by 2^-35 at most before it is rounded; C99's table of special cases on top. One question a
   choice, and masks: where one of two questions is the same in all of a loop, gcc makes jumps of them, and no vectors. */
LC_FN float lc_powf(float x, float y)
{
    double b = y, l = lc__log2w((double)lc_absf(x)), e = b * l;
    e = l == 0 ? 0 : e; /* 1 to whatever power */
    e = b == 0 ? 0 : e;
    float p = lc__exp2wf(e);
    float c = lc_absf(y), t = c < 0x1p23f ? c + 0x1p23f : c; /* c is whole from 2^23, even from 2^24 */
    uint32_t whole = (c < 0x1p23f ? t - 0x1p23f : c) == c, few = c < 0x1p24f;
    p = lc__f(lc__u(p) ^ (lc__u(x) & (lc__u(t) << 31) & -whole & -few)); /* odd */
    float none = lc__f(0x80000000u | ((whole - 1u) & 0x7fc00000u)); /* -0; of a number below 0 NaN */
    none = x < 0 ? none : -0.f;
    return p + (x > -LC_INFF ? none : -0.f);
}
LC_FN double lc_pow(double x, double y) { return __builtin_pow(x, y); } /* libm */

/* a^(3/4) as the root of a sqrt(a), which is scaled to be neither too large nor too small; 1.1 ulp */
LC_FN float lc__power34f(float a)
{
    float s = a < 1 ? 0x1p100f : 0x1p-66f, t = a < 1 ? 0x1p-50f : 0x1p33f;
    return lc_sqrtf(a * s * lc_sqrtf(a)) * t;
}
LC_FN double lc__power34(double a)
{
    double s = a < 1 ? 0x1p600 : 0x1p-600, t = a < 1 ? 0x1p-300 : 0x1p300;
    return lc_sqrt(a * s * lc_sqrt(a)) * t;
}

/* x^y where y is a quarter, a half (below 0), three quarters or three halves, with either sign: a constant, as is each
   choice by it below. To 2 ulp, where a general power is to 0.51 and takes several times as long. */
LC_FN float lc_power_quartersf(float x, float y)
{
    float a = lc_absf(x), r = lc_sqrtf(a), c = lc_absf(y);
    float p = c == 0.25f ? lc_sqrtf(r) : (c == 0.5f ? r : (c == 0.75f ? lc__power34f(a) : a * r));
    p = y > 0 ? p : (c == 1.5f ? 1.f / a / r : 1.f / p);
    float of = x > -LC_INFF ? LC_NANF : p;
    return x < 0 ? of : p;
}
LC_FN double lc_power_quarters(double x, double y)
{
    double a = lc_abs(x), r = lc_sqrt(a), c = lc_abs(y);
    double p = c == 0.25 ? lc_sqrt(r) : (c == 0.5 ? r : (c == 0.75 ? lc__power34(a) : a * r));
    p = y > 0 ? p : (c == 1.5 ? 1. / a / r : 1. / p);
    double of = x > -LC_INF ? LC_NAN : p;
    return x < 0 ? of : p;
}

/* x^y where y is 4, 5 or 6: a constant. Products, of floats in double; of doubles with what each product rounds off
   carried along, but where they are out of range. */
LC_FN float lc_power_wholef(float x, float y)
{
    double d = x, s = d * d;
    return (float)(s * s * (y == 6 ? s : (y == 5 ? d : 1.)));
}
LC_FN double lc_power_whole(double x, double y)
{
#ifdef __FMA__
    double s = x * x, q = s * s, z = y == 6 ? s : (y == 5 ? x : 1.), r = q * z;
    double off_s = __builtin_fma(x, x, -s), off_q = __builtin_fma(s, s, -q) + 2 * s * off_s;
    double off = __builtin_fma(q, z, -r) + off_q * z + (y == 6 ? q * off_s : 0.), sum = r + off;
    return (sum - sum == 0) & (r != 0) ? sum : r;
#else
    return lc_pow(x, y);
#endif
}

/* ---- division with NumPy's meaning --------------------------------------------------------------------------- */

/* libm (fmod). The sign is the divisor's; a zero result too. */
LC_FN float lc_modf(float a, float b)
{
    float r = __builtin_fmodf(a, b), s = (r < 0) != (b < 0) ? r + b : r;
    return b == 0 ? r : (r == 0 ? lc_copysignf(0.f, b) : s);
}
LC_FN double lc_mod(double a, double b)
{
    double r = __builtin_fmod(a, b), s = (r < 0) != (b < 0) ? r + b : r;
    return b == 0 ? r : (r == 0 ? lc_copysign(0., b) : s);
}
LC_FN float lc_floor_divf(float a, float b)
{
    float r = __builtin_fmodf(a, b), q = (a - r) / b;
    q = (r != 0) & ((r < 0) != (b < 0)) ? q - 1.f : q;
    float f = lc_floorf(q);
    f = q - f > 0.5f ? f + 1.f : f;
    return b == 0 ? a / b : (q == 0 ? lc_copysignf(0.f, a / b) : f);
}
LC_FN double lc_floor_div(double a, double b)
{
    double r = __builtin_fmod(a, b), q = (a - r) / b;
    q = (r != 0) & ((r < 0) != (b < 0)) ? q - 1. : q;
    double f = lc_floor(q);
    f = q - f > 0.5 ? f + 1. : f;
    return b == 0 ? a / b : (q == 0 ? lc_copysign(0., a / b) : f);
}
/* Python's: rounded down, the remainder with the divisor's sign. b == 0 does not trap (it is checked,
   but a division may be moved before its check); INT64_MIN // -1 wraps. */
LC_FN int64_t lc_mod_i64(int64_t a, int64_t b)
{
    int64_t r = b == -1 ? 0 : a % (b == -1 || b == 0 ? 1 : b);
    return (r != 0) & ((r ^ b) < 0) ? r + b : r;
}
/* a % b for -b <= a < 2 * b: a neighbour's place, around an axis. */
LC_FN int64_t lc_around(int64_t a, int64_t b)
{
    a += a < 0 ? b : 0;
    return a - (a < b ? 0 : b);
}
/* As NumPy's: what is shifted out is gone, also by 64 and more. */
LC_FN int64_t lc_left_shift(int64_t a, int64_t b)
{
    return (uint64_t)b < 64 ? (int64_t)((uint64_t)a << b) : 0;
}
LC_FN int64_t lc_right_shift(int64_t a, int64_t b)
{
    return a >> ((uint64_t)b < 64 ? b : 63);
}
LC_FN int64_t lc_floor_div_i64(int64_t a, int64_t b)
{
    int64_t d = b == -1 || b == 0 ? 1 : b, q = a / d;
    q -= (a % d != 0) & ((a ^ d) < 0);
    return b == -1 ? (int64_t)(0 - (uint64_t)a) : q;
}

/* ---- special functions --------------------------------------------------------------------------------------- */

/* ln(1 + e) for 0 <= e <= 1, and NaN */
LC_FN float lc__log1puf(float e)
{
    int big = e > 0x1.555556p-2f; /* 1 + e = 2 (1 + f) */
    float f = big ? 0.5f * e - 0.5f : e;
    return (big ? 0x1.62e4p-1f : 0.f) + (f + (lc__ln1pf(f) + (big ? LC_LN2_LOF : 0.f)));
}
LC_FN double lc__log1pu(double e)
{
    int big = e > 0x1.5555555555555p-2;
    double f = big ? 0.5 * e - 0.5 : e;
    return (big ? LC_LN2_HI : 0.) + (f + (lc__ln1p(f) + (big ? LC_LN2_LO : 0.)));
}

/* ln(e^a + e^b), as NumPy has it: where the sum cancels near 0 the error is absolute. Equal infinities have no difference. */
LC_FN float lc_logaddexpf(float a, float b)
{
    float m = lc_maxf(a, b), d = a == b ? 0.f : lc_absf(a - b);
    return m + lc__log1puf(lc_expf(-d));
}
LC_FN double lc_logaddexp(double a, double b)
{
    double m = lc_max(a, b), d = a == b ? 0. : lc_abs(a - b);
    return m + lc__log1pu(lc_exp(-d));
}

/* ln(sigmoid(x)) */
LC_FN float lc_log_expitf(float x) { return (0 < x ? -0.f : x) - lc__log1puf(lc_expf(-lc_absf(x))); }
LC_FN double lc_log_expit(double x) { return (0 < x ? -0. : x) - lc__log1pu(lc_exp(-lc_abs(x))); }

/* ln(p/(1-p)); around 1/2 as log1p of the exact difference. */
LC_FN double lc_logit(double p)
{
    double o = 1. - p, far = lc_log(p / o);
    double near = p < 0.5 ? -lc_log1p((1. - 2. * p) / p) : lc_log1p((2. * p - 1.) / o);
    near = p > 0.25 ? near : far;
    return p < 0.75 ? near : far;
}
LC_FN float lc_logitf(float p) { double d = p; return (float)lc_log(d / (1. - d)); }

/* x ln(y), 0 at x = 0 even where ln(y) is not finite. */
LC_FN float lc_xlogyf(float x, float y) { float p = x * lc_logf(y), q = x == 0 ? 0.f : p; return y == y ? q : p; }
LC_FN double lc_xlogy(double x, double y) { double p = x * lc_log(y), q = x == 0 ? 0. : p; return y == y ? q : p; }

/* ln|Gamma(x)|, libm; -inf at -inf, as SciPy. */
double lgamma_r(double, int *); /* lgamma writes a global */
LC_FN double lc_gammaln(double x)
{
    int sign;
    double y = lgamma_r(x, &sign);
    return x == -LC_INF ? x : y;
}
LC_FN float lc_gammalnf(float x) { return (float)lc_gammaln(x); }

/* pi cot(pi x), NaN at the integers; x - rint(x) is exact. */
LC_FN double lc__picot(double x)
{
    double f = x - lc_rint(x), g = lc_abs(f), r = (g > 0.25 ? 0.5 - g : g) * 0x1.921fb54442d18p+1, z = r * r;
    double s = 0x1.5d92601d9bb02p-33 * z - 0x1.ae5e64b05a7ebp-26; /* (sin(r)/r - 1)/z, 2^-58 */
    s = s * z + 0x1.71de3576c5b27p-19;
    s = s * z - 0x1.a01a019c1220dp-13;
    s = s * z + 0x1.111111110f892p-7;
    s = s * z - 0x1.5555555555549p-3;
    s = r + r * (z * s);
    double c = -0x1.8faff21557650p-37 * z + 0x1.1ee9ef3752661p-29; /* (cos(r) - 1 + z/2)/z^2, 2^-63.7 */
    c = c * z - 0x1.27e4f810221cep-22;
    c = c * z + 0x1.a01a019cbcb19p-16;
    c = c * z - 0x1.6c16c16c1520fp-10;
    c = c * z + 0x1.555555555554cp-5;
    c = (1. - 0.5 * z) + z * z * c;
    double y = 0x1.921fb54442d18p+1 * (g > 0.25 ? s / c : c / s);
    return f == 0 ? LC_NAN : lc_copysign(y, f);
}
/* Reflected to x > 0, lifted to w >= 8 by the recurrence, then Stirling's series (Abramowitz & Stegun 6.3.18).
   The eight terms 1/(x+k) in pairs: u = x(x+7), (x+k)(x+7-k) = u + k(7-k), sum = (2x+7) Q'(u)/Q(u).
   Absolute error about 1e-15, so relative accuracy is lost at the zeros. */
LC_FN double lc_digamma(double x)
{
    double y = x < 0 ? 1. - x : x, u = y * (y + 7.), a = u * (u + 6.), b = (u + 10.) * (u + 12.);
    double lift = (y + y + 7.) * ((u + u + 6.) * b + a * (u + u + 22.)) / (a * b);
    lift = y < 8. ? lift : 0.;
    double w = y < 8. ? y + 8. : y, i = 1. / w, z = i * i;
    double p = 3617. / 8160 * z - 1. / 12;
    p = p * z + 691. / 32760;
    p = p * z - 1. / 132;
    p = p * z + 1. / 240;
    p = p * z - 1. / 252;
    p = p * z + 1. / 120;
    p = p * z - 1. / 12;
    double psi = lc_log(w) + (z * p - 0.5 * i) - lift;
    return x < 0 ? psi - lc__picot(x) : psi;
}
LC_FN float lc_digammaf(float x) { return (float)lc_digamma(x); }

/* The derivative of digamma, in the same way: lifted by sums of 1/(x+k)^2, then Abramowitz & Stegun 6.4.12.
   Reflected by psi'(1-x) + psi'(x) = (pi / sin(pi x))^2 = (pi cot(pi x))^2 + pi^2. */
LC_FN double lc__lift(double a, double b) { double p = a * b; return (a * a + b * b) / (p * p); }
LC_FN double lc_trigamma(double x)
{
    double y = x < 0 ? 1. - x : x;
    double lift = lc__lift(y + 3., y + 4.) + lc__lift(y + 2., y + 5.) + lc__lift(y + 1., y + 6.);
    lift = y < 8. ? lift + lc__lift(y, y + 7.) : 0.;
    double w = y < 8. ? y + 8. : y, i = 1. / w, z = i * i;
    double p = -174611. / 330 * z + 43867. / 798;
    p = p * z - 3617. / 510;
    p = p * z + 7. / 6;
    p = p * z - 691. / 2730;
    p = p * z + 5. / 66;
    p = p * z - 1. / 30;
    p = p * z + 1. / 42;
    p = p * z - 1. / 30;
    p = p * z + 1. / 6;
    double psi = i * (1. + i * (0.5 + i * p)) + lift;
    double cot = lc__picot(x), reflected = (cot * cot + 0x1.3bd3cc9be45dep+3) - psi;
    return x < 0 ? (x == lc_rint(x) ? LC_INF : reflected) : psi;
}
LC_FN float lc_trigammaf(float x) { return (float)lc_trigamma(x); }

#endif
