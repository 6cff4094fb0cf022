/* Made by layerc 0.1.0 from transport.py. */
#include <math.h>
#include <stdint.h>
#ifndef LC_CALL
#define LC_CALL
/* threads: how many may be used (0: one). code, info: set when a call fails; code 1: out of memory. */
typedef struct { int32_t threads; int32_t code; int64_t info[4]; } lc_call;
#endif
#ifndef LC_NAME
#define LC_NAME(name) name
#endif

#ifndef LC_MATH_H
#define LC_MATH_H
/* Elementary functions for generated loops.

   Every function is a `static inline` without branches, so that gcc vectorises the loop it is inlined into
   (`#pragma omp simd`, -O3, 512-bit vectors), for float and double alike. Exceptions call libm and say "libm".
   Infinities, NaN, signed zeros, denormals and overflow follow C99 Annex F, or NumPy where it has a view.

   Names: lc_<numpy name>, with an `f` for float. lc__* is private.
   Needs -fno-math-errno -fno-trapping-math to vectorise; correct with any -O level, with and without FMA.
   Whole range, no limits on arguments. Largest errors: float 2 ulp (sigmoid 1.97, log2 1.8, most 0.5 to 1.6), double
   2.1 ulp (tanh), 3.3 (erfc); absolute, not relative, at the zeros of double gammaln, digamma and logaddexp.
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
LC_FN int lc_signbitf(float x) { return (int)(lc__u(x) >> 31); }
LC_FN int lc_signbit(double x) { return (int)(lc__l(x) >> 63); }
LC_FN int lc_isnanf(float x) { return x != x; }
LC_FN int lc_isnan(double x) { return x != x; }
LC_FN int lc_isinff(float x) { return lc_absf(x) == LC_INFF; }
LC_FN int lc_isinf(double x) { return lc_abs(x) == LC_INF; }
LC_FN int lc_isfinitef(float x) { return lc_absf(x) < LC_INFF; }
LC_FN int lc_isfinite(double x) { return lc_abs(x) < LC_INF; }

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

/* (e^r - 1 - r) / r^2 for |r| <= 0.35 */
LC_FN float lc__expqf(float r) /* 2^-28.8 of r */
{
    float q = 0x1.a213a4p-13f * r + 0x1.6d7936p-10f;
    q = q * r + 0x1.11104cp-7f;
    q = q * r + 0x1.5554aap-5f;
    q = q * r + 0x1.555556p-3f;
    return q * r + 0.5f;
}
LC_FN double lc__expq(double r) /* 2^-61.6 of r */
{
    double q = 0x1.1fe0105b8b038p-29 * r + 0x1.af6187845ddb0p-26;
    q = q * r + 0x1.27e49adbae244p-22;
    q = q * r + 0x1.71ddf6ef5f4ccp-19;
    q = q * r + 0x1.a01a01c1a82ecp-16;
    q = q * r + 0x1.a01a01b05a16bp-13;
    q = q * r + 0x1.6c16c16c11a2ap-10;
    q = q * r + 0x1.111111110f5d4p-7;
    q = q * r + 0x1.555555555555ep-5;
    q = q * r + 0x1.5555555555559p-3;
    return q * r + 0.5;
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

/* e^x * 2^k, for -104 <= x <= 89 + 1 and k in -1..0 (double: -746 <= x <= 710 + 1); NaN stays NaN */
LC_FN float lc__expkf(float x, float k)
{
    float magic = LC_ROUNDF + 254.f + k;
    float t = x * LC_LOG2EF + magic, n = t - magic;
    float r = (x - n * LC_LN2_HIF) - n * LC_LN2_LOF;
    return lc__scalef(1.f + (r + r * r * lc__expqf(r)), lc__u(t));
}
LC_FN double lc__expk(double x, double k)
{
    double magic = LC_ROUND + 2046. + k;
    double t = x * LC_LOG2E + magic, n = t - magic;
    double r = (x - n * LC_LN2_HI) - n * LC_LN2_LO;
    return lc__scale(1. + (r + r * r * lc__expq(r)), lc__l(t));
}

/* e^x where neither x nor the result is extreme: |x| <= 87 */
LC_FN float lc__expnf(float x)
{
    float t = x * LC_LOG2EF + (LC_ROUNDF + 127.f), n = t - (LC_ROUNDF + 127.f);
    float r = (x - n * LC_LN2_HIF) - n * LC_LN2_LOF;
    return (1.f + (r + r * r * lc__expqf(r))) * lc__f(lc__u(t) << 23);
}

LC_FN float lc_expf(float x)
{
    float c = 89.f < x ? 89.f : x;
    return lc__expkf(-104.f > c ? -104.f : c, 0.f);
}
LC_FN double lc_exp(double x)
{
    double c = 710. < x ? 710. : x;
    return lc__expk(-746. > c ? -746. : c, 0.);
}

LC_FN float lc_exp2f(float x)
{
    float c = 129.f < x ? 129.f : x;
    c = -151.f > c ? -151.f : c;
    float t = c + (LC_ROUNDF + 254.f), r = c - (t - (LC_ROUNDF + 254.f));
    float q = 0x1.168b32p-13f * r + 0x1.5ef87p-10f; /* (2^r - 1)/r for |r| <= 1/2, 2^-26.2 of r */
    q = q * r + 0x1.3b69b4p-7f;
    q = q * r + 0x1.c6af9ap-5f;
    q = q * r + 0x1.ebfb92p-3f;
    q = q * r + 0x1.62e43p-1f;
    return lc__scalef(1.f + r * q, lc__u(t));
}
LC_FN double lc_exp2(double x)
{
    double c = 1025. < x ? 1025. : x;
    c = -1076. > c ? -1076. : c;
    double t = c + (LC_ROUND + 2046.), r = c - (t - (LC_ROUND + 2046.));
    double q = 0x1.ffd983f611629p-35 * r + 0x1.ece74aa4d52c3p-32; /* 2^-57.7 of r */
    q = q * r + 0x1.e32a168e9ebe4p-28;
    q = q * r + 0x1.b522df0c33389p-24;
    q = q * r + 0x1.62c09590d1973p-20;
    q = q * r + 0x1.ffcbfd7248c41p-17;
    q = q * r + 0x1.430912dbcc413p-13;
    q = q * r + 0x1.5d87fe786c0ebp-10;
    q = q * r + 0x1.3b2ab6fbab16ep-7;
    q = q * r + 0x1.c6b08d704a1f7p-5;
    q = q * r + 0x1.ebfbdff82c573p-3;
    q = q * r + 0x1.62e42fefa39efp-1;
    return lc__scale(1. + r * q, lc__l(t));
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
    float p = -0x1.0d3d14p-3f * f + 0x1.1e3492p-3f;
    p = p * f - 0x1.f09b5p-4f;
    p = p * f + 0x1.1ee538p-3f;
    p = p * f - 0x1.55b5p-3f;
    p = p * f + 0x1.99cef4p-3f;
    p = p * f - 0x1.fffe6cp-3f;
    p = p * f + 0x1.55550ap-2f;
    float z = f * f;
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
/* The edges of every logarithm: y inside, x at inf and NaN, -inf at 0, NaN below. */
LC_FN float lc__logedgef(float x, float y)
{
    y = x < LC_INFF ? y : x;
    return x > 0 ? y : (x == 0 ? -LC_INFF : LC_NANF);
}
LC_FN double lc__logedge(double x, double y)
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

LC_FN lc__anglef lc__quarterf(float x) /* x >= 0 = q pi/2 + r (q modulo 4), |r| <= pi/4; NaN at inf */
{
    double a = 0x1.45f306cp-3, b = 0x1.c9c882ap-31, c = 0x1.4fe13abe8fa9ap-61, d = x;
    int w1 = x >= 0x1p50f, w2 = x >= 0x1p76f, w3 = x >= 0x1p102f; /* multiples of 2^27, 2^53, 2^79 */
    a = w1 ? -0x1.1b1bbecp-30 : a;  b = w1 ? 0x1.29fc276p-58 : b;   c = w1 ? -0x1.05c1596447e49p-87 : c;
    a = w2 ? -0x1.5ac07b2p-55 : a;  b = w2 ? 0x1.5f47d4ep-84 : b;   c = w2 ? -0x1.911f924eb5336p-113 : c;
    a = w3 ? -0x1.505c158p-83 : a;  b = w3 ? -0x1.6447e48p-111 : b; c = w3 ? -0x1.3ad4cd8778df8p-139 : c;
    double t = d * a + 0x1.8p50, s = d * a - (t - 0x1.8p50), u = d * b + s;
    double v = u + 0x1.8p50, r = d * c + (u - (v - 0x1.8p50));
    lc__anglef y = { r * 0x1.921fb54442d18p+2, (uint32_t)(lc__l(t) + lc__l(v)) };
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
LC_FN float lc_sinf(float x)
{
    float y = lc__sincosf(lc__quarterf(lc_absf(x)));
    return lc__f(lc__u(y) ^ (lc__u(x) & 0x80000000u));
}
LC_FN float lc_cosf(float x)
{
    lc__anglef a = lc__quarterf(lc_absf(x));
    a.q += 1;
    return lc__sincosf(a);
}
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
LC_FN double lc_sin(double x) { return __builtin_sin(x); } /* libm */
LC_FN double lc_cos(double x) { return __builtin_cos(x); } /* libm */
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

LC_FN float lc_cbrtf(float x)
{
    double a = lc_absf(x), y = lc_exp(lc_log(a) * 0x1.5555555555555p-2);
    return lc_copysignf((float)y, x);
}
LC_FN double lc_cbrt(double x)
{
    double a = lc_abs(x), y = lc_exp(lc_log(a) * 0x1.5555555555555p-2);
    y -= (y - a / (y * y)) * 0x1.5555555555555p-2; /* Newton: ln(a) may have lost eight bits */
    return (a == 0) | (a == LC_INF) ? x : lc_copysign(y, x);
}

/* No overflow in double; an infinity wins over NaN (C99 F.9.4.3). */
LC_FN float lc_hypotf(float x, float y)
{
    double a = x, b = y;
    float h = (float)lc_sqrt(a * a + b * b);
    return (lc_absf(x) == LC_INFF) | (lc_absf(y) == LC_INFF) ? LC_INFF : h;
}
LC_FN double lc_hypot(double x, double y)
{
    double ax = lc_abs(x), ay = lc_abs(y), hi = ay > ax ? ay : ax, lo = ay > ax ? ax : ay;
    double g = hi > 0x1p500 ? 0x1p-600 : (hi < 0x1p-500 ? 0x1p600 : 1.), u = hi * g, v = lo * g;
    double h = lc_sqrt(u * u + v * v) * (hi > 0x1p500 ? 0x1p600 : (hi < 0x1p-500 ? 0x1p-600 : 1.));
    return (ax == LC_INF) | (ay == LC_INF) ? LC_INF : h;
}

/* |x|^y = e^(y ln|x|) in double, the error of which stays below 2^-44; C99's table of special cases on top. */
LC_FN float lc_powf(float x, float y)
{
    double a = lc_absf(x), b = y;
    float p = (float)lc_exp(b * lc_log(a));
    float c = lc_absf(y), t = c < 0x1p23f ? c + 0x1p23f : c; /* c is whole from 2^23, even from 2^24 */
    int whole = (c < 0x1p23f ? t - 0x1p23f : c) == c;
    int odd = whole & (c < 0x1p24f) & (int)(lc__u(t) & 1);
    p = lc__f(lc__u(p) ^ ((lc__u(x) & 0x80000000u) & (odd ? 0x80000000u : 0u)));
    p = (x < 0) & (x > -LC_INFF) & !whole ? LC_NANF : p;
    p = (x == -1.f) & (c == LC_INFF) ? 1.f : p;
    return (x == 1.f) | (y == 0) ? 1.f : p;
}
LC_FN double lc_pow(double x, double y) { return __builtin_pow(x, y); } /* libm */

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
LC_FN int64_t lc_floor_div_i64(int64_t a, int64_t b)
{
    int64_t d = b == -1 || b == 0 ? 1 : b, q = a / d;
    q -= (a % d != 0) & ((a ^ d) < 0);
    return b == -1 ? (int64_t)(0 - (uint64_t)a) : q;
}

/* ---- special functions --------------------------------------------------------------------------------------- */

/* ln(e^a + e^b); equal infinities have no difference. The float version is in double: the sum may cancel near 0. */
LC_FN double lc_logaddexp(double a, double b)
{
    double m = lc_max(a, b), d = a == b ? 0. : lc_abs(a - b);
    return m + lc_log1p(lc_exp(-d));
}
LC_FN float lc_logaddexpf(float a, float b) { return (float)lc_logaddexp(a, b); }

/* ln(sigmoid(x)) */
LC_FN float lc_log_expitf(float x) { return (0 < x ? -0.f : x) - lc_log1pf(lc_expf(-lc_absf(x))); }
LC_FN double lc_log_expit(double x) { return (0 < x ? -0. : x) - lc_log1p(lc_exp(-lc_abs(x))); }

/* ln(p/(1-p)); around 1/2 as log1p of the exact difference. */
LC_FN double lc_logit(double p)
{
    double o = 1. - p, far = lc_log(p / o);
    double near = p < 0.5 ? -lc_log1p((1. - 2. * p) / p) : lc_log1p((2. * p - 1.) / o);
    return (p > 0.25) & (p < 0.75) ? near : far;
}
LC_FN float lc_logitf(float p) { double d = p; return (float)lc_log(d / (1. - d)); }

/* x ln(y), 0 at x = 0 even where ln(y) is not finite. */
LC_FN float lc_xlogyf(float x, float y) { float p = x * lc_logf(y); return (x == 0) & (y == y) ? 0.f : p; }
LC_FN double lc_xlogy(double x, double y) { double p = x * lc_log(y); return (x == 0) & (y == y) ? 0. : p; }

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

#endif

/* What the kernels need besides mathematics: integer helpers, scratch memory, growing lists, the way out. */
#ifndef LC_SUPPORT_H
#define LC_SUPPORT_H
#include <stdlib.h>
#include <string.h>
#ifdef _OPENMP
#include <omp.h>
static inline int lc_thread(void) { return omp_get_thread_num(); }
#else
#pragma GCC diagnostic ignored "-Wunknown-pragmas"
static inline int lc_thread(void) { return 0; }
#endif
#define LC_USED __attribute__((unused))

typedef struct { int32_t code; int64_t info[4]; } lc_fault_t;

LC_USED static inline int64_t lc_smaller(int64_t a, int64_t b) { return a < b ? a : b; }
LC_USED static inline int64_t lc_larger(int64_t a, int64_t b) { return a > b ? a : b; }

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

LC_USED static char *lc_take(size_t room)
{
    return room > PTRDIFF_MAX - 64 ? 0 : aligned_alloc(64, room ? room : 64);
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

int LC_NAME(wasserstein_f32)(int64_t batch, int64_t C, int64_t D, double lam, int64_t n_iter, const float *restrict a, const float *restrict b, const float *restrict cost, float *restrict y, lc_call *call)
{
    const int lc_threads LC_USED = call && call->threads > 0 ? call->threads : 1;
    lc_fault_t lc_fault = {0, {0}};
    size_t lc_room = 0;
    const size_t lc_at_kernel_2 = lc_reserve(&lc_room, sizeof(float), (const int64_t[]){C, D}, 2);
    const size_t lc_at_u_2 = lc_reserve(&lc_room, sizeof(float), (const int64_t[]){C}, 1);
    const size_t lc_at_product_5 = lc_reserve(&lc_room, sizeof(float), (const int64_t[]){C}, 1);
    const size_t lc_at_product_2_2 = lc_reserve(&lc_room, sizeof(float), (const int64_t[]){D}, 1);
    const size_t lc_at_divide_2 = lc_reserve(&lc_room, sizeof(float), (const int64_t[]){D}, 1);
    const size_t lc_at_v_2 = lc_reserve(&lc_room, sizeof(float), (const int64_t[]){D}, 1);
    const size_t lc_at_product_3_2 = lc_reserve(&lc_room, sizeof(float), (const int64_t[]){D}, 1);
    const size_t lc_at_product_4_2 = lc_reserve(&lc_room, sizeof(float), (const int64_t[]){C}, 1);
    const size_t lc_at_product_2_2_part = lc_reserve(&lc_room, sizeof(float), (const int64_t[]){16, D}, 2);
    const size_t lc_at_product_3_2_part = lc_reserve(&lc_room, sizeof(float), (const int64_t[]){16, D}, 2);
    const size_t lc_at_y_part = lc_reserve(&lc_room, sizeof(float), (const int64_t[]){16, batch}, 2);
    const size_t lc_at_y_part_2 = lc_reserve(&lc_room, sizeof(float), (const int64_t[]){16, batch}, 2);
    const size_t lc_own1 = lc_room;
    const size_t lc_at_kernel = lc_reserve(&lc_room, sizeof(float), (const int64_t[]){C, D}, 2);
    const size_t lc_at_u = lc_reserve(&lc_room, sizeof(float), (const int64_t[]){C}, 1);
    const size_t lc_at_product = lc_reserve(&lc_room, sizeof(float), (const int64_t[]){C}, 1);
    const size_t lc_at_product_2 = lc_reserve(&lc_room, sizeof(float), (const int64_t[]){D}, 1);
    const size_t lc_at_divide = lc_reserve(&lc_room, sizeof(float), (const int64_t[]){D}, 1);
    const size_t lc_at_v = lc_reserve(&lc_room, sizeof(float), (const int64_t[]){D}, 1);
    const size_t lc_at_product_3 = lc_reserve(&lc_room, sizeof(float), (const int64_t[]){D}, 1);
    const size_t lc_at_product_4 = lc_reserve(&lc_room, sizeof(float), (const int64_t[]){C}, 1);
    const size_t lc_step1 = lc_copies(&lc_room, lc_own1, lc_threads);
    char *const lc_arena = lc_take(lc_room);
    if (!lc_arena) { lc_fault.code = 1; goto lc_done; }
    float *restrict const kernel_2 = (float *)(lc_arena + lc_at_kernel_2);
    float *restrict const u_2 = (float *)(lc_arena + lc_at_u_2);
    float *restrict const product_5 = (float *)(lc_arena + lc_at_product_5);
    float *restrict const product_2_2 = (float *)(lc_arena + lc_at_product_2_2);
    float *restrict const divide_2 = (float *)(lc_arena + lc_at_divide_2);
    float *restrict const v_2 = (float *)(lc_arena + lc_at_v_2);
    float *restrict const product_3_2 = (float *)(lc_arena + lc_at_product_3_2);
    float *restrict const product_4_2 = (float *)(lc_arena + lc_at_product_4_2);
    float *restrict const product_2_2_part = (float *)(lc_arena + lc_at_product_2_2_part);
    float *restrict const product_3_2_part = (float *)(lc_arena + lc_at_product_3_2_part);
    float *restrict const y_part = (float *)(lc_arena + lc_at_y_part);
    float *restrict const y_part_2 = (float *)(lc_arena + lc_at_y_part_2);
    const float e = (float)(1.0 / (double)C);
    if (batch >= 4) {
        const int64_t chunks = lc_smaller(64, batch);
        #pragma omp parallel for schedule(static) num_threads(lc_threads) if(lc_threads > 1 && (7*C*D*batch*n_iter + 23*C*D*batch + 12*C*batch*n_iter + 8*D*batch*n_iter + 10*C*batch + 8*D*batch + batch) > 40000)
        for (int64_t chunk_14 = 0; chunk_14 < chunks; chunk_14++) {
            char *const lc_mine1 = lc_arena + (size_t)lc_thread() * lc_step1;
            float *restrict const kernel = (float *)(lc_mine1 + lc_at_kernel);
            float *restrict const u = (float *)(lc_mine1 + lc_at_u);
            float *restrict const product = (float *)(lc_mine1 + lc_at_product);
            float *restrict const product_2 = (float *)(lc_mine1 + lc_at_product_2);
            float *restrict const divide = (float *)(lc_mine1 + lc_at_divide);
            float *restrict const v = (float *)(lc_mine1 + lc_at_v);
            float *restrict const product_3 = (float *)(lc_mine1 + lc_at_product_3);
            float *restrict const product_4 = (float *)(lc_mine1 + lc_at_product_4);
            const int64_t b_2_from = batch*chunk_14 / chunks;
            const int64_t b_2_to = (batch*chunk_14 + batch) / chunks;
            for (int64_t b_2 = b_2_from; b_2 < b_2_to; b_2++) {
                y[b_2] = 0.0f;
                for (int64_t i = 0; i < C; i++) {
                    #pragma omp simd
                    for (int64_t j = 0; j < D; j++) {
                        kernel[i*D + j] = lc_expf((float)(-(double)lam) * cost[i*D + j]);
                    }
                    u[i] = e;
                }
                for (int64_t v_ = 0; v_ < n_iter; v_++) {
                    #pragma omp simd
                    for (int64_t i_3 = 0; i_3 < D; i_3++) {
                        product_2[i_3] = 0.0f;
                    }
                    for (int64_t j_2 = 0; j_2 < C; j_2++) {
                        product[j_2] = 0.0f;
                        const float uv = u[j_2];
                        #pragma omp simd
                        for (int64_t i_4 = 0; i_4 < D; i_4++) {
                            product_2[i_4] += uv * kernel[j_2*D + i_4];
                        }
                    }
                    #pragma omp simd
                    for (int64_t i_5 = 0; i_5 < D; i_5++) {
                        divide[i_5] = b[b_2*D + i_5] / product_2[i_5];
                    }
                    const int64_t i_7x4_to = C / 4;
                    for (int64_t i_7x4 = 0; i_7x4 < i_7x4_to; i_7x4++) {
                        double wide = 0.0;
                        double wide_2 = 0.0;
                        double wide_3 = 0.0;
                        double wide_4 = 0.0;
                        const int64_t q_to = (D + 1023) / 1024;
                        for (int64_t q = 0; q < q_to; q++) {
                            float part = 0.0f;
                            float part_2 = 0.0f;
                            float part_3 = 0.0f;
                            float part_4 = 0.0f;
                            const int64_t j_3_2_to = lc_smaller(1024*q + 1024, D);
                            #pragma omp simd reduction(+:part, part_2, part_3, part_4)
                            for (int64_t j_3_2 = 1024*q; j_3_2 < j_3_2_to; j_3_2++) {
                                const float dividev = divide[j_3_2];
                                part += kernel[(4*i_7x4)*D + j_3_2] * dividev;
                                part_2 += kernel[(4*i_7x4 + 1)*D + j_3_2] * dividev;
                                part_3 += kernel[(4*i_7x4 + 2)*D + j_3_2] * dividev;
                                part_4 += kernel[(4*i_7x4 + 3)*D + j_3_2] * dividev;
                            }
                            wide += (double)part;
                            wide_2 += (double)part_2;
                            wide_3 += (double)part_3;
                            wide_4 += (double)part_4;
                        }
                        product[4*i_7x4] += (float)wide;
                        product[4*i_7x4 + 1] += (float)wide_2;
                        product[4*i_7x4 + 2] += (float)wide_3;
                        product[4*i_7x4 + 3] += (float)wide_4;
                        u[4*i_7x4] = a[b_2*C + 4*i_7x4] / product[4*i_7x4];
                        u[4*i_7x4 + 1] = a[b_2*C + 4*i_7x4 + 1] / product[4*i_7x4 + 1];
                        u[4*i_7x4 + 2] = a[b_2*C + 4*i_7x4 + 2] / product[4*i_7x4 + 2];
                        u[4*i_7x4 + 3] = a[b_2*C + 4*i_7x4 + 3] / product[4*i_7x4 + 3];
                    }
                    const int64_t i_7_from = 4*i_7x4_to;
                    for (int64_t i_7 = i_7_from; i_7 < C; i_7++) {
                        double wide_5 = 0.0;
                        const int64_t q_2_to = (D + 1023) / 1024;
                        for (int64_t q_2 = 0; q_2 < q_2_to; q_2++) {
                            float part_5 = 0.0f;
                            const int64_t j_3_6_to = lc_smaller(1024*q_2 + 1024, D);
                            #pragma omp simd reduction(+:part_5)
                            for (int64_t j_3_6 = 1024*q_2; j_3_6 < j_3_6_to; j_3_6++) {
                                part_5 += kernel[i_7*D + j_3_6] * divide[j_3_6];
                            }
                            wide_5 += (double)part_5;
                        }
                        product[i_7] += (float)wide_5;
                        u[i_7] = a[b_2*C + i_7] / product[i_7];
                    }
                }
                #pragma omp simd
                for (int64_t i_9 = 0; i_9 < D; i_9++) {
                    product_3[i_9] = 0.0f;
                }
                for (int64_t j_4 = 0; j_4 < C; j_4++) {
                    product_4[j_4] = 0.0f;
                    const float uv_2 = u[j_4];
                    #pragma omp simd
                    for (int64_t i_10 = 0; i_10 < D; i_10++) {
                        product_3[i_10] += uv_2 * kernel[j_4*D + i_10];
                    }
                }
                #pragma omp simd
                for (int64_t i_11 = 0; i_11 < D; i_11++) {
                    v[i_11] = b[b_2*D + i_11] / product_3[i_11];
                }
                const int64_t i_13x4_to = C / 4;
                for (int64_t i_13x4 = 0; i_13x4 < i_13x4_to; i_13x4++) {
                    double wide_6 = 0.0;
                    double wide_7 = 0.0;
                    double wide_8 = 0.0;
                    double wide_9 = 0.0;
                    const int64_t q_3_to = (D + 1023) / 1024;
                    for (int64_t q_3 = 0; q_3 < q_3_to; q_3++) {
                        float part_6 = 0.0f;
                        float part_7 = 0.0f;
                        float part_8 = 0.0f;
                        float part_9 = 0.0f;
                        const int64_t j_5_2_to = lc_smaller(1024*q_3 + 1024, D);
                        #pragma omp simd reduction(+:part_6, part_7, part_8, part_9)
                        for (int64_t j_5_2 = 1024*q_3; j_5_2 < j_5_2_to; j_5_2++) {
                            const float vv = v[j_5_2];
                            part_6 += (kernel[(4*i_13x4)*D + j_5_2] * cost[(4*i_13x4)*D + j_5_2]) * vv;
                            part_7 += (kernel[(4*i_13x4 + 1)*D + j_5_2] * cost[(4*i_13x4 + 1)*D + j_5_2]) * vv;
                            part_8 += (kernel[(4*i_13x4 + 2)*D + j_5_2] * cost[(4*i_13x4 + 2)*D + j_5_2]) * vv;
                            part_9 += (kernel[(4*i_13x4 + 3)*D + j_5_2] * cost[(4*i_13x4 + 3)*D + j_5_2]) * vv;
                        }
                        wide_6 += (double)part_6;
                        wide_7 += (double)part_7;
                        wide_8 += (double)part_8;
                        wide_9 += (double)part_9;
                    }
                    product_4[4*i_13x4] += (float)wide_6;
                    product_4[4*i_13x4 + 1] += (float)wide_7;
                    product_4[4*i_13x4 + 2] += (float)wide_8;
                    product_4[4*i_13x4 + 3] += (float)wide_9;
                    y[b_2] += u[4*i_13x4] * product_4[4*i_13x4];
                    y[b_2] += u[4*i_13x4 + 1] * product_4[4*i_13x4 + 1];
                    y[b_2] += u[4*i_13x4 + 2] * product_4[4*i_13x4 + 2];
                    y[b_2] += u[4*i_13x4 + 3] * product_4[4*i_13x4 + 3];
                }
                const int64_t i_13_from = 4*i_13x4_to;
                for (int64_t i_13 = i_13_from; i_13 < C; i_13++) {
                    double wide_10 = 0.0;
                    const int64_t q_4_to = (D + 1023) / 1024;
                    for (int64_t q_4 = 0; q_4 < q_4_to; q_4++) {
                        float part_10 = 0.0f;
                        const int64_t j_5_6_to = lc_smaller(1024*q_4 + 1024, D);
                        #pragma omp simd reduction(+:part_10)
                        for (int64_t j_5_6 = 1024*q_4; j_5_6 < j_5_6_to; j_5_6++) {
                            part_10 += (kernel[i_13*D + j_5_6] * cost[i_13*D + j_5_6]) * v[j_5_6];
                        }
                        wide_10 += (double)part_10;
                    }
                    product_4[i_13] += (float)wide_10;
                    y[b_2] += u[i_13] * product_4[i_13];
                }
            }
        }
    } else {
        for (int64_t b_2 = 0; b_2 < batch; b_2++) {
            y[b_2] = 0.0f;
            const int64_t chunks_2 = lc_smaller(64, C);
            #pragma omp parallel for schedule(static) num_threads(lc_threads) if(lc_threads > 1 && (14*C*D + C) > 40000)
            for (int64_t chunk = 0; chunk < chunks_2; chunk++) {
                const int64_t i_from = C*chunk / chunks_2;
                const int64_t i_to = (C*chunk + C) / chunks_2;
                for (int64_t i = i_from; i < i_to; i++) {
                    #pragma omp simd
                    for (int64_t j = 0; j < D; j++) {
                        kernel_2[i*D + j] = lc_expf((float)(-(double)lam) * cost[i*D + j]);
                    }
                    u_2[i] = e;
                }
            }
            for (int64_t v_ = 0; v_ < n_iter; v_++) {
                #pragma omp simd
                for (int64_t i_3 = 0; i_3 < D; i_3++) {
                    product_2_2[i_3] = 0.0f;
                }
                const int64_t chunks_3 = lc_smaller(lc_larger((C / 4), lc_smaller(4, C)), lc_smaller(16, lc_larger((2097152 / (D + 1)), 1)));
                #pragma omp parallel for schedule(static) num_threads(lc_threads) if(lc_threads > 1 && (3*C*D + 3*C) > 40000)
                for (int64_t chunk_2 = 0; chunk_2 < chunks_3; chunk_2++) {
                    #pragma omp simd
                    for (int64_t i_2 = 0; i_2 < D; i_2++) {
                        product_2_2_part[chunk_2*D + i_2] = 0.0f;
                    }
                    const int64_t j_2_from = C*chunk_2 / chunks_3;
                    const int64_t j_2_to = (C*chunk_2 + C) / chunks_3;
                    for (int64_t j_2 = j_2_from; j_2 < j_2_to; j_2++) {
                        product_5[j_2] = 0.0f;
                        const float uv_3 = u_2[j_2];
                        #pragma omp simd
                        for (int64_t i_4 = 0; i_4 < D; i_4++) {
                            product_2_2_part[chunk_2*D + i_4] += uv_3 * kernel_2[j_2*D + i_4];
                        }
                    }
                }
                for (int64_t chunk_3 = 0; chunk_3 < chunks_3; chunk_3++) {
                    #pragma omp simd
                    for (int64_t i_6 = 0; i_6 < D; i_6++) {
                        product_2_2[i_6] += product_2_2_part[chunk_3*D + i_6];
                    }
                }
                const int64_t chunks_4 = lc_smaller(((D + 2047) / 2048), 64);
                #pragma omp parallel for schedule(static) num_threads(lc_threads) if(lc_threads > 1 && 7*D > 40000)
                for (int64_t chunk_4 = 0; chunk_4 < chunks_4; chunk_4++) {
                    const int64_t i_5_from = lc_smaller(64*chunk_4*(D / (64*chunks_4)) + 64*chunk_4, D);
                    const int64_t i_5_to = lc_smaller(64*chunk_4*(D / (64*chunks_4)) + 64*chunk_4 + 64*(D / (64*chunks_4)) + 64, D);
                    #pragma omp simd
                    for (int64_t i_5 = i_5_from; i_5 < i_5_to; i_5++) {
                        divide_2[i_5] = b[b_2*D + i_5] / product_2_2[i_5];
                    }
                }
                const int64_t chunks_5 = lc_smaller((C / 4), 64);
                #pragma omp parallel for schedule(static) num_threads(lc_threads) if(lc_threads > 1 && (16*D*(C / 4) + 36*(C / 4)) > 40000)
                for (int64_t chunk_5 = 0; chunk_5 < chunks_5; chunk_5++) {
                    const int64_t i_7x4_from = chunk_5*(C / 4) / chunks_5;
                    const int64_t i_7x4_to_2 = (chunk_5*(C / 4) + (C / 4)) / chunks_5;
                    for (int64_t i_7x4 = i_7x4_from; i_7x4 < i_7x4_to_2; i_7x4++) {
                        double wide_11 = 0.0;
                        double wide_2_2 = 0.0;
                        double wide_3_2 = 0.0;
                        double wide_4_2 = 0.0;
                        const int64_t q_to_2 = (D + 1023) / 1024;
                        for (int64_t q = 0; q < q_to_2; q++) {
                            float part_11 = 0.0f;
                            float part_2_2 = 0.0f;
                            float part_3_2 = 0.0f;
                            float part_4_2 = 0.0f;
                            const int64_t j_3_2_to_2 = lc_smaller(1024*q + 1024, D);
                            #pragma omp simd reduction(+:part_11, part_2_2, part_3_2, part_4_2)
                            for (int64_t j_3_2 = 1024*q; j_3_2 < j_3_2_to_2; j_3_2++) {
                                const float dividev_2 = divide_2[j_3_2];
                                part_11 += kernel_2[(4*i_7x4)*D + j_3_2] * dividev_2;
                                part_2_2 += kernel_2[(4*i_7x4 + 1)*D + j_3_2] * dividev_2;
                                part_3_2 += kernel_2[(4*i_7x4 + 2)*D + j_3_2] * dividev_2;
                                part_4_2 += kernel_2[(4*i_7x4 + 3)*D + j_3_2] * dividev_2;
                            }
                            wide_11 += (double)part_11;
                            wide_2_2 += (double)part_2_2;
                            wide_3_2 += (double)part_3_2;
                            wide_4_2 += (double)part_4_2;
                        }
                        product_5[4*i_7x4] += (float)wide_11;
                        product_5[4*i_7x4 + 1] += (float)wide_2_2;
                        product_5[4*i_7x4 + 2] += (float)wide_3_2;
                        product_5[4*i_7x4 + 3] += (float)wide_4_2;
                        u_2[4*i_7x4] = a[b_2*C + 4*i_7x4] / product_5[4*i_7x4];
                        u_2[4*i_7x4 + 1] = a[b_2*C + 4*i_7x4 + 1] / product_5[4*i_7x4 + 1];
                        u_2[4*i_7x4 + 2] = a[b_2*C + 4*i_7x4 + 2] / product_5[4*i_7x4 + 2];
                        u_2[4*i_7x4 + 3] = a[b_2*C + 4*i_7x4 + 3] / product_5[4*i_7x4 + 3];
                    }
                }
                const int64_t chunks_6 = lc_smaller(64, C - 4*(C / 4));
                #pragma omp parallel for schedule(static) num_threads(lc_threads) if(lc_threads > 1 && (4*C*D + 9*C - 16*D*(C / 4) - 36*(C / 4)) > 40000)
                for (int64_t chunk_6 = 0; chunk_6 < chunks_6; chunk_6++) {
                    const int64_t i_7_from_2 = lc_floor_div_i64(C*chunk_6 - 4*chunk_6*(C / 4), chunks_6) + 4*(C / 4);
                    const int64_t i_7_to = lc_floor_div_i64(C*chunk_6 + C - 4*chunk_6*(C / 4) - 4*(C / 4), chunks_6) + 4*(C / 4);
                    for (int64_t i_7 = i_7_from_2; i_7 < i_7_to; i_7++) {
                        double wide_5_2 = 0.0;
                        const int64_t q_2_to_2 = (D + 1023) / 1024;
                        for (int64_t q_2 = 0; q_2 < q_2_to_2; q_2++) {
                            float part_5_2 = 0.0f;
                            const int64_t j_3_6_to_2 = lc_smaller(1024*q_2 + 1024, D);
                            #pragma omp simd reduction(+:part_5_2)
                            for (int64_t j_3_6 = 1024*q_2; j_3_6 < j_3_6_to_2; j_3_6++) {
                                part_5_2 += kernel_2[i_7*D + j_3_6] * divide_2[j_3_6];
                            }
                            wide_5_2 += (double)part_5_2;
                        }
                        product_5[i_7] += (float)wide_5_2;
                        u_2[i_7] = a[b_2*C + i_7] / product_5[i_7];
                    }
                }
            }
            #pragma omp simd
            for (int64_t i_9 = 0; i_9 < D; i_9++) {
                product_3_2[i_9] = 0.0f;
            }
            const int64_t chunks_7 = lc_smaller(lc_larger((C / 4), lc_smaller(4, C)), lc_smaller(16, lc_larger((2097152 / (D + 1)), 1)));
            #pragma omp parallel for schedule(static) num_threads(lc_threads) if(lc_threads > 1 && (3*C*D + 3*C) > 40000)
            for (int64_t chunk_7 = 0; chunk_7 < chunks_7; chunk_7++) {
                #pragma omp simd
                for (int64_t i_8 = 0; i_8 < D; i_8++) {
                    product_3_2_part[chunk_7*D + i_8] = 0.0f;
                }
                const int64_t j_4_from = C*chunk_7 / chunks_7;
                const int64_t j_4_to = (C*chunk_7 + C) / chunks_7;
                for (int64_t j_4 = j_4_from; j_4 < j_4_to; j_4++) {
                    product_4_2[j_4] = 0.0f;
                    const float uv_2_2 = u_2[j_4];
                    #pragma omp simd
                    for (int64_t i_10 = 0; i_10 < D; i_10++) {
                        product_3_2_part[chunk_7*D + i_10] += uv_2_2 * kernel_2[j_4*D + i_10];
                    }
                }
            }
            for (int64_t chunk_8 = 0; chunk_8 < chunks_7; chunk_8++) {
                #pragma omp simd
                for (int64_t i_12 = 0; i_12 < D; i_12++) {
                    product_3_2[i_12] += product_3_2_part[chunk_8*D + i_12];
                }
            }
            const int64_t chunks_8 = lc_smaller(((D + 2047) / 2048), 64);
            #pragma omp parallel for schedule(static) num_threads(lc_threads) if(lc_threads > 1 && 7*D > 40000)
            for (int64_t chunk_9 = 0; chunk_9 < chunks_8; chunk_9++) {
                const int64_t i_11_from = lc_smaller(64*chunk_9*(D / (64*chunks_8)) + 64*chunk_9, D);
                const int64_t i_11_to = lc_smaller(64*chunk_9*(D / (64*chunks_8)) + 64*chunk_9 + 64*(D / (64*chunks_8)) + 64, D);
                #pragma omp simd
                for (int64_t i_11 = i_11_from; i_11 < i_11_to; i_11++) {
                    v_2[i_11] = b[b_2*D + i_11] / product_3_2[i_11];
                }
            }
            const int64_t chunks_9 = lc_smaller(lc_larger(((C / 4) / 4), lc_smaller((C / 4), 4)), lc_smaller(16, lc_larger((2097152 / (batch + 1)), 1)));
            #pragma omp parallel for schedule(static) num_threads(lc_threads) if(lc_threads > 1 && (24*D*(C / 4) + 24*(C / 4)) > 40000)
            for (int64_t chunk_10 = 0; chunk_10 < chunks_9; chunk_10++) {
                #pragma omp simd
                for (int64_t i_14 = 0; i_14 < batch; i_14++) {
                    y_part[chunk_10*batch + i_14] = 0.0f;
                }
                const int64_t i_13x4_from = chunk_10*(C / 4) / chunks_9;
                const int64_t i_13x4_to_2 = (chunk_10*(C / 4) + (C / 4)) / chunks_9;
                for (int64_t i_13x4 = i_13x4_from; i_13x4 < i_13x4_to_2; i_13x4++) {
                    double wide_6_2 = 0.0;
                    double wide_7_2 = 0.0;
                    double wide_8_2 = 0.0;
                    double wide_9_2 = 0.0;
                    const int64_t q_3_to_2 = (D + 1023) / 1024;
                    for (int64_t q_3 = 0; q_3 < q_3_to_2; q_3++) {
                        float part_6_2 = 0.0f;
                        float part_7_2 = 0.0f;
                        float part_8_2 = 0.0f;
                        float part_9_2 = 0.0f;
                        const int64_t j_5_2_to_2 = lc_smaller(1024*q_3 + 1024, D);
                        #pragma omp simd reduction(+:part_6_2, part_7_2, part_8_2, part_9_2)
                        for (int64_t j_5_2 = 1024*q_3; j_5_2 < j_5_2_to_2; j_5_2++) {
                            const float vv_2 = v_2[j_5_2];
                            part_6_2 += (kernel_2[(4*i_13x4)*D + j_5_2] * cost[(4*i_13x4)*D + j_5_2]) * vv_2;
                            part_7_2 += (kernel_2[(4*i_13x4 + 1)*D + j_5_2] * cost[(4*i_13x4 + 1)*D + j_5_2]) * vv_2;
                            part_8_2 += (kernel_2[(4*i_13x4 + 2)*D + j_5_2] * cost[(4*i_13x4 + 2)*D + j_5_2]) * vv_2;
                            part_9_2 += (kernel_2[(4*i_13x4 + 3)*D + j_5_2] * cost[(4*i_13x4 + 3)*D + j_5_2]) * vv_2;
                        }
                        wide_6_2 += (double)part_6_2;
                        wide_7_2 += (double)part_7_2;
                        wide_8_2 += (double)part_8_2;
                        wide_9_2 += (double)part_9_2;
                    }
                    product_4_2[4*i_13x4] += (float)wide_6_2;
                    product_4_2[4*i_13x4 + 1] += (float)wide_7_2;
                    product_4_2[4*i_13x4 + 2] += (float)wide_8_2;
                    product_4_2[4*i_13x4 + 3] += (float)wide_9_2;
                    y_part[chunk_10*batch + b_2] += u_2[4*i_13x4] * product_4_2[4*i_13x4];
                    y_part[chunk_10*batch + b_2] += u_2[4*i_13x4 + 1] * product_4_2[4*i_13x4 + 1];
                    y_part[chunk_10*batch + b_2] += u_2[4*i_13x4 + 2] * product_4_2[4*i_13x4 + 2];
                    y_part[chunk_10*batch + b_2] += u_2[4*i_13x4 + 3] * product_4_2[4*i_13x4 + 3];
                }
            }
            for (int64_t chunk_11 = 0; chunk_11 < chunks_9; chunk_11++) {
                #pragma omp simd
                for (int64_t i_15 = 0; i_15 < batch; i_15++) {
                    y[i_15] += y_part[chunk_11*batch + i_15];
                }
            }
            const int64_t chunks_10 = lc_smaller(lc_larger(((C - 4*(C / 4)) / 4), lc_smaller(4, C - 4*(C / 4))), lc_smaller(16, lc_larger((2097152 / (batch + 1)), 1)));
            #pragma omp parallel for schedule(static) num_threads(lc_threads) if(lc_threads > 1 && (6*C*D + 6*C - 24*D*(C / 4) - 24*(C / 4)) > 40000)
            for (int64_t chunk_12 = 0; chunk_12 < chunks_10; chunk_12++) {
                #pragma omp simd
                for (int64_t i_16 = 0; i_16 < batch; i_16++) {
                    y_part_2[chunk_12*batch + i_16] = 0.0f;
                }
                const int64_t i_13_from_2 = lc_floor_div_i64(C*chunk_12 - 4*chunk_12*(C / 4), chunks_10) + 4*(C / 4);
                const int64_t i_13_to = lc_floor_div_i64(C*chunk_12 + C - 4*chunk_12*(C / 4) - 4*(C / 4), chunks_10) + 4*(C / 4);
                for (int64_t i_13 = i_13_from_2; i_13 < i_13_to; i_13++) {
                    double wide_10_2 = 0.0;
                    const int64_t q_4_to_2 = (D + 1023) / 1024;
                    for (int64_t q_4 = 0; q_4 < q_4_to_2; q_4++) {
                        float part_10_2 = 0.0f;
                        const int64_t j_5_6_to_2 = lc_smaller(1024*q_4 + 1024, D);
                        #pragma omp simd reduction(+:part_10_2)
                        for (int64_t j_5_6 = 1024*q_4; j_5_6 < j_5_6_to_2; j_5_6++) {
                            part_10_2 += (kernel_2[i_13*D + j_5_6] * cost[i_13*D + j_5_6]) * v_2[j_5_6];
                        }
                        wide_10_2 += (double)part_10_2;
                    }
                    product_4_2[i_13] += (float)wide_10_2;
                    y_part_2[chunk_12*batch + b_2] += u_2[i_13] * product_4_2[i_13];
                }
            }
            for (int64_t chunk_13 = 0; chunk_13 < chunks_10; chunk_13++) {
                #pragma omp simd
                for (int64_t i_17 = 0; i_17 < batch; i_17++) {
                    y[i_17] += y_part_2[chunk_13*batch + i_17];
                }
            }
        }
    }
lc_done:
    free(lc_arena);
    return lc_leave(call, &lc_fault);
}

int LC_NAME(wasserstein_f64)(int64_t batch, int64_t C, int64_t D, double lam, int64_t n_iter, const double *restrict a, const double *restrict b, const double *restrict cost, double *restrict y, lc_call *call)
{
    const int lc_threads LC_USED = call && call->threads > 0 ? call->threads : 1;
    lc_fault_t lc_fault = {0, {0}};
    size_t lc_room = 0;
    const size_t lc_at_kernel_2 = lc_reserve(&lc_room, sizeof(double), (const int64_t[]){C, D}, 2);
    const size_t lc_at_u_2 = lc_reserve(&lc_room, sizeof(double), (const int64_t[]){C}, 1);
    const size_t lc_at_product_5 = lc_reserve(&lc_room, sizeof(double), (const int64_t[]){C}, 1);
    const size_t lc_at_product_2_2 = lc_reserve(&lc_room, sizeof(double), (const int64_t[]){D}, 1);
    const size_t lc_at_divide_2 = lc_reserve(&lc_room, sizeof(double), (const int64_t[]){D}, 1);
    const size_t lc_at_v_2 = lc_reserve(&lc_room, sizeof(double), (const int64_t[]){D}, 1);
    const size_t lc_at_product_3_2 = lc_reserve(&lc_room, sizeof(double), (const int64_t[]){D}, 1);
    const size_t lc_at_product_4_2 = lc_reserve(&lc_room, sizeof(double), (const int64_t[]){C}, 1);
    const size_t lc_at_product_2_2_part = lc_reserve(&lc_room, sizeof(double), (const int64_t[]){16, D}, 2);
    const size_t lc_at_product_3_2_part = lc_reserve(&lc_room, sizeof(double), (const int64_t[]){16, D}, 2);
    const size_t lc_at_y_part = lc_reserve(&lc_room, sizeof(double), (const int64_t[]){16, batch}, 2);
    const size_t lc_at_y_part_2 = lc_reserve(&lc_room, sizeof(double), (const int64_t[]){16, batch}, 2);
    const size_t lc_own1 = lc_room;
    const size_t lc_at_kernel = lc_reserve(&lc_room, sizeof(double), (const int64_t[]){C, D}, 2);
    const size_t lc_at_u = lc_reserve(&lc_room, sizeof(double), (const int64_t[]){C}, 1);
    const size_t lc_at_product = lc_reserve(&lc_room, sizeof(double), (const int64_t[]){C}, 1);
    const size_t lc_at_product_2 = lc_reserve(&lc_room, sizeof(double), (const int64_t[]){D}, 1);
    const size_t lc_at_divide = lc_reserve(&lc_room, sizeof(double), (const int64_t[]){D}, 1);
    const size_t lc_at_v = lc_reserve(&lc_room, sizeof(double), (const int64_t[]){D}, 1);
    const size_t lc_at_product_3 = lc_reserve(&lc_room, sizeof(double), (const int64_t[]){D}, 1);
    const size_t lc_at_product_4 = lc_reserve(&lc_room, sizeof(double), (const int64_t[]){C}, 1);
    const size_t lc_step1 = lc_copies(&lc_room, lc_own1, lc_threads);
    char *const lc_arena = lc_take(lc_room);
    if (!lc_arena) { lc_fault.code = 1; goto lc_done; }
    double *restrict const kernel_2 = (double *)(lc_arena + lc_at_kernel_2);
    double *restrict const u_2 = (double *)(lc_arena + lc_at_u_2);
    double *restrict const product_5 = (double *)(lc_arena + lc_at_product_5);
    double *restrict const product_2_2 = (double *)(lc_arena + lc_at_product_2_2);
    double *restrict const divide_2 = (double *)(lc_arena + lc_at_divide_2);
    double *restrict const v_2 = (double *)(lc_arena + lc_at_v_2);
    double *restrict const product_3_2 = (double *)(lc_arena + lc_at_product_3_2);
    double *restrict const product_4_2 = (double *)(lc_arena + lc_at_product_4_2);
    double *restrict const product_2_2_part = (double *)(lc_arena + lc_at_product_2_2_part);
    double *restrict const product_3_2_part = (double *)(lc_arena + lc_at_product_3_2_part);
    double *restrict const y_part = (double *)(lc_arena + lc_at_y_part);
    double *restrict const y_part_2 = (double *)(lc_arena + lc_at_y_part_2);
    const double e = 1.0 / (double)C;
    if (batch >= 4) {
        const int64_t chunks = lc_smaller(64, batch);
        #pragma omp parallel for schedule(static) num_threads(lc_threads) if(lc_threads > 1 && (7*C*D*batch*n_iter + 23*C*D*batch + 12*C*batch*n_iter + 8*D*batch*n_iter + 10*C*batch + 8*D*batch + batch) > 40000)
        for (int64_t chunk_14 = 0; chunk_14 < chunks; chunk_14++) {
            char *const lc_mine1 = lc_arena + (size_t)lc_thread() * lc_step1;
            double *restrict const kernel = (double *)(lc_mine1 + lc_at_kernel);
            double *restrict const u = (double *)(lc_mine1 + lc_at_u);
            double *restrict const product = (double *)(lc_mine1 + lc_at_product);
            double *restrict const product_2 = (double *)(lc_mine1 + lc_at_product_2);
            double *restrict const divide = (double *)(lc_mine1 + lc_at_divide);
            double *restrict const v = (double *)(lc_mine1 + lc_at_v);
            double *restrict const product_3 = (double *)(lc_mine1 + lc_at_product_3);
            double *restrict const product_4 = (double *)(lc_mine1 + lc_at_product_4);
            const int64_t b_2_from = batch*chunk_14 / chunks;
            const int64_t b_2_to = (batch*chunk_14 + batch) / chunks;
            for (int64_t b_2 = b_2_from; b_2 < b_2_to; b_2++) {
                y[b_2] = 0.0;
                for (int64_t i = 0; i < C; i++) {
                    #pragma omp simd
                    for (int64_t j = 0; j < D; j++) {
                        kernel[i*D + j] = lc_exp((-(double)lam) * cost[i*D + j]);
                    }
                    u[i] = e;
                }
                for (int64_t v_ = 0; v_ < n_iter; v_++) {
                    #pragma omp simd
                    for (int64_t i_3 = 0; i_3 < D; i_3++) {
                        product_2[i_3] = 0.0;
                    }
                    for (int64_t j_2 = 0; j_2 < C; j_2++) {
                        product[j_2] = 0.0;
                        const double uv = u[j_2];
                        #pragma omp simd
                        for (int64_t i_4 = 0; i_4 < D; i_4++) {
                            product_2[i_4] += uv * kernel[j_2*D + i_4];
                        }
                    }
                    #pragma omp simd
                    for (int64_t i_5 = 0; i_5 < D; i_5++) {
                        divide[i_5] = b[b_2*D + i_5] / product_2[i_5];
                    }
                    const int64_t i_7x4_to = C / 4;
                    for (int64_t i_7x4 = 0; i_7x4 < i_7x4_to; i_7x4++) {
                        double wide = 0.0;
                        double wide_2 = 0.0;
                        double wide_3 = 0.0;
                        double wide_4 = 0.0;
                        const int64_t q_to = (D + 1023) / 1024;
                        for (int64_t q = 0; q < q_to; q++) {
                            double part = 0.0;
                            double part_2 = 0.0;
                            double part_3 = 0.0;
                            double part_4 = 0.0;
                            const int64_t j_3_2_to = lc_smaller(1024*q + 1024, D);
                            #pragma omp simd reduction(+:part, part_2, part_3, part_4)
                            for (int64_t j_3_2 = 1024*q; j_3_2 < j_3_2_to; j_3_2++) {
                                const double dividev = divide[j_3_2];
                                part += kernel[(4*i_7x4)*D + j_3_2] * dividev;
                                part_2 += kernel[(4*i_7x4 + 1)*D + j_3_2] * dividev;
                                part_3 += kernel[(4*i_7x4 + 2)*D + j_3_2] * dividev;
                                part_4 += kernel[(4*i_7x4 + 3)*D + j_3_2] * dividev;
                            }
                            wide += part;
                            wide_2 += part_2;
                            wide_3 += part_3;
                            wide_4 += part_4;
                        }
                        product[4*i_7x4] += wide;
                        product[4*i_7x4 + 1] += wide_2;
                        product[4*i_7x4 + 2] += wide_3;
                        product[4*i_7x4 + 3] += wide_4;
                        u[4*i_7x4] = a[b_2*C + 4*i_7x4] / product[4*i_7x4];
                        u[4*i_7x4 + 1] = a[b_2*C + 4*i_7x4 + 1] / product[4*i_7x4 + 1];
                        u[4*i_7x4 + 2] = a[b_2*C + 4*i_7x4 + 2] / product[4*i_7x4 + 2];
                        u[4*i_7x4 + 3] = a[b_2*C + 4*i_7x4 + 3] / product[4*i_7x4 + 3];
                    }
                    const int64_t i_7_from = 4*i_7x4_to;
                    for (int64_t i_7 = i_7_from; i_7 < C; i_7++) {
                        double wide_5 = 0.0;
                        const int64_t q_2_to = (D + 1023) / 1024;
                        for (int64_t q_2 = 0; q_2 < q_2_to; q_2++) {
                            double part_5 = 0.0;
                            const int64_t j_3_6_to = lc_smaller(1024*q_2 + 1024, D);
                            #pragma omp simd reduction(+:part_5)
                            for (int64_t j_3_6 = 1024*q_2; j_3_6 < j_3_6_to; j_3_6++) {
                                part_5 += kernel[i_7*D + j_3_6] * divide[j_3_6];
                            }
                            wide_5 += part_5;
                        }
                        product[i_7] += wide_5;
                        u[i_7] = a[b_2*C + i_7] / product[i_7];
                    }
                }
                #pragma omp simd
                for (int64_t i_9 = 0; i_9 < D; i_9++) {
                    product_3[i_9] = 0.0;
                }
                for (int64_t j_4 = 0; j_4 < C; j_4++) {
                    product_4[j_4] = 0.0;
                    const double uv_2 = u[j_4];
                    #pragma omp simd
                    for (int64_t i_10 = 0; i_10 < D; i_10++) {
                        product_3[i_10] += uv_2 * kernel[j_4*D + i_10];
                    }
                }
                #pragma omp simd
                for (int64_t i_11 = 0; i_11 < D; i_11++) {
                    v[i_11] = b[b_2*D + i_11] / product_3[i_11];
                }
                const int64_t i_13x4_to = C / 4;
                for (int64_t i_13x4 = 0; i_13x4 < i_13x4_to; i_13x4++) {
                    double wide_6 = 0.0;
                    double wide_7 = 0.0;
                    double wide_8 = 0.0;
                    double wide_9 = 0.0;
                    const int64_t q_3_to = (D + 1023) / 1024;
                    for (int64_t q_3 = 0; q_3 < q_3_to; q_3++) {
                        double part_6 = 0.0;
                        double part_7 = 0.0;
                        double part_8 = 0.0;
                        double part_9 = 0.0;
                        const int64_t j_5_2_to = lc_smaller(1024*q_3 + 1024, D);
                        #pragma omp simd reduction(+:part_6, part_7, part_8, part_9)
                        for (int64_t j_5_2 = 1024*q_3; j_5_2 < j_5_2_to; j_5_2++) {
                            const double vv = v[j_5_2];
                            part_6 += (kernel[(4*i_13x4)*D + j_5_2] * cost[(4*i_13x4)*D + j_5_2]) * vv;
                            part_7 += (kernel[(4*i_13x4 + 1)*D + j_5_2] * cost[(4*i_13x4 + 1)*D + j_5_2]) * vv;
                            part_8 += (kernel[(4*i_13x4 + 2)*D + j_5_2] * cost[(4*i_13x4 + 2)*D + j_5_2]) * vv;
                            part_9 += (kernel[(4*i_13x4 + 3)*D + j_5_2] * cost[(4*i_13x4 + 3)*D + j_5_2]) * vv;
                        }
                        wide_6 += part_6;
                        wide_7 += part_7;
                        wide_8 += part_8;
                        wide_9 += part_9;
                    }
                    product_4[4*i_13x4] += wide_6;
                    product_4[4*i_13x4 + 1] += wide_7;
                    product_4[4*i_13x4 + 2] += wide_8;
                    product_4[4*i_13x4 + 3] += wide_9;
                    y[b_2] += u[4*i_13x4] * product_4[4*i_13x4];
                    y[b_2] += u[4*i_13x4 + 1] * product_4[4*i_13x4 + 1];
                    y[b_2] += u[4*i_13x4 + 2] * product_4[4*i_13x4 + 2];
                    y[b_2] += u[4*i_13x4 + 3] * product_4[4*i_13x4 + 3];
                }
                const int64_t i_13_from = 4*i_13x4_to;
                for (int64_t i_13 = i_13_from; i_13 < C; i_13++) {
                    double wide_10 = 0.0;
                    const int64_t q_4_to = (D + 1023) / 1024;
                    for (int64_t q_4 = 0; q_4 < q_4_to; q_4++) {
                        double part_10 = 0.0;
                        const int64_t j_5_6_to = lc_smaller(1024*q_4 + 1024, D);
                        #pragma omp simd reduction(+:part_10)
                        for (int64_t j_5_6 = 1024*q_4; j_5_6 < j_5_6_to; j_5_6++) {
                            part_10 += (kernel[i_13*D + j_5_6] * cost[i_13*D + j_5_6]) * v[j_5_6];
                        }
                        wide_10 += part_10;
                    }
                    product_4[i_13] += wide_10;
                    y[b_2] += u[i_13] * product_4[i_13];
                }
            }
        }
    } else {
        for (int64_t b_2 = 0; b_2 < batch; b_2++) {
            y[b_2] = 0.0;
            const int64_t chunks_2 = lc_smaller(64, C);
            #pragma omp parallel for schedule(static) num_threads(lc_threads) if(lc_threads > 1 && (14*C*D + C) > 40000)
            for (int64_t chunk = 0; chunk < chunks_2; chunk++) {
                const int64_t i_from = C*chunk / chunks_2;
                const int64_t i_to = (C*chunk + C) / chunks_2;
                for (int64_t i = i_from; i < i_to; i++) {
                    #pragma omp simd
                    for (int64_t j = 0; j < D; j++) {
                        kernel_2[i*D + j] = lc_exp((-(double)lam) * cost[i*D + j]);
                    }
                    u_2[i] = e;
                }
            }
            for (int64_t v_ = 0; v_ < n_iter; v_++) {
                #pragma omp simd
                for (int64_t i_3 = 0; i_3 < D; i_3++) {
                    product_2_2[i_3] = 0.0;
                }
                const int64_t chunks_3 = lc_smaller(lc_larger((C / 4), lc_smaller(4, C)), lc_smaller(16, lc_larger((2097152 / (D + 1)), 1)));
                #pragma omp parallel for schedule(static) num_threads(lc_threads) if(lc_threads > 1 && (3*C*D + 3*C) > 40000)
                for (int64_t chunk_2 = 0; chunk_2 < chunks_3; chunk_2++) {
                    #pragma omp simd
                    for (int64_t i_2 = 0; i_2 < D; i_2++) {
                        product_2_2_part[chunk_2*D + i_2] = 0.0;
                    }
                    const int64_t j_2_from = C*chunk_2 / chunks_3;
                    const int64_t j_2_to = (C*chunk_2 + C) / chunks_3;
                    for (int64_t j_2 = j_2_from; j_2 < j_2_to; j_2++) {
                        product_5[j_2] = 0.0;
                        const double uv_3 = u_2[j_2];
                        #pragma omp simd
                        for (int64_t i_4 = 0; i_4 < D; i_4++) {
                            product_2_2_part[chunk_2*D + i_4] += uv_3 * kernel_2[j_2*D + i_4];
                        }
                    }
                }
                for (int64_t chunk_3 = 0; chunk_3 < chunks_3; chunk_3++) {
                    #pragma omp simd
                    for (int64_t i_6 = 0; i_6 < D; i_6++) {
                        product_2_2[i_6] += product_2_2_part[chunk_3*D + i_6];
                    }
                }
                const int64_t chunks_4 = lc_smaller(((D + 2047) / 2048), 64);
                #pragma omp parallel for schedule(static) num_threads(lc_threads) if(lc_threads > 1 && 7*D > 40000)
                for (int64_t chunk_4 = 0; chunk_4 < chunks_4; chunk_4++) {
                    const int64_t i_5_from = lc_smaller(64*chunk_4*(D / (64*chunks_4)) + 64*chunk_4, D);
                    const int64_t i_5_to = lc_smaller(64*chunk_4*(D / (64*chunks_4)) + 64*chunk_4 + 64*(D / (64*chunks_4)) + 64, D);
                    #pragma omp simd
                    for (int64_t i_5 = i_5_from; i_5 < i_5_to; i_5++) {
                        divide_2[i_5] = b[b_2*D + i_5] / product_2_2[i_5];
                    }
                }
                const int64_t chunks_5 = lc_smaller((C / 4), 64);
                #pragma omp parallel for schedule(static) num_threads(lc_threads) if(lc_threads > 1 && (16*D*(C / 4) + 36*(C / 4)) > 40000)
                for (int64_t chunk_5 = 0; chunk_5 < chunks_5; chunk_5++) {
                    const int64_t i_7x4_from = chunk_5*(C / 4) / chunks_5;
                    const int64_t i_7x4_to_2 = (chunk_5*(C / 4) + (C / 4)) / chunks_5;
                    for (int64_t i_7x4 = i_7x4_from; i_7x4 < i_7x4_to_2; i_7x4++) {
                        double wide_11 = 0.0;
                        double wide_2_2 = 0.0;
                        double wide_3_2 = 0.0;
                        double wide_4_2 = 0.0;
                        const int64_t q_to_2 = (D + 1023) / 1024;
                        for (int64_t q = 0; q < q_to_2; q++) {
                            double part_11 = 0.0;
                            double part_2_2 = 0.0;
                            double part_3_2 = 0.0;
                            double part_4_2 = 0.0;
                            const int64_t j_3_2_to_2 = lc_smaller(1024*q + 1024, D);
                            #pragma omp simd reduction(+:part_11, part_2_2, part_3_2, part_4_2)
                            for (int64_t j_3_2 = 1024*q; j_3_2 < j_3_2_to_2; j_3_2++) {
                                const double dividev_2 = divide_2[j_3_2];
                                part_11 += kernel_2[(4*i_7x4)*D + j_3_2] * dividev_2;
                                part_2_2 += kernel_2[(4*i_7x4 + 1)*D + j_3_2] * dividev_2;
                                part_3_2 += kernel_2[(4*i_7x4 + 2)*D + j_3_2] * dividev_2;
                                part_4_2 += kernel_2[(4*i_7x4 + 3)*D + j_3_2] * dividev_2;
                            }
                            wide_11 += part_11;
                            wide_2_2 += part_2_2;
                            wide_3_2 += part_3_2;
                            wide_4_2 += part_4_2;
                        }
                        product_5[4*i_7x4] += wide_11;
                        product_5[4*i_7x4 + 1] += wide_2_2;
                        product_5[4*i_7x4 + 2] += wide_3_2;
                        product_5[4*i_7x4 + 3] += wide_4_2;
                        u_2[4*i_7x4] = a[b_2*C + 4*i_7x4] / product_5[4*i_7x4];
                        u_2[4*i_7x4 + 1] = a[b_2*C + 4*i_7x4 + 1] / product_5[4*i_7x4 + 1];
                        u_2[4*i_7x4 + 2] = a[b_2*C + 4*i_7x4 + 2] / product_5[4*i_7x4 + 2];
                        u_2[4*i_7x4 + 3] = a[b_2*C + 4*i_7x4 + 3] / product_5[4*i_7x4 + 3];
                    }
                }
                const int64_t chunks_6 = lc_smaller(64, C - 4*(C / 4));
                #pragma omp parallel for schedule(static) num_threads(lc_threads) if(lc_threads > 1 && (4*C*D + 9*C - 16*D*(C / 4) - 36*(C / 4)) > 40000)
                for (int64_t chunk_6 = 0; chunk_6 < chunks_6; chunk_6++) {
                    const int64_t i_7_from_2 = lc_floor_div_i64(C*chunk_6 - 4*chunk_6*(C / 4), chunks_6) + 4*(C / 4);
                    const int64_t i_7_to = lc_floor_div_i64(C*chunk_6 + C - 4*chunk_6*(C / 4) - 4*(C / 4), chunks_6) + 4*(C / 4);
                    for (int64_t i_7 = i_7_from_2; i_7 < i_7_to; i_7++) {
                        double wide_5_2 = 0.0;
                        const int64_t q_2_to_2 = (D + 1023) / 1024;
                        for (int64_t q_2 = 0; q_2 < q_2_to_2; q_2++) {
                            double part_5_2 = 0.0;
                            const int64_t j_3_6_to_2 = lc_smaller(1024*q_2 + 1024, D);
                            #pragma omp simd reduction(+:part_5_2)
                            for (int64_t j_3_6 = 1024*q_2; j_3_6 < j_3_6_to_2; j_3_6++) {
                                part_5_2 += kernel_2[i_7*D + j_3_6] * divide_2[j_3_6];
                            }
                            wide_5_2 += part_5_2;
                        }
                        product_5[i_7] += wide_5_2;
                        u_2[i_7] = a[b_2*C + i_7] / product_5[i_7];
                    }
                }
            }
            #pragma omp simd
            for (int64_t i_9 = 0; i_9 < D; i_9++) {
                product_3_2[i_9] = 0.0;
            }
            const int64_t chunks_7 = lc_smaller(lc_larger((C / 4), lc_smaller(4, C)), lc_smaller(16, lc_larger((2097152 / (D + 1)), 1)));
            #pragma omp parallel for schedule(static) num_threads(lc_threads) if(lc_threads > 1 && (3*C*D + 3*C) > 40000)
            for (int64_t chunk_7 = 0; chunk_7 < chunks_7; chunk_7++) {
                #pragma omp simd
                for (int64_t i_8 = 0; i_8 < D; i_8++) {
                    product_3_2_part[chunk_7*D + i_8] = 0.0;
                }
                const int64_t j_4_from = C*chunk_7 / chunks_7;
                const int64_t j_4_to = (C*chunk_7 + C) / chunks_7;
                for (int64_t j_4 = j_4_from; j_4 < j_4_to; j_4++) {
                    product_4_2[j_4] = 0.0;
                    const double uv_2_2 = u_2[j_4];
                    #pragma omp simd
                    for (int64_t i_10 = 0; i_10 < D; i_10++) {
                        product_3_2_part[chunk_7*D + i_10] += uv_2_2 * kernel_2[j_4*D + i_10];
                    }
                }
            }
            for (int64_t chunk_8 = 0; chunk_8 < chunks_7; chunk_8++) {
                #pragma omp simd
                for (int64_t i_12 = 0; i_12 < D; i_12++) {
                    product_3_2[i_12] += product_3_2_part[chunk_8*D + i_12];
                }
            }
            const int64_t chunks_8 = lc_smaller(((D + 2047) / 2048), 64);
            #pragma omp parallel for schedule(static) num_threads(lc_threads) if(lc_threads > 1 && 7*D > 40000)
            for (int64_t chunk_9 = 0; chunk_9 < chunks_8; chunk_9++) {
                const int64_t i_11_from = lc_smaller(64*chunk_9*(D / (64*chunks_8)) + 64*chunk_9, D);
                const int64_t i_11_to = lc_smaller(64*chunk_9*(D / (64*chunks_8)) + 64*chunk_9 + 64*(D / (64*chunks_8)) + 64, D);
                #pragma omp simd
                for (int64_t i_11 = i_11_from; i_11 < i_11_to; i_11++) {
                    v_2[i_11] = b[b_2*D + i_11] / product_3_2[i_11];
                }
            }
            const int64_t chunks_9 = lc_smaller(lc_larger(((C / 4) / 4), lc_smaller((C / 4), 4)), lc_smaller(16, lc_larger((2097152 / (batch + 1)), 1)));
            #pragma omp parallel for schedule(static) num_threads(lc_threads) if(lc_threads > 1 && (24*D*(C / 4) + 24*(C / 4)) > 40000)
            for (int64_t chunk_10 = 0; chunk_10 < chunks_9; chunk_10++) {
                #pragma omp simd
                for (int64_t i_14 = 0; i_14 < batch; i_14++) {
                    y_part[chunk_10*batch + i_14] = 0.0;
                }
                const int64_t i_13x4_from = chunk_10*(C / 4) / chunks_9;
                const int64_t i_13x4_to_2 = (chunk_10*(C / 4) + (C / 4)) / chunks_9;
                for (int64_t i_13x4 = i_13x4_from; i_13x4 < i_13x4_to_2; i_13x4++) {
                    double wide_6_2 = 0.0;
                    double wide_7_2 = 0.0;
                    double wide_8_2 = 0.0;
                    double wide_9_2 = 0.0;
                    const int64_t q_3_to_2 = (D + 1023) / 1024;
                    for (int64_t q_3 = 0; q_3 < q_3_to_2; q_3++) {
                        double part_6_2 = 0.0;
                        double part_7_2 = 0.0;
                        double part_8_2 = 0.0;
                        double part_9_2 = 0.0;
                        const int64_t j_5_2_to_2 = lc_smaller(1024*q_3 + 1024, D);
                        #pragma omp simd reduction(+:part_6_2, part_7_2, part_8_2, part_9_2)
                        for (int64_t j_5_2 = 1024*q_3; j_5_2 < j_5_2_to_2; j_5_2++) {
                            const double vv_2 = v_2[j_5_2];
                            part_6_2 += (kernel_2[(4*i_13x4)*D + j_5_2] * cost[(4*i_13x4)*D + j_5_2]) * vv_2;
                            part_7_2 += (kernel_2[(4*i_13x4 + 1)*D + j_5_2] * cost[(4*i_13x4 + 1)*D + j_5_2]) * vv_2;
                            part_8_2 += (kernel_2[(4*i_13x4 + 2)*D + j_5_2] * cost[(4*i_13x4 + 2)*D + j_5_2]) * vv_2;
                            part_9_2 += (kernel_2[(4*i_13x4 + 3)*D + j_5_2] * cost[(4*i_13x4 + 3)*D + j_5_2]) * vv_2;
                        }
                        wide_6_2 += part_6_2;
                        wide_7_2 += part_7_2;
                        wide_8_2 += part_8_2;
                        wide_9_2 += part_9_2;
                    }
                    product_4_2[4*i_13x4] += wide_6_2;
                    product_4_2[4*i_13x4 + 1] += wide_7_2;
                    product_4_2[4*i_13x4 + 2] += wide_8_2;
                    product_4_2[4*i_13x4 + 3] += wide_9_2;
                    y_part[chunk_10*batch + b_2] += u_2[4*i_13x4] * product_4_2[4*i_13x4];
                    y_part[chunk_10*batch + b_2] += u_2[4*i_13x4 + 1] * product_4_2[4*i_13x4 + 1];
                    y_part[chunk_10*batch + b_2] += u_2[4*i_13x4 + 2] * product_4_2[4*i_13x4 + 2];
                    y_part[chunk_10*batch + b_2] += u_2[4*i_13x4 + 3] * product_4_2[4*i_13x4 + 3];
                }
            }
            for (int64_t chunk_11 = 0; chunk_11 < chunks_9; chunk_11++) {
                #pragma omp simd
                for (int64_t i_15 = 0; i_15 < batch; i_15++) {
                    y[i_15] += y_part[chunk_11*batch + i_15];
                }
            }
            const int64_t chunks_10 = lc_smaller(lc_larger(((C - 4*(C / 4)) / 4), lc_smaller(4, C - 4*(C / 4))), lc_smaller(16, lc_larger((2097152 / (batch + 1)), 1)));
            #pragma omp parallel for schedule(static) num_threads(lc_threads) if(lc_threads > 1 && (6*C*D + 6*C - 24*D*(C / 4) - 24*(C / 4)) > 40000)
            for (int64_t chunk_12 = 0; chunk_12 < chunks_10; chunk_12++) {
                #pragma omp simd
                for (int64_t i_16 = 0; i_16 < batch; i_16++) {
                    y_part_2[chunk_12*batch + i_16] = 0.0;
                }
                const int64_t i_13_from_2 = lc_floor_div_i64(C*chunk_12 - 4*chunk_12*(C / 4), chunks_10) + 4*(C / 4);
                const int64_t i_13_to = lc_floor_div_i64(C*chunk_12 + C - 4*chunk_12*(C / 4) - 4*(C / 4), chunks_10) + 4*(C / 4);
                for (int64_t i_13 = i_13_from_2; i_13 < i_13_to; i_13++) {
                    double wide_10_2 = 0.0;
                    const int64_t q_4_to_2 = (D + 1023) / 1024;
                    for (int64_t q_4 = 0; q_4 < q_4_to_2; q_4++) {
                        double part_10_2 = 0.0;
                        const int64_t j_5_6_to_2 = lc_smaller(1024*q_4 + 1024, D);
                        #pragma omp simd reduction(+:part_10_2)
                        for (int64_t j_5_6 = 1024*q_4; j_5_6 < j_5_6_to_2; j_5_6++) {
                            part_10_2 += (kernel_2[i_13*D + j_5_6] * cost[i_13*D + j_5_6]) * v_2[j_5_6];
                        }
                        wide_10_2 += part_10_2;
                    }
                    product_4_2[i_13] += wide_10_2;
                    y_part_2[chunk_12*batch + b_2] += u_2[i_13] * product_4_2[i_13];
                }
            }
            for (int64_t chunk_13 = 0; chunk_13 < chunks_10; chunk_13++) {
                #pragma omp simd
                for (int64_t i_17 = 0; i_17 < batch; i_17++) {
                    y[i_17] += y_part_2[chunk_13*batch + i_17];
                }
            }
        }
    }
lc_done:
    free(lc_arena);
    return lc_leave(call, &lc_fault);
}

int LC_NAME(wasserstein_backward_f32)(int64_t batch, int64_t C, int64_t D, double lam, int64_t n_iter, const float *restrict a, const float *restrict b, const float *restrict cost, const float *restrict dy, float *restrict d_a, float *restrict d_b, lc_call *call)
{
    const int lc_threads LC_USED = call && call->threads > 0 ? call->threads : 1;
    lc_fault_t lc_fault = {0, {0}};
    size_t lc_room = 0;
    const size_t lc_at_kernel_2 = lc_reserve(&lc_room, sizeof(float), (const int64_t[]){C, D}, 2);
    const size_t lc_at_u_2 = lc_reserve(&lc_room, sizeof(float), (const int64_t[]){C}, 1);
    const size_t lc_at_u_saved_2 = lc_reserve(&lc_room, sizeof(float), (const int64_t[]){n_iter, C}, 2);
    const size_t lc_at_product_5_2 = lc_reserve(&lc_room, sizeof(float), (const int64_t[]){C}, 1);
    const size_t lc_at_product_6_2 = lc_reserve(&lc_room, sizeof(float), (const int64_t[]){D}, 1);
    const size_t lc_at_divide_2 = lc_reserve(&lc_room, sizeof(float), (const int64_t[]){D}, 1);
    const size_t lc_at_product_2_2 = lc_reserve(&lc_room, sizeof(float), (const int64_t[]){D}, 1);
    const size_t lc_at_v_2 = lc_reserve(&lc_room, sizeof(float), (const int64_t[]){D}, 1);
    const size_t lc_at_product_9 = lc_reserve(&lc_room, sizeof(float), (const int64_t[]){C}, 1);
    const size_t lc_at_d_ratio_2 = lc_reserve(&lc_room, sizeof(float), (const int64_t[]){D}, 1);
    const size_t lc_at_d_u_2 = lc_reserve(&lc_room, sizeof(float), (const int64_t[]){C}, 1);
    const size_t lc_at_product_7_2 = lc_reserve(&lc_room, sizeof(float), (const int64_t[]){C}, 1);
    const size_t lc_at_expand_dims_3 = lc_reserve(&lc_room, sizeof(float), (const int64_t[]){D}, 1);
    const size_t lc_at_product_4_2 = lc_reserve(&lc_room, sizeof(float), (const int64_t[]){D}, 1);
    const size_t lc_at_ratio_2 = lc_reserve(&lc_room, sizeof(float), (const int64_t[]){D}, 1);
    const size_t lc_at_product_3_2 = lc_reserve(&lc_room, sizeof(float), (const int64_t[]){C}, 1);
    const size_t lc_at_sum_2 = lc_reserve(&lc_room, sizeof(float), (const int64_t[]){D}, 1);
    const size_t lc_at_product_8_2 = lc_reserve(&lc_room, sizeof(float), (const int64_t[]){1, C}, 2);
    const size_t lc_at_expand_dims_2_2 = lc_reserve(&lc_room, sizeof(float), (const int64_t[]){D}, 1);
    const size_t lc_at_product_6_2_part = lc_reserve(&lc_room, sizeof(float), (const int64_t[]){16, D}, 2);
    const size_t lc_at_product_2_2_part = lc_reserve(&lc_room, sizeof(float), (const int64_t[]){16, D}, 2);
    const size_t lc_at_d_ratio_2_part = lc_reserve(&lc_room, sizeof(float), (const int64_t[]){16, D}, 2);
    const size_t lc_at_d_ratio_2_part_2 = lc_reserve(&lc_room, sizeof(float), (const int64_t[]){16, D}, 2);
    const size_t lc_at_product_4_2_part = lc_reserve(&lc_room, sizeof(float), (const int64_t[]){16, D}, 2);
    const size_t lc_at_sum_2_part = lc_reserve(&lc_room, sizeof(float), (const int64_t[]){16, D}, 2);
    const size_t lc_at_sum_2_part_2 = lc_reserve(&lc_room, sizeof(float), (const int64_t[]){16, D}, 2);
    const size_t lc_own1 = lc_room;
    const size_t lc_at_kernel = lc_reserve(&lc_room, sizeof(float), (const int64_t[]){C, D}, 2);
    const size_t lc_at_u = lc_reserve(&lc_room, sizeof(float), (const int64_t[]){C}, 1);
    const size_t lc_at_u_saved = lc_reserve(&lc_room, sizeof(float), (const int64_t[]){n_iter, C}, 2);
    const size_t lc_at_product_5 = lc_reserve(&lc_room, sizeof(float), (const int64_t[]){C}, 1);
    const size_t lc_at_product_6 = lc_reserve(&lc_room, sizeof(float), (const int64_t[]){D}, 1);
    const size_t lc_at_divide = lc_reserve(&lc_room, sizeof(float), (const int64_t[]){D}, 1);
    const size_t lc_at_product_2 = lc_reserve(&lc_room, sizeof(float), (const int64_t[]){D}, 1);
    const size_t lc_at_v = lc_reserve(&lc_room, sizeof(float), (const int64_t[]){D}, 1);
    const size_t lc_at_product = lc_reserve(&lc_room, sizeof(float), (const int64_t[]){C}, 1);
    const size_t lc_at_d_ratio = lc_reserve(&lc_room, sizeof(float), (const int64_t[]){D}, 1);
    const size_t lc_at_d_u = lc_reserve(&lc_room, sizeof(float), (const int64_t[]){C}, 1);
    const size_t lc_at_product_7 = lc_reserve(&lc_room, sizeof(float), (const int64_t[]){C}, 1);
    const size_t lc_at_expand_dims = lc_reserve(&lc_room, sizeof(float), (const int64_t[]){D}, 1);
    const size_t lc_at_product_4 = lc_reserve(&lc_room, sizeof(float), (const int64_t[]){D}, 1);
    const size_t lc_at_ratio = lc_reserve(&lc_room, sizeof(float), (const int64_t[]){D}, 1);
    const size_t lc_at_product_3 = lc_reserve(&lc_room, sizeof(float), (const int64_t[]){C}, 1);
    const size_t lc_at_sum = lc_reserve(&lc_room, sizeof(float), (const int64_t[]){D}, 1);
    const size_t lc_at_product_8 = lc_reserve(&lc_room, sizeof(float), (const int64_t[]){1, C}, 2);
    const size_t lc_at_expand_dims_2 = lc_reserve(&lc_room, sizeof(float), (const int64_t[]){D}, 1);
    const size_t lc_step1 = lc_copies(&lc_room, lc_own1, lc_threads);
    char *const lc_arena = lc_take(lc_room);
    if (!lc_arena) { lc_fault.code = 1; goto lc_done; }
    float *restrict const kernel_2 = (float *)(lc_arena + lc_at_kernel_2);
    float *restrict const u_2 = (float *)(lc_arena + lc_at_u_2);
    float *restrict const u_saved_2 = (float *)(lc_arena + lc_at_u_saved_2);
    float *restrict const product_5_2 = (float *)(lc_arena + lc_at_product_5_2);
    float *restrict const product_6_2 = (float *)(lc_arena + lc_at_product_6_2);
    float *restrict const divide_2 = (float *)(lc_arena + lc_at_divide_2);
    float *restrict const product_2_2 = (float *)(lc_arena + lc_at_product_2_2);
    float *restrict const v_2 = (float *)(lc_arena + lc_at_v_2);
    float *restrict const product_9 = (float *)(lc_arena + lc_at_product_9);
    float *restrict const d_ratio_2 = (float *)(lc_arena + lc_at_d_ratio_2);
    float *restrict const d_u_2 = (float *)(lc_arena + lc_at_d_u_2);
    float *restrict const product_7_2 = (float *)(lc_arena + lc_at_product_7_2);
    float *restrict const expand_dims_3 = (float *)(lc_arena + lc_at_expand_dims_3);
    float *restrict const product_4_2 = (float *)(lc_arena + lc_at_product_4_2);
    float *restrict const ratio_2 = (float *)(lc_arena + lc_at_ratio_2);
    float *restrict const product_3_2 = (float *)(lc_arena + lc_at_product_3_2);
    float *restrict const sum_2 = (float *)(lc_arena + lc_at_sum_2);
    float *restrict const product_8_2 = (float *)(lc_arena + lc_at_product_8_2);
    float *restrict const expand_dims_2_2 = (float *)(lc_arena + lc_at_expand_dims_2_2);
    float *restrict const product_6_2_part = (float *)(lc_arena + lc_at_product_6_2_part);
    float *restrict const product_2_2_part = (float *)(lc_arena + lc_at_product_2_2_part);
    float *restrict const d_ratio_2_part = (float *)(lc_arena + lc_at_d_ratio_2_part);
    float *restrict const d_ratio_2_part_2 = (float *)(lc_arena + lc_at_d_ratio_2_part_2);
    float *restrict const product_4_2_part = (float *)(lc_arena + lc_at_product_4_2_part);
    float *restrict const sum_2_part = (float *)(lc_arena + lc_at_sum_2_part);
    float *restrict const sum_2_part_2 = (float *)(lc_arena + lc_at_sum_2_part_2);
    const float e = (float)(1.0 / (double)C);
    if (batch >= 4) {
        const int64_t chunks = lc_smaller(64, batch);
        #pragma omp parallel for schedule(static) num_threads(lc_threads) if(lc_threads > 1 && (21*C*D*batch*n_iter + 35*C*D*batch + 46*C*batch*n_iter + 35*D*batch*n_iter + 3*batch*(C / 4)*n_iter + 18*C*batch + 26*D*batch + 5*batch - 4*batch*(C / 4)) > 40000)
        for (int64_t chunk_27 = 0; chunk_27 < chunks; chunk_27++) {
            char *const lc_mine1 = lc_arena + (size_t)lc_thread() * lc_step1;
            float *restrict const kernel = (float *)(lc_mine1 + lc_at_kernel);
            float *restrict const u = (float *)(lc_mine1 + lc_at_u);
            float *restrict const u_saved = (float *)(lc_mine1 + lc_at_u_saved);
            float *restrict const product_5 = (float *)(lc_mine1 + lc_at_product_5);
            float *restrict const product_6 = (float *)(lc_mine1 + lc_at_product_6);
            float *restrict const divide = (float *)(lc_mine1 + lc_at_divide);
            float *restrict const product_2 = (float *)(lc_mine1 + lc_at_product_2);
            float *restrict const v = (float *)(lc_mine1 + lc_at_v);
            float *restrict const product = (float *)(lc_mine1 + lc_at_product);
            float *restrict const d_ratio = (float *)(lc_mine1 + lc_at_d_ratio);
            float *restrict const d_u = (float *)(lc_mine1 + lc_at_d_u);
            float *restrict const product_7 = (float *)(lc_mine1 + lc_at_product_7);
            float *restrict const expand_dims = (float *)(lc_mine1 + lc_at_expand_dims);
            float *restrict const product_4 = (float *)(lc_mine1 + lc_at_product_4);
            float *restrict const ratio = (float *)(lc_mine1 + lc_at_ratio);
            float *restrict const product_3 = (float *)(lc_mine1 + lc_at_product_3);
            float *restrict const sum = (float *)(lc_mine1 + lc_at_sum);
            float *restrict const product_8 = (float *)(lc_mine1 + lc_at_product_8);
            float *restrict const expand_dims_2 = (float *)(lc_mine1 + lc_at_expand_dims_2);
            const int64_t b_2_from = batch*chunk_27 / chunks;
            const int64_t b_2_to = (batch*chunk_27 + batch) / chunks;
            for (int64_t b_2 = b_2_from; b_2 < b_2_to; b_2++) {
                for (int64_t i = 0; i < C; i++) {
                    #pragma omp simd
                    for (int64_t j = 0; j < D; j++) {
                        kernel[i*D + j] = lc_expf((float)(-(double)lam) * cost[i*D + j]);
                    }
                    u[i] = e;
                }
                for (int64_t i_3 = 0; i_3 < n_iter; i_3++) {
                    #pragma omp simd
                    for (int64_t i_5 = 0; i_5 < D; i_5++) {
                        product_6[i_5] = 0.0f;
                    }
                    for (int64_t j_2 = 0; j_2 < C; j_2++) {
                        product_5[j_2] = 0.0f;
                        const float uv_2 = u[j_2];
                        u_saved[i_3*C + j_2] = uv_2;
                        const float uv = uv_2;
                        #pragma omp simd
                        for (int64_t i_6 = 0; i_6 < D; i_6++) {
                            product_6[i_6] += uv * kernel[j_2*D + i_6];
                        }
                    }
                    #pragma omp simd
                    for (int64_t i_7 = 0; i_7 < D; i_7++) {
                        divide[i_7] = b[b_2*D + i_7] / product_6[i_7];
                    }
                    const int64_t i_9x4_to = C / 4;
                    for (int64_t i_9x4 = 0; i_9x4 < i_9x4_to; i_9x4++) {
                        double wide = 0.0;
                        double wide_2 = 0.0;
                        double wide_3 = 0.0;
                        double wide_4 = 0.0;
                        const int64_t q_to = (D + 1023) / 1024;
                        for (int64_t q = 0; q < q_to; q++) {
                            float part = 0.0f;
                            float part_7 = 0.0f;
                            float part_8 = 0.0f;
                            float part_9 = 0.0f;
                            const int64_t j_4_2_to = lc_smaller(1024*q + 1024, D);
                            #pragma omp simd reduction(+:part, part_7, part_8, part_9)
                            for (int64_t j_4_2 = 1024*q; j_4_2 < j_4_2_to; j_4_2++) {
                                const float dividev = divide[j_4_2];
                                part += kernel[(4*i_9x4)*D + j_4_2] * dividev;
                                part_7 += kernel[(4*i_9x4 + 1)*D + j_4_2] * dividev;
                                part_8 += kernel[(4*i_9x4 + 2)*D + j_4_2] * dividev;
                                part_9 += kernel[(4*i_9x4 + 3)*D + j_4_2] * dividev;
                            }
                            wide += (double)part;
                            wide_2 += (double)part_7;
                            wide_3 += (double)part_8;
                            wide_4 += (double)part_9;
                        }
                        product_5[4*i_9x4] += (float)wide;
                        product_5[4*i_9x4 + 1] += (float)wide_2;
                        product_5[4*i_9x4 + 2] += (float)wide_3;
                        product_5[4*i_9x4 + 3] += (float)wide_4;
                        u[4*i_9x4] = a[b_2*C + 4*i_9x4] / product_5[4*i_9x4];
                        u[4*i_9x4 + 1] = a[b_2*C + 4*i_9x4 + 1] / product_5[4*i_9x4 + 1];
                        u[4*i_9x4 + 2] = a[b_2*C + 4*i_9x4 + 2] / product_5[4*i_9x4 + 2];
                        u[4*i_9x4 + 3] = a[b_2*C + 4*i_9x4 + 3] / product_5[4*i_9x4 + 3];
                    }
                    const int64_t i_9_from = 4*i_9x4_to;
                    for (int64_t i_9 = i_9_from; i_9 < C; i_9++) {
                        double wide_5 = 0.0;
                        const int64_t q_2_to = (D + 1023) / 1024;
                        for (int64_t q_2 = 0; q_2 < q_2_to; q_2++) {
                            float part_10 = 0.0f;
                            const int64_t j_4_6_to = lc_smaller(1024*q_2 + 1024, D);
                            #pragma omp simd reduction(+:part_10)
                            for (int64_t j_4_6 = 1024*q_2; j_4_6 < j_4_6_to; j_4_6++) {
                                part_10 += kernel[i_9*D + j_4_6] * divide[j_4_6];
                            }
                            wide_5 += (double)part_10;
                        }
                        product_5[i_9] += (float)wide_5;
                        u[i_9] = a[b_2*C + i_9] / product_5[i_9];
                    }
                }
                #pragma omp simd
                for (int64_t i_11 = 0; i_11 < D; i_11++) {
                    product_2[i_11] = 0.0f;
                }
                for (int64_t j_5 = 0; j_5 < C; j_5++) {
                    product[j_5] = 0.0f;
                    const float uv_3 = u[j_5];
                    #pragma omp simd
                    for (int64_t i_12 = 0; i_12 < D; i_12++) {
                        product_2[i_12] += uv_3 * kernel[j_5*D + i_12];
                    }
                }
                #pragma omp simd
                for (int64_t i_13 = 0; i_13 < D; i_13++) {
                    v[i_13] = b[b_2*D + i_13] / product_2[i_13];
                    d_ratio[i_13] = 0.0f;
                }
                const float dyv = dy[b_2];
                const int64_t i_15x4_to = C / 4;
                for (int64_t i_15x4 = 0; i_15x4 < i_15x4_to; i_15x4++) {
                    d_a[b_2*C + 4*i_15x4 + 3] = 0.0f;
                    product_7[4*i_15x4 + 3] = 0.0f;
                    d_a[b_2*C + 4*i_15x4 + 2] = 0.0f;
                    product_7[4*i_15x4 + 2] = 0.0f;
                    d_a[b_2*C + 4*i_15x4 + 1] = 0.0f;
                    product_7[4*i_15x4 + 1] = 0.0f;
                    product_7[4*i_15x4] = 0.0f;
                    d_a[b_2*C + 4*i_15x4] = 0.0f;
                    double wide_6 = 0.0;
                    double wide_7 = 0.0;
                    double wide_8 = 0.0;
                    double wide_9 = 0.0;
                    const float uv_4 = u[4*i_15x4];
                    const float uv_5 = u[4*i_15x4 + 1];
                    const float uv_6 = u[4*i_15x4 + 2];
                    const float uv_7 = u[4*i_15x4 + 3];
                    const int64_t q_3_to = (D + 1023) / 1024;
                    for (int64_t q_3 = 0; q_3 < q_3_to; q_3++) {
                        float part_11 = 0.0f;
                        float part_12 = 0.0f;
                        float part_13 = 0.0f;
                        float part_14 = 0.0f;
                        const int64_t j_6_2_to = lc_smaller(1024*q_3 + 1024, D);
                        #pragma omp simd reduction(+:part_11, part_12, part_13, part_14)
                        for (int64_t j_6_2 = 1024*q_3; j_6_2 < j_6_2_to; j_6_2++) {
                            const float e_2 = kernel[(4*i_15x4)*D + j_6_2] * cost[(4*i_15x4)*D + j_6_2];
                            const float vv = v[j_6_2];
                            part_11 += e_2 * vv;
                            d_ratio[j_6_2] += e_2 * (dyv * uv_4);
                            const float e_3 = kernel[(4*i_15x4 + 1)*D + j_6_2] * cost[(4*i_15x4 + 1)*D + j_6_2];
                            part_12 += e_3 * vv;
                            d_ratio[j_6_2] += e_3 * (dyv * uv_5);
                            const float e_4 = kernel[(4*i_15x4 + 2)*D + j_6_2] * cost[(4*i_15x4 + 2)*D + j_6_2];
                            part_13 += e_4 * vv;
                            d_ratio[j_6_2] += e_4 * (dyv * uv_6);
                            const float e_5 = kernel[(4*i_15x4 + 3)*D + j_6_2] * cost[(4*i_15x4 + 3)*D + j_6_2];
                            part_14 += e_5 * vv;
                            d_ratio[j_6_2] += e_5 * (dyv * uv_7);
                        }
                        wide_6 += (double)part_11;
                        wide_7 += (double)part_12;
                        wide_8 += (double)part_13;
                        wide_9 += (double)part_14;
                    }
                    product[4*i_15x4] += (float)wide_6;
                    product[4*i_15x4 + 1] += (float)wide_7;
                    product[4*i_15x4 + 2] += (float)wide_8;
                    product[4*i_15x4 + 3] += (float)wide_9;
                }
                const float dyv_2 = dyv;
                const int64_t i_15_from = 4*i_15x4_to;
                for (int64_t i_15 = i_15_from; i_15 < C; i_15++) {
                    product_7[i_15] = 0.0f;
                    d_a[b_2*C + i_15] = 0.0f;
                    double wide_10 = 0.0;
                    const float e_7 = dyv_2 * u[i_15];
                    const int64_t q_4_to = (D + 1023) / 1024;
                    for (int64_t q_4 = 0; q_4 < q_4_to; q_4++) {
                        float part_15 = 0.0f;
                        const int64_t j_6_6_to = lc_smaller(1024*q_4 + 1024, D);
                        #pragma omp simd reduction(+:part_15)
                        for (int64_t j_6_6 = 1024*q_4; j_6_6 < j_6_6_to; j_6_6++) {
                            const float e_6 = kernel[i_15*D + j_6_6] * cost[i_15*D + j_6_6];
                            part_15 += e_6 * v[j_6_6];
                            d_ratio[j_6_6] += e_6 * e_7;
                        }
                        wide_10 += (double)part_15;
                    }
                    product[i_15] += (float)wide_10;
                }
                #pragma omp simd
                for (int64_t i_19 = 0; i_19 < D; i_19++) {
                    const float d_ratiov = d_ratio[i_19];
                    const float product_2v = product_2[i_19];
                    d_b[b_2*D + i_19] = d_ratiov / product_2v;
                    expand_dims[i_19] = -((d_ratiov * v[i_19]) / product_2v);
                }
                const float dyv_3 = dyv;
                for (int64_t j_10x4 = 0; j_10x4 < i_15x4_to; j_10x4++) {
                    double wide_11 = 0.0;
                    double wide_12 = 0.0;
                    double wide_13 = 0.0;
                    double wide_14 = 0.0;
                    const int64_t q_5_to = (D + 1023) / 1024;
                    for (int64_t q_5 = 0; q_5 < q_5_to; q_5++) {
                        float part_16 = 0.0f;
                        float part_17 = 0.0f;
                        float part_18 = 0.0f;
                        float part_19 = 0.0f;
                        const int64_t k_3_to = lc_smaller(1024*q_5 + 1024, D);
                        #pragma omp simd reduction(+:part_16, part_17, part_18, part_19)
                        for (int64_t k_3 = 1024*q_5; k_3 < k_3_to; k_3++) {
                            const float expand_dimsv = expand_dims[k_3];
                            part_16 += expand_dimsv * kernel[(4*j_10x4)*D + k_3];
                            part_17 += expand_dimsv * kernel[(4*j_10x4 + 1)*D + k_3];
                            part_18 += expand_dimsv * kernel[(4*j_10x4 + 2)*D + k_3];
                            part_19 += expand_dimsv * kernel[(4*j_10x4 + 3)*D + k_3];
                        }
                        wide_11 += (double)part_16;
                        wide_12 += (double)part_17;
                        wide_13 += (double)part_18;
                        wide_14 += (double)part_19;
                    }
                    product_7[4*j_10x4] += (float)wide_11;
                    product_7[4*j_10x4 + 1] += (float)wide_12;
                    product_7[4*j_10x4 + 2] += (float)wide_13;
                    product_7[4*j_10x4 + 3] += (float)wide_14;
                    d_u[4*j_10x4] = (dyv_3 * product[4*j_10x4]) + product_7[4*j_10x4];
                    d_u[4*j_10x4 + 1] = (dyv_3 * product[4*j_10x4 + 1]) + product_7[4*j_10x4 + 1];
                    d_u[4*j_10x4 + 2] = (dyv_3 * product[4*j_10x4 + 2]) + product_7[4*j_10x4 + 2];
                    d_u[4*j_10x4 + 3] = (dyv_3 * product[4*j_10x4 + 3]) + product_7[4*j_10x4 + 3];
                }
                const float dyv_4 = dyv;
                for (int64_t j_10 = i_15_from; j_10 < C; j_10++) {
                    double wide_15 = 0.0;
                    const int64_t q_6_to = (D + 1023) / 1024;
                    for (int64_t q_6 = 0; q_6 < q_6_to; q_6++) {
                        float part_20 = 0.0f;
                        const int64_t k_7_to = lc_smaller(1024*q_6 + 1024, D);
                        #pragma omp simd reduction(+:part_20)
                        for (int64_t k_7 = 1024*q_6; k_7 < k_7_to; k_7++) {
                            part_20 += expand_dims[k_7] * kernel[j_10*D + k_7];
                        }
                        wide_15 += (double)part_20;
                    }
                    product_7[j_10] += (float)wide_15;
                    d_u[j_10] = (dyv_4 * product[j_10]) + product_7[j_10];
                }
                for (int64_t v_2_step = 0; v_2_step < n_iter; v_2_step++) {
                    #pragma omp simd
                    for (int64_t i_21 = 0; i_21 < D; i_21++) {
                        product_4[i_21] = 0.0f;
                    }
                    for (int64_t j_11 = 0; j_11 < C; j_11++) {
                        product_3[j_11] = 0.0f;
                        const float u_savedv = u_saved[(n_iter - v_2_step - 1)*C + j_11];
                        #pragma omp simd
                        for (int64_t i_22 = 0; i_22 < D; i_22++) {
                            product_4[i_22] += u_savedv * kernel[j_11*D + i_22];
                        }
                    }
                    #pragma omp simd
                    for (int64_t i_23 = 0; i_23 < D; i_23++) {
                        ratio[i_23] = b[b_2*D + i_23] / product_4[i_23];
                        sum[i_23] = 0.0f;
                    }
                    for (int64_t i_25x4 = 0; i_25x4 < i_15x4_to; i_25x4++) {
                        product_8[4*i_25x4 + 3] = 0.0f;
                        product_8[4*i_25x4 + 2] = 0.0f;
                        product_8[4*i_25x4 + 1] = 0.0f;
                        product_8[4*i_25x4] = 0.0f;
                        double wide_16 = 0.0;
                        const int64_t q_7_to = (D + 1023) / 1024;
                        for (int64_t q_7 = 0; q_7 < q_7_to; q_7++) {
                            float part_21 = 0.0f;
                            const int64_t j_12_2_to = lc_smaller(1024*q_7 + 1024, D);
                            #pragma omp simd reduction(+:part_21)
                            for (int64_t j_12_2 = 1024*q_7; j_12_2 < j_12_2_to; j_12_2++) {
                                part_21 += kernel[(4*i_25x4)*D + j_12_2] * ratio[j_12_2];
                            }
                            wide_16 += (double)part_21;
                        }
                        product_3[4*i_25x4] += (float)wide_16;
                        const float d_uv = d_u[4*i_25x4];
                        const float product_3v = product_3[4*i_25x4];
                        const float part_2 = (d_uv * (a[b_2*C + 4*i_25x4] / product_3v)) / product_3v;
                        double wide_17 = 0.0;
                        for (int64_t q_8 = 0; q_8 < q_7_to; q_8++) {
                            float part_22 = 0.0f;
                            const int64_t j_13_2_to = lc_smaller(1024*q_8 + 1024, D);
                            #pragma omp simd reduction(+:part_22)
                            for (int64_t j_13_2 = 1024*q_8; j_13_2 < j_13_2_to; j_13_2++) {
                                sum[j_13_2] += kernel[(4*i_25x4)*D + j_13_2] * part_2;
                                part_22 += kernel[(4*i_25x4 + 1)*D + j_13_2] * ratio[j_13_2];
                            }
                            wide_17 += (double)part_22;
                        }
                        product_3[4*i_25x4 + 1] += (float)wide_17;
                        d_a[b_2*C + 4*i_25x4] += d_uv / product_3[4*i_25x4];
                        const float d_uv_2 = d_u[4*i_25x4 + 1];
                        const float product_3v_2 = product_3[4*i_25x4 + 1];
                        const float part_3 = (d_uv_2 * (a[b_2*C + 4*i_25x4 + 1] / product_3v_2)) / product_3v_2;
                        double wide_18 = 0.0;
                        for (int64_t q_9 = 0; q_9 < q_7_to; q_9++) {
                            float part_23 = 0.0f;
                            const int64_t j_13_3_to = lc_smaller(1024*q_9 + 1024, D);
                            #pragma omp simd reduction(+:part_23)
                            for (int64_t j_13_3 = 1024*q_9; j_13_3 < j_13_3_to; j_13_3++) {
                                sum[j_13_3] += kernel[(4*i_25x4 + 1)*D + j_13_3] * part_3;
                                part_23 += kernel[(4*i_25x4 + 2)*D + j_13_3] * ratio[j_13_3];
                            }
                            wide_18 += (double)part_23;
                        }
                        product_3[4*i_25x4 + 2] += (float)wide_18;
                        d_a[b_2*C + 4*i_25x4 + 1] += d_uv_2 / product_3[4*i_25x4 + 1];
                        const float d_uv_3 = d_u[4*i_25x4 + 2];
                        const float product_3v_3 = product_3[4*i_25x4 + 2];
                        const float part_4 = (d_uv_3 * (a[b_2*C + 4*i_25x4 + 2] / product_3v_3)) / product_3v_3;
                        double wide_19 = 0.0;
                        for (int64_t q_10 = 0; q_10 < q_7_to; q_10++) {
                            float part_24 = 0.0f;
                            const int64_t j_13_4_to = lc_smaller(1024*q_10 + 1024, D);
                            #pragma omp simd reduction(+:part_24)
                            for (int64_t j_13_4 = 1024*q_10; j_13_4 < j_13_4_to; j_13_4++) {
                                sum[j_13_4] += kernel[(4*i_25x4 + 2)*D + j_13_4] * part_4;
                                part_24 += kernel[(4*i_25x4 + 3)*D + j_13_4] * ratio[j_13_4];
                            }
                            wide_19 += (double)part_24;
                        }
                        product_3[4*i_25x4 + 3] += (float)wide_19;
                        d_a[b_2*C + 4*i_25x4 + 2] += d_uv_3 / product_3[4*i_25x4 + 2];
                        const float d_uv_4 = d_u[4*i_25x4 + 3];
                        const float product_3v_4 = product_3[4*i_25x4 + 3];
                        const float part_5 = (d_uv_4 * (a[b_2*C + 4*i_25x4 + 3] / product_3v_4)) / product_3v_4;
                        #pragma omp simd
                        for (int64_t j_13_5 = 0; j_13_5 < D; j_13_5++) {
                            sum[j_13_5] += kernel[(4*i_25x4 + 3)*D + j_13_5] * part_5;
                        }
                        d_a[b_2*C + 4*i_25x4 + 3] += d_uv_4 / product_3v_4;
                    }
                    for (int64_t i_25 = i_15_from; i_25 < C; i_25++) {
                        product_8[i_25] = 0.0f;
                        double wide_20 = 0.0;
                        const int64_t q_11_to = (D + 1023) / 1024;
                        for (int64_t q_11 = 0; q_11 < q_11_to; q_11++) {
                            float part_25 = 0.0f;
                            const int64_t j_12_6_to = lc_smaller(1024*q_11 + 1024, D);
                            #pragma omp simd reduction(+:part_25)
                            for (int64_t j_12_6 = 1024*q_11; j_12_6 < j_12_6_to; j_12_6++) {
                                part_25 += kernel[i_25*D + j_12_6] * ratio[j_12_6];
                            }
                            wide_20 += (double)part_25;
                        }
                        product_3[i_25] += (float)wide_20;
                        const float d_uv_5 = d_u[i_25];
                        const float product_3v_5 = product_3[i_25];
                        const float part_6 = (d_uv_5 * (a[b_2*C + i_25] / product_3v_5)) / product_3v_5;
                        #pragma omp simd
                        for (int64_t j_13_6 = 0; j_13_6 < D; j_13_6++) {
                            sum[j_13_6] += kernel[i_25*D + j_13_6] * part_6;
                        }
                        d_a[b_2*C + i_25] += d_uv_5 / product_3v_5;
                    }
                    #pragma omp simd
                    for (int64_t i_32 = 0; i_32 < D; i_32++) {
                        const float e_8 = -sum[i_32];
                        const float product_4v = product_4[i_32];
                        d_b[b_2*D + i_32] += e_8 / product_4v;
                        expand_dims_2[i_32] = -((e_8 * ratio[i_32]) / product_4v);
                    }
                    for (int64_t j_16x4 = 0; j_16x4 < i_15x4_to; j_16x4++) {
                        double wide_21 = 0.0;
                        double wide_22 = 0.0;
                        double wide_23 = 0.0;
                        double wide_24 = 0.0;
                        const int64_t q_12_to = (D + 1023) / 1024;
                        for (int64_t q_12 = 0; q_12 < q_12_to; q_12++) {
                            float part_26 = 0.0f;
                            float part_27 = 0.0f;
                            float part_28 = 0.0f;
                            float part_29 = 0.0f;
                            const int64_t k_2_2_to = lc_smaller(1024*q_12 + 1024, D);
                            #pragma omp simd reduction(+:part_26, part_27, part_28, part_29)
                            for (int64_t k_2_2 = 1024*q_12; k_2_2 < k_2_2_to; k_2_2++) {
                                const float expand_dims_2v = expand_dims_2[k_2_2];
                                part_26 += expand_dims_2v * kernel[(4*j_16x4)*D + k_2_2];
                                part_27 += expand_dims_2v * kernel[(4*j_16x4 + 1)*D + k_2_2];
                                part_28 += expand_dims_2v * kernel[(4*j_16x4 + 2)*D + k_2_2];
                                part_29 += expand_dims_2v * kernel[(4*j_16x4 + 3)*D + k_2_2];
                            }
                            wide_21 += (double)part_26;
                            wide_22 += (double)part_27;
                            wide_23 += (double)part_28;
                            wide_24 += (double)part_29;
                        }
                        product_8[4*j_16x4] += (float)wide_21;
                        product_8[4*j_16x4 + 1] += (float)wide_22;
                        product_8[4*j_16x4 + 2] += (float)wide_23;
                        product_8[4*j_16x4 + 3] += (float)wide_24;
                        d_u[4*j_16x4] = product_8[4*j_16x4];
                        u[4*j_16x4] = u_saved[(n_iter - v_2_step - 1)*C + 4*j_16x4];
                        d_u[4*j_16x4 + 1] = product_8[4*j_16x4 + 1];
                        u[4*j_16x4 + 1] = u_saved[(n_iter - v_2_step - 1)*C + 4*j_16x4 + 1];
                        d_u[4*j_16x4 + 2] = product_8[4*j_16x4 + 2];
                        u[4*j_16x4 + 2] = u_saved[(n_iter - v_2_step - 1)*C + 4*j_16x4 + 2];
                        d_u[4*j_16x4 + 3] = product_8[4*j_16x4 + 3];
                        u[4*j_16x4 + 3] = u_saved[(n_iter - v_2_step - 1)*C + 4*j_16x4 + 3];
                    }
                    for (int64_t j_16 = i_15_from; j_16 < C; j_16++) {
                        double wide_25 = 0.0;
                        const int64_t q_13_to = (D + 1023) / 1024;
                        for (int64_t q_13 = 0; q_13 < q_13_to; q_13++) {
                            float part_30 = 0.0f;
                            const int64_t k_2_6_to = lc_smaller(1024*q_13 + 1024, D);
                            #pragma omp simd reduction(+:part_30)
                            for (int64_t k_2_6 = 1024*q_13; k_2_6 < k_2_6_to; k_2_6++) {
                                part_30 += expand_dims_2[k_2_6] * kernel[j_16*D + k_2_6];
                            }
                            wide_25 += (double)part_30;
                        }
                        product_8[j_16] += (float)wide_25;
                        d_u[j_16] = product_8[j_16];
                        u[j_16] = u_saved[(n_iter - v_2_step - 1)*C + j_16];
                    }
                }
            }
        }
    } else {
        for (int64_t b_2 = 0; b_2 < batch; b_2++) {
            const int64_t chunks_2 = lc_smaller(64, C);
            #pragma omp parallel for schedule(static) num_threads(lc_threads) if(lc_threads > 1 && (14*C*D + C) > 40000)
            for (int64_t chunk = 0; chunk < chunks_2; chunk++) {
                const int64_t i_from = C*chunk / chunks_2;
                const int64_t i_to = (C*chunk + C) / chunks_2;
                for (int64_t i = i_from; i < i_to; i++) {
                    #pragma omp simd
                    for (int64_t j = 0; j < D; j++) {
                        kernel_2[i*D + j] = lc_expf((float)(-(double)lam) * cost[i*D + j]);
                    }
                    u_2[i] = e;
                }
            }
            for (int64_t i_3 = 0; i_3 < n_iter; i_3++) {
                #pragma omp simd
                for (int64_t i_5 = 0; i_5 < D; i_5++) {
                    product_6_2[i_5] = 0.0f;
                }
                const int64_t chunks_3 = lc_smaller(lc_larger((C / 4), lc_smaller(4, C)), lc_smaller(16, lc_larger((2097152 / (D + 1)), 1)));
                #pragma omp parallel for schedule(static) num_threads(lc_threads) if(lc_threads > 1 && (3*C*D + 5*C) > 40000)
                for (int64_t chunk_2 = 0; chunk_2 < chunks_3; chunk_2++) {
                    #pragma omp simd
                    for (int64_t i_2 = 0; i_2 < D; i_2++) {
                        product_6_2_part[chunk_2*D + i_2] = 0.0f;
                    }
                    const int64_t j_2_from = C*chunk_2 / chunks_3;
                    const int64_t j_2_to = (C*chunk_2 + C) / chunks_3;
                    for (int64_t j_2 = j_2_from; j_2 < j_2_to; j_2++) {
                        product_5_2[j_2] = 0.0f;
                        const float uv_2_2 = u_2[j_2];
                        u_saved_2[i_3*C + j_2] = uv_2_2;
                        const float uv_8 = uv_2_2;
                        #pragma omp simd
                        for (int64_t i_6 = 0; i_6 < D; i_6++) {
                            product_6_2_part[chunk_2*D + i_6] += uv_8 * kernel_2[j_2*D + i_6];
                        }
                    }
                }
                for (int64_t chunk_3 = 0; chunk_3 < chunks_3; chunk_3++) {
                    #pragma omp simd
                    for (int64_t i_4 = 0; i_4 < D; i_4++) {
                        product_6_2[i_4] += product_6_2_part[chunk_3*D + i_4];
                    }
                }
                const int64_t chunks_4 = lc_smaller(((D + 2047) / 2048), 64);
                #pragma omp parallel for schedule(static) num_threads(lc_threads) if(lc_threads > 1 && 7*D > 40000)
                for (int64_t chunk_4 = 0; chunk_4 < chunks_4; chunk_4++) {
                    const int64_t i_7_from = lc_smaller(64*chunk_4*(D / (64*chunks_4)) + 64*chunk_4, D);
                    const int64_t i_7_to = lc_smaller(64*chunk_4*(D / (64*chunks_4)) + 64*chunk_4 + 64*(D / (64*chunks_4)) + 64, D);
                    #pragma omp simd
                    for (int64_t i_7 = i_7_from; i_7 < i_7_to; i_7++) {
                        divide_2[i_7] = b[b_2*D + i_7] / product_6_2[i_7];
                    }
                }
                const int64_t chunks_5 = lc_smaller((C / 4), 64);
                #pragma omp parallel for schedule(static) num_threads(lc_threads) if(lc_threads > 1 && (16*D*(C / 4) + 36*(C / 4)) > 40000)
                for (int64_t chunk_5 = 0; chunk_5 < chunks_5; chunk_5++) {
                    const int64_t i_9x4_from = chunk_5*(C / 4) / chunks_5;
                    const int64_t i_9x4_to_2 = (chunk_5*(C / 4) + (C / 4)) / chunks_5;
                    for (int64_t i_9x4 = i_9x4_from; i_9x4 < i_9x4_to_2; i_9x4++) {
                        double wide_26 = 0.0;
                        double wide_2_2 = 0.0;
                        double wide_3_2 = 0.0;
                        double wide_4_2 = 0.0;
                        const int64_t q_to_2 = (D + 1023) / 1024;
                        for (int64_t q = 0; q < q_to_2; q++) {
                            float part_31 = 0.0f;
                            float part_7_2 = 0.0f;
                            float part_8_2 = 0.0f;
                            float part_9_2 = 0.0f;
                            const int64_t j_4_2_to_2 = lc_smaller(1024*q + 1024, D);
                            #pragma omp simd reduction(+:part_31, part_7_2, part_8_2, part_9_2)
                            for (int64_t j_4_2 = 1024*q; j_4_2 < j_4_2_to_2; j_4_2++) {
                                const float dividev_2 = divide_2[j_4_2];
                                part_31 += kernel_2[(4*i_9x4)*D + j_4_2] * dividev_2;
                                part_7_2 += kernel_2[(4*i_9x4 + 1)*D + j_4_2] * dividev_2;
                                part_8_2 += kernel_2[(4*i_9x4 + 2)*D + j_4_2] * dividev_2;
                                part_9_2 += kernel_2[(4*i_9x4 + 3)*D + j_4_2] * dividev_2;
                            }
                            wide_26 += (double)part_31;
                            wide_2_2 += (double)part_7_2;
                            wide_3_2 += (double)part_8_2;
                            wide_4_2 += (double)part_9_2;
                        }
                        product_5_2[4*i_9x4] += (float)wide_26;
                        product_5_2[4*i_9x4 + 1] += (float)wide_2_2;
                        product_5_2[4*i_9x4 + 2] += (float)wide_3_2;
                        product_5_2[4*i_9x4 + 3] += (float)wide_4_2;
                        u_2[4*i_9x4] = a[b_2*C + 4*i_9x4] / product_5_2[4*i_9x4];
                        u_2[4*i_9x4 + 1] = a[b_2*C + 4*i_9x4 + 1] / product_5_2[4*i_9x4 + 1];
                        u_2[4*i_9x4 + 2] = a[b_2*C + 4*i_9x4 + 2] / product_5_2[4*i_9x4 + 2];
                        u_2[4*i_9x4 + 3] = a[b_2*C + 4*i_9x4 + 3] / product_5_2[4*i_9x4 + 3];
                    }
                }
                const int64_t chunks_6 = lc_smaller(64, C - 4*(C / 4));
                #pragma omp parallel for schedule(static) num_threads(lc_threads) if(lc_threads > 1 && (4*C*D + 9*C - 16*D*(C / 4) - 36*(C / 4)) > 40000)
                for (int64_t chunk_6 = 0; chunk_6 < chunks_6; chunk_6++) {
                    const int64_t i_9_from_2 = lc_floor_div_i64(C*chunk_6 - 4*chunk_6*(C / 4), chunks_6) + 4*(C / 4);
                    const int64_t i_9_to = lc_floor_div_i64(C*chunk_6 + C - 4*chunk_6*(C / 4) - 4*(C / 4), chunks_6) + 4*(C / 4);
                    for (int64_t i_9 = i_9_from_2; i_9 < i_9_to; i_9++) {
                        double wide_5_2 = 0.0;
                        const int64_t q_2_to_2 = (D + 1023) / 1024;
                        for (int64_t q_2 = 0; q_2 < q_2_to_2; q_2++) {
                            float part_10_2 = 0.0f;
                            const int64_t j_4_6_to_2 = lc_smaller(1024*q_2 + 1024, D);
                            #pragma omp simd reduction(+:part_10_2)
                            for (int64_t j_4_6 = 1024*q_2; j_4_6 < j_4_6_to_2; j_4_6++) {
                                part_10_2 += kernel_2[i_9*D + j_4_6] * divide_2[j_4_6];
                            }
                            wide_5_2 += (double)part_10_2;
                        }
                        product_5_2[i_9] += (float)wide_5_2;
                        u_2[i_9] = a[b_2*C + i_9] / product_5_2[i_9];
                    }
                }
            }
            #pragma omp simd
            for (int64_t i_11 = 0; i_11 < D; i_11++) {
                product_2_2[i_11] = 0.0f;
            }
            const int64_t chunks_7 = lc_smaller(lc_larger((C / 4), lc_smaller(4, C)), lc_smaller(16, lc_larger((2097152 / (D + 1)), 1)));
            #pragma omp parallel for schedule(static) num_threads(lc_threads) if(lc_threads > 1 && (3*C*D + 3*C) > 40000)
            for (int64_t chunk_7 = 0; chunk_7 < chunks_7; chunk_7++) {
                #pragma omp simd
                for (int64_t i_8 = 0; i_8 < D; i_8++) {
                    product_2_2_part[chunk_7*D + i_8] = 0.0f;
                }
                const int64_t j_5_from = C*chunk_7 / chunks_7;
                const int64_t j_5_to = (C*chunk_7 + C) / chunks_7;
                for (int64_t j_5 = j_5_from; j_5 < j_5_to; j_5++) {
                    product_9[j_5] = 0.0f;
                    const float uv_3_2 = u_2[j_5];
                    #pragma omp simd
                    for (int64_t i_12 = 0; i_12 < D; i_12++) {
                        product_2_2_part[chunk_7*D + i_12] += uv_3_2 * kernel_2[j_5*D + i_12];
                    }
                }
            }
            for (int64_t chunk_8 = 0; chunk_8 < chunks_7; chunk_8++) {
                #pragma omp simd
                for (int64_t i_10 = 0; i_10 < D; i_10++) {
                    product_2_2[i_10] += product_2_2_part[chunk_8*D + i_10];
                }
            }
            const int64_t chunks_8 = lc_smaller(((D + 2047) / 2048), 64);
            #pragma omp parallel for schedule(static) num_threads(lc_threads) if(lc_threads > 1 && 8*D > 40000)
            for (int64_t chunk_9 = 0; chunk_9 < chunks_8; chunk_9++) {
                const int64_t i_13_from = lc_smaller(64*chunk_9*(D / (64*chunks_8)) + 64*chunk_9, D);
                const int64_t i_13_to = lc_smaller(64*chunk_9*(D / (64*chunks_8)) + 64*chunk_9 + 64*(D / (64*chunks_8)) + 64, D);
                #pragma omp simd
                for (int64_t i_13 = i_13_from; i_13 < i_13_to; i_13++) {
                    v_2[i_13] = b[b_2*D + i_13] / product_2_2[i_13];
                    d_ratio_2[i_13] = 0.0f;
                }
            }
            const float dyv_5 = dy[b_2];
            const int64_t chunks_9 = lc_smaller(lc_larger(((C / 4) / 4), lc_smaller((C / 4), 4)), lc_smaller(16, lc_larger((2097152 / (D + 1)), 1)));
            #pragma omp parallel for schedule(static) num_threads(lc_threads) if(lc_threads > 1 && (56*D*(C / 4) + 24*(C / 4)) > 40000)
            for (int64_t chunk_10 = 0; chunk_10 < chunks_9; chunk_10++) {
                #pragma omp simd
                for (int64_t i_14 = 0; i_14 < D; i_14++) {
                    d_ratio_2_part[chunk_10*D + i_14] = 0.0f;
                }
                const int64_t i_15x4_from = chunk_10*(C / 4) / chunks_9;
                const int64_t i_15x4_to_2 = (chunk_10*(C / 4) + (C / 4)) / chunks_9;
                for (int64_t i_15x4 = i_15x4_from; i_15x4 < i_15x4_to_2; i_15x4++) {
                    d_a[b_2*C + 4*i_15x4 + 3] = 0.0f;
                    product_7_2[4*i_15x4 + 3] = 0.0f;
                    d_a[b_2*C + 4*i_15x4 + 2] = 0.0f;
                    product_7_2[4*i_15x4 + 2] = 0.0f;
                    d_a[b_2*C + 4*i_15x4 + 1] = 0.0f;
                    product_7_2[4*i_15x4 + 1] = 0.0f;
                    product_7_2[4*i_15x4] = 0.0f;
                    d_a[b_2*C + 4*i_15x4] = 0.0f;
                    double wide_6_2 = 0.0;
                    double wide_7_2 = 0.0;
                    double wide_8_2 = 0.0;
                    double wide_9_2 = 0.0;
                    const float uv_4_2 = u_2[4*i_15x4];
                    const float uv_5_2 = u_2[4*i_15x4 + 1];
                    const float uv_6_2 = u_2[4*i_15x4 + 2];
                    const float uv_7_2 = u_2[4*i_15x4 + 3];
                    const int64_t q_3_to_2 = (D + 1023) / 1024;
                    for (int64_t q_3 = 0; q_3 < q_3_to_2; q_3++) {
                        float part_11_2 = 0.0f;
                        float part_12_2 = 0.0f;
                        float part_13_2 = 0.0f;
                        float part_14_2 = 0.0f;
                        const int64_t j_6_2_to_2 = lc_smaller(1024*q_3 + 1024, D);
                        #pragma omp simd reduction(+:part_11_2, part_12_2, part_13_2, part_14_2)
                        for (int64_t j_6_2 = 1024*q_3; j_6_2 < j_6_2_to_2; j_6_2++) {
                            const float e_2_2 = kernel_2[(4*i_15x4)*D + j_6_2] * cost[(4*i_15x4)*D + j_6_2];
                            const float vv_2 = v_2[j_6_2];
                            part_11_2 += e_2_2 * vv_2;
                            d_ratio_2_part[chunk_10*D + j_6_2] += e_2_2 * (dyv_5 * uv_4_2);
                            const float e_3_2 = kernel_2[(4*i_15x4 + 1)*D + j_6_2] * cost[(4*i_15x4 + 1)*D + j_6_2];
                            part_12_2 += e_3_2 * vv_2;
                            d_ratio_2_part[chunk_10*D + j_6_2] += e_3_2 * (dyv_5 * uv_5_2);
                            const float e_4_2 = kernel_2[(4*i_15x4 + 2)*D + j_6_2] * cost[(4*i_15x4 + 2)*D + j_6_2];
                            part_13_2 += e_4_2 * vv_2;
                            d_ratio_2_part[chunk_10*D + j_6_2] += e_4_2 * (dyv_5 * uv_6_2);
                            const float e_5_2 = kernel_2[(4*i_15x4 + 3)*D + j_6_2] * cost[(4*i_15x4 + 3)*D + j_6_2];
                            part_14_2 += e_5_2 * vv_2;
                            d_ratio_2_part[chunk_10*D + j_6_2] += e_5_2 * (dyv_5 * uv_7_2);
                        }
                        wide_6_2 += (double)part_11_2;
                        wide_7_2 += (double)part_12_2;
                        wide_8_2 += (double)part_13_2;
                        wide_9_2 += (double)part_14_2;
                    }
                    product_9[4*i_15x4] += (float)wide_6_2;
                    product_9[4*i_15x4 + 1] += (float)wide_7_2;
                    product_9[4*i_15x4 + 2] += (float)wide_8_2;
                    product_9[4*i_15x4 + 3] += (float)wide_9_2;
                }
            }
            for (int64_t chunk_11 = 0; chunk_11 < chunks_9; chunk_11++) {
                #pragma omp simd
                for (int64_t i_16 = 0; i_16 < D; i_16++) {
                    d_ratio_2[i_16] += d_ratio_2_part[chunk_11*D + i_16];
                }
            }
            const float dyv_2_2 = dyv_5;
            const int64_t chunks_10 = lc_smaller(lc_larger(((C - 4*(C / 4)) / 4), lc_smaller(4, C - 4*(C / 4))), lc_smaller(16, lc_larger((2097152 / (D + 1)), 1)));
            #pragma omp parallel for schedule(static) num_threads(lc_threads) if(lc_threads > 1 && (14*C*D + 7*C - 56*D*(C / 4) - 28*(C / 4)) > 40000)
            for (int64_t chunk_12 = 0; chunk_12 < chunks_10; chunk_12++) {
                #pragma omp simd
                for (int64_t i_17 = 0; i_17 < D; i_17++) {
                    d_ratio_2_part_2[chunk_12*D + i_17] = 0.0f;
                }
                const int64_t i_15_from_2 = lc_floor_div_i64(C*chunk_12 - 4*chunk_12*(C / 4), chunks_10) + 4*(C / 4);
                const int64_t i_15_to = lc_floor_div_i64(C*chunk_12 + C - 4*chunk_12*(C / 4) - 4*(C / 4), chunks_10) + 4*(C / 4);
                for (int64_t i_15 = i_15_from_2; i_15 < i_15_to; i_15++) {
                    product_7_2[i_15] = 0.0f;
                    d_a[b_2*C + i_15] = 0.0f;
                    double wide_10_2 = 0.0;
                    const float e_7_2 = dyv_2_2 * u_2[i_15];
                    const int64_t q_4_to_2 = (D + 1023) / 1024;
                    for (int64_t q_4 = 0; q_4 < q_4_to_2; q_4++) {
                        float part_15_2 = 0.0f;
                        const int64_t j_6_6_to_2 = lc_smaller(1024*q_4 + 1024, D);
                        #pragma omp simd reduction(+:part_15_2)
                        for (int64_t j_6_6 = 1024*q_4; j_6_6 < j_6_6_to_2; j_6_6++) {
                            const float e_6_2 = kernel_2[i_15*D + j_6_6] * cost[i_15*D + j_6_6];
                            part_15_2 += e_6_2 * v_2[j_6_6];
                            d_ratio_2_part_2[chunk_12*D + j_6_6] += e_6_2 * e_7_2;
                        }
                        wide_10_2 += (double)part_15_2;
                    }
                    product_9[i_15] += (float)wide_10_2;
                }
            }
            for (int64_t chunk_13 = 0; chunk_13 < chunks_10; chunk_13++) {
                #pragma omp simd
                for (int64_t i_18 = 0; i_18 < D; i_18++) {
                    d_ratio_2[i_18] += d_ratio_2_part_2[chunk_13*D + i_18];
                }
            }
            #pragma omp parallel for schedule(static) num_threads(lc_threads) if(lc_threads > 1 && 17*D > 40000)
            for (int64_t chunk_14 = 0; chunk_14 < chunks_8; chunk_14++) {
                const int64_t i_19_from = lc_smaller(64*chunk_14*(D / (64*chunks_8)) + 64*chunk_14, D);
                const int64_t i_19_to = lc_smaller(64*chunk_14*(D / (64*chunks_8)) + 64*chunk_14 + 64*(D / (64*chunks_8)) + 64, D);
                #pragma omp simd
                for (int64_t i_19 = i_19_from; i_19 < i_19_to; i_19++) {
                    const float d_ratiov_2 = d_ratio_2[i_19];
                    const float product_2v_2 = product_2_2[i_19];
                    d_b[b_2*D + i_19] = d_ratiov_2 / product_2v_2;
                    expand_dims_3[i_19] = -((d_ratiov_2 * v_2[i_19]) / product_2v_2);
                }
            }
            const float dyv_3_2 = dyv_5;
            const int64_t chunks_11 = lc_smaller((C / 4), 64);
            #pragma omp parallel for schedule(static) num_threads(lc_threads) if(lc_threads > 1 && (16*D*(C / 4) + 28*(C / 4)) > 40000)
            for (int64_t chunk_15 = 0; chunk_15 < chunks_11; chunk_15++) {
                const int64_t j_10x4_from = chunk_15*(C / 4) / chunks_11;
                const int64_t j_10x4_to = (chunk_15*(C / 4) + (C / 4)) / chunks_11;
                for (int64_t j_10x4 = j_10x4_from; j_10x4 < j_10x4_to; j_10x4++) {
                    double wide_11_2 = 0.0;
                    double wide_12_2 = 0.0;
                    double wide_13_2 = 0.0;
                    double wide_14_2 = 0.0;
                    const int64_t q_5_to_2 = (D + 1023) / 1024;
                    for (int64_t q_5 = 0; q_5 < q_5_to_2; q_5++) {
                        float part_16_2 = 0.0f;
                        float part_17_2 = 0.0f;
                        float part_18_2 = 0.0f;
                        float part_19_2 = 0.0f;
                        const int64_t k_3_to_2 = lc_smaller(1024*q_5 + 1024, D);
                        #pragma omp simd reduction(+:part_16_2, part_17_2, part_18_2, part_19_2)
                        for (int64_t k_3 = 1024*q_5; k_3 < k_3_to_2; k_3++) {
                            const float expand_dimsv_2 = expand_dims_3[k_3];
                            part_16_2 += expand_dimsv_2 * kernel_2[(4*j_10x4)*D + k_3];
                            part_17_2 += expand_dimsv_2 * kernel_2[(4*j_10x4 + 1)*D + k_3];
                            part_18_2 += expand_dimsv_2 * kernel_2[(4*j_10x4 + 2)*D + k_3];
                            part_19_2 += expand_dimsv_2 * kernel_2[(4*j_10x4 + 3)*D + k_3];
                        }
                        wide_11_2 += (double)part_16_2;
                        wide_12_2 += (double)part_17_2;
                        wide_13_2 += (double)part_18_2;
                        wide_14_2 += (double)part_19_2;
                    }
                    product_7_2[4*j_10x4] += (float)wide_11_2;
                    product_7_2[4*j_10x4 + 1] += (float)wide_12_2;
                    product_7_2[4*j_10x4 + 2] += (float)wide_13_2;
                    product_7_2[4*j_10x4 + 3] += (float)wide_14_2;
                    d_u_2[4*j_10x4] = (dyv_3_2 * product_9[4*j_10x4]) + product_7_2[4*j_10x4];
                    d_u_2[4*j_10x4 + 1] = (dyv_3_2 * product_9[4*j_10x4 + 1]) + product_7_2[4*j_10x4 + 1];
                    d_u_2[4*j_10x4 + 2] = (dyv_3_2 * product_9[4*j_10x4 + 2]) + product_7_2[4*j_10x4 + 2];
                    d_u_2[4*j_10x4 + 3] = (dyv_3_2 * product_9[4*j_10x4 + 3]) + product_7_2[4*j_10x4 + 3];
                }
            }
            const float dyv_4_2 = dyv_5;
            const int64_t chunks_12 = lc_smaller(64, C - 4*(C / 4));
            #pragma omp parallel for schedule(static) num_threads(lc_threads) if(lc_threads > 1 && (4*C*D + 7*C - 16*D*(C / 4) - 28*(C / 4)) > 40000)
            for (int64_t chunk_16 = 0; chunk_16 < chunks_12; chunk_16++) {
                const int64_t j_10_from = lc_floor_div_i64(C*chunk_16 - 4*chunk_16*(C / 4), chunks_12) + 4*(C / 4);
                const int64_t j_10_to = lc_floor_div_i64(C*chunk_16 + C - 4*chunk_16*(C / 4) - 4*(C / 4), chunks_12) + 4*(C / 4);
                for (int64_t j_10 = j_10_from; j_10 < j_10_to; j_10++) {
                    double wide_15_2 = 0.0;
                    const int64_t q_6_to_2 = (D + 1023) / 1024;
                    for (int64_t q_6 = 0; q_6 < q_6_to_2; q_6++) {
                        float part_20_2 = 0.0f;
                        const int64_t k_7_to_2 = lc_smaller(1024*q_6 + 1024, D);
                        #pragma omp simd reduction(+:part_20_2)
                        for (int64_t k_7 = 1024*q_6; k_7 < k_7_to_2; k_7++) {
                            part_20_2 += expand_dims_3[k_7] * kernel_2[j_10*D + k_7];
                        }
                        wide_15_2 += (double)part_20_2;
                    }
                    product_7_2[j_10] += (float)wide_15_2;
                    d_u_2[j_10] = (dyv_4_2 * product_9[j_10]) + product_7_2[j_10];
                }
            }
            for (int64_t v_2_step = 0; v_2_step < n_iter; v_2_step++) {
                #pragma omp simd
                for (int64_t i_21 = 0; i_21 < D; i_21++) {
                    product_4_2[i_21] = 0.0f;
                }
                #pragma omp parallel for schedule(static) num_threads(lc_threads) if(lc_threads > 1 && (3*C*D + 3*C) > 40000)
                for (int64_t chunk_17 = 0; chunk_17 < chunks_7; chunk_17++) {
                    #pragma omp simd
                    for (int64_t i_20 = 0; i_20 < D; i_20++) {
                        product_4_2_part[chunk_17*D + i_20] = 0.0f;
                    }
                    const int64_t j_11_from = C*chunk_17 / chunks_7;
                    const int64_t j_11_to = (C*chunk_17 + C) / chunks_7;
                    for (int64_t j_11 = j_11_from; j_11 < j_11_to; j_11++) {
                        product_3_2[j_11] = 0.0f;
                        const float u_savedv_2 = u_saved_2[(n_iter - v_2_step - 1)*C + j_11];
                        #pragma omp simd
                        for (int64_t i_22 = 0; i_22 < D; i_22++) {
                            product_4_2_part[chunk_17*D + i_22] += u_savedv_2 * kernel_2[j_11*D + i_22];
                        }
                    }
                }
                for (int64_t chunk_18 = 0; chunk_18 < chunks_7; chunk_18++) {
                    #pragma omp simd
                    for (int64_t i_24 = 0; i_24 < D; i_24++) {
                        product_4_2[i_24] += product_4_2_part[chunk_18*D + i_24];
                    }
                }
                #pragma omp parallel for schedule(static) num_threads(lc_threads) if(lc_threads > 1 && 8*D > 40000)
                for (int64_t chunk_19 = 0; chunk_19 < chunks_8; chunk_19++) {
                    const int64_t i_23_from = lc_smaller(64*chunk_19*(D / (64*chunks_8)) + 64*chunk_19, D);
                    const int64_t i_23_to = lc_smaller(64*chunk_19*(D / (64*chunks_8)) + 64*chunk_19 + 64*(D / (64*chunks_8)) + 64, D);
                    #pragma omp simd
                    for (int64_t i_23 = i_23_from; i_23 < i_23_to; i_23++) {
                        ratio_2[i_23] = b[b_2*D + i_23] / product_4_2[i_23];
                        sum_2[i_23] = 0.0f;
                    }
                }
                #pragma omp parallel for schedule(static) num_threads(lc_threads) if(lc_threads > 1 && (28*D*(C / 4) + 95*(C / 4)) > 40000)
                for (int64_t chunk_20 = 0; chunk_20 < chunks_9; chunk_20++) {
                    #pragma omp simd
                    for (int64_t i_26 = 0; i_26 < D; i_26++) {
                        sum_2_part[chunk_20*D + i_26] = 0.0f;
                    }
                    const int64_t i_25x4_from = chunk_20*(C / 4) / chunks_9;
                    const int64_t i_25x4_to = (chunk_20*(C / 4) + (C / 4)) / chunks_9;
                    for (int64_t i_25x4 = i_25x4_from; i_25x4 < i_25x4_to; i_25x4++) {
                        product_8_2[4*i_25x4 + 3] = 0.0f;
                        product_8_2[4*i_25x4 + 2] = 0.0f;
                        product_8_2[4*i_25x4 + 1] = 0.0f;
                        product_8_2[4*i_25x4] = 0.0f;
                        double wide_16_2 = 0.0;
                        const int64_t q_7_to_2 = (D + 1023) / 1024;
                        for (int64_t q_7 = 0; q_7 < q_7_to_2; q_7++) {
                            float part_21_2 = 0.0f;
                            const int64_t j_12_2_to_2 = lc_smaller(1024*q_7 + 1024, D);
                            #pragma omp simd reduction(+:part_21_2)
                            for (int64_t j_12_2 = 1024*q_7; j_12_2 < j_12_2_to_2; j_12_2++) {
                                part_21_2 += kernel_2[(4*i_25x4)*D + j_12_2] * ratio_2[j_12_2];
                            }
                            wide_16_2 += (double)part_21_2;
                        }
                        product_3_2[4*i_25x4] += (float)wide_16_2;
                        const float d_uv_6 = d_u_2[4*i_25x4];
                        const float product_3v_6 = product_3_2[4*i_25x4];
                        const float part_2_2 = (d_uv_6 * (a[b_2*C + 4*i_25x4] / product_3v_6)) / product_3v_6;
                        double wide_17_2 = 0.0;
                        for (int64_t q_8 = 0; q_8 < q_7_to_2; q_8++) {
                            float part_22_2 = 0.0f;
                            const int64_t j_13_2_to_2 = lc_smaller(1024*q_8 + 1024, D);
                            #pragma omp simd reduction(+:part_22_2)
                            for (int64_t j_13_2 = 1024*q_8; j_13_2 < j_13_2_to_2; j_13_2++) {
                                sum_2_part[chunk_20*D + j_13_2] += kernel_2[(4*i_25x4)*D + j_13_2] * part_2_2;
                                part_22_2 += kernel_2[(4*i_25x4 + 1)*D + j_13_2] * ratio_2[j_13_2];
                            }
                            wide_17_2 += (double)part_22_2;
                        }
                        product_3_2[4*i_25x4 + 1] += (float)wide_17_2;
                        d_a[b_2*C + 4*i_25x4] += d_uv_6 / product_3_2[4*i_25x4];
                        const float d_uv_2_2 = d_u_2[4*i_25x4 + 1];
                        const float product_3v_2_2 = product_3_2[4*i_25x4 + 1];
                        const float part_3_2 = (d_uv_2_2 * (a[b_2*C + 4*i_25x4 + 1] / product_3v_2_2)) / product_3v_2_2;
                        double wide_18_2 = 0.0;
                        for (int64_t q_9 = 0; q_9 < q_7_to_2; q_9++) {
                            float part_23_2 = 0.0f;
                            const int64_t j_13_3_to_2 = lc_smaller(1024*q_9 + 1024, D);
                            #pragma omp simd reduction(+:part_23_2)
                            for (int64_t j_13_3 = 1024*q_9; j_13_3 < j_13_3_to_2; j_13_3++) {
                                sum_2_part[chunk_20*D + j_13_3] += kernel_2[(4*i_25x4 + 1)*D + j_13_3] * part_3_2;
                                part_23_2 += kernel_2[(4*i_25x4 + 2)*D + j_13_3] * ratio_2[j_13_3];
                            }
                            wide_18_2 += (double)part_23_2;
                        }
                        product_3_2[4*i_25x4 + 2] += (float)wide_18_2;
                        d_a[b_2*C + 4*i_25x4 + 1] += d_uv_2_2 / product_3_2[4*i_25x4 + 1];
                        const float d_uv_3_2 = d_u_2[4*i_25x4 + 2];
                        const float product_3v_3_2 = product_3_2[4*i_25x4 + 2];
                        const float part_4_2 = (d_uv_3_2 * (a[b_2*C + 4*i_25x4 + 2] / product_3v_3_2)) / product_3v_3_2;
                        double wide_19_2 = 0.0;
                        for (int64_t q_10 = 0; q_10 < q_7_to_2; q_10++) {
                            float part_24_2 = 0.0f;
                            const int64_t j_13_4_to_2 = lc_smaller(1024*q_10 + 1024, D);
                            #pragma omp simd reduction(+:part_24_2)
                            for (int64_t j_13_4 = 1024*q_10; j_13_4 < j_13_4_to_2; j_13_4++) {
                                sum_2_part[chunk_20*D + j_13_4] += kernel_2[(4*i_25x4 + 2)*D + j_13_4] * part_4_2;
                                part_24_2 += kernel_2[(4*i_25x4 + 3)*D + j_13_4] * ratio_2[j_13_4];
                            }
                            wide_19_2 += (double)part_24_2;
                        }
                        product_3_2[4*i_25x4 + 3] += (float)wide_19_2;
                        d_a[b_2*C + 4*i_25x4 + 2] += d_uv_3_2 / product_3_2[4*i_25x4 + 2];
                        const float d_uv_4_2 = d_u_2[4*i_25x4 + 3];
                        const float product_3v_4_2 = product_3_2[4*i_25x4 + 3];
                        const float part_5_2 = (d_uv_4_2 * (a[b_2*C + 4*i_25x4 + 3] / product_3v_4_2)) / product_3v_4_2;
                        #pragma omp simd
                        for (int64_t j_13_5 = 0; j_13_5 < D; j_13_5++) {
                            sum_2_part[chunk_20*D + j_13_5] += kernel_2[(4*i_25x4 + 3)*D + j_13_5] * part_5_2;
                        }
                        d_a[b_2*C + 4*i_25x4 + 3] += d_uv_4_2 / product_3v_4_2;
                    }
                }
                for (int64_t chunk_21 = 0; chunk_21 < chunks_9; chunk_21++) {
                    #pragma omp simd
                    for (int64_t i_27 = 0; i_27 < D; i_27++) {
                        sum_2[i_27] += sum_2_part[chunk_21*D + i_27];
                    }
                }
                #pragma omp parallel for schedule(static) num_threads(lc_threads) if(lc_threads > 1 && (7*C*D + 23*C - 28*D*(C / 4) - 92*(C / 4)) > 40000)
                for (int64_t chunk_22 = 0; chunk_22 < chunks_10; chunk_22++) {
                    #pragma omp simd
                    for (int64_t i_28 = 0; i_28 < D; i_28++) {
                        sum_2_part_2[chunk_22*D + i_28] = 0.0f;
                    }
                    const int64_t i_25_from = lc_floor_div_i64(C*chunk_22 - 4*chunk_22*(C / 4), chunks_10) + 4*(C / 4);
                    const int64_t i_25_to = lc_floor_div_i64(C*chunk_22 + C - 4*chunk_22*(C / 4) - 4*(C / 4), chunks_10) + 4*(C / 4);
                    for (int64_t i_25 = i_25_from; i_25 < i_25_to; i_25++) {
                        product_8_2[i_25] = 0.0f;
                        double wide_20_2 = 0.0;
                        const int64_t q_11_to_2 = (D + 1023) / 1024;
                        for (int64_t q_11 = 0; q_11 < q_11_to_2; q_11++) {
                            float part_25_2 = 0.0f;
                            const int64_t j_12_6_to_2 = lc_smaller(1024*q_11 + 1024, D);
                            #pragma omp simd reduction(+:part_25_2)
                            for (int64_t j_12_6 = 1024*q_11; j_12_6 < j_12_6_to_2; j_12_6++) {
                                part_25_2 += kernel_2[i_25*D + j_12_6] * ratio_2[j_12_6];
                            }
                            wide_20_2 += (double)part_25_2;
                        }
                        product_3_2[i_25] += (float)wide_20_2;
                        const float d_uv_5_2 = d_u_2[i_25];
                        const float product_3v_5_2 = product_3_2[i_25];
                        const float part_6_2 = (d_uv_5_2 * (a[b_2*C + i_25] / product_3v_5_2)) / product_3v_5_2;
                        #pragma omp simd
                        for (int64_t j_13_6 = 0; j_13_6 < D; j_13_6++) {
                            sum_2_part_2[chunk_22*D + j_13_6] += kernel_2[i_25*D + j_13_6] * part_6_2;
                        }
                        d_a[b_2*C + i_25] += d_uv_5_2 / product_3v_5_2;
                    }
                }
                for (int64_t chunk_23 = 0; chunk_23 < chunks_10; chunk_23++) {
                    #pragma omp simd
                    for (int64_t i_29 = 0; i_29 < D; i_29++) {
                        sum_2[i_29] += sum_2_part_2[chunk_23*D + i_29];
                    }
                }
                #pragma omp parallel for schedule(static) num_threads(lc_threads) if(lc_threads > 1 && 18*D > 40000)
                for (int64_t chunk_24 = 0; chunk_24 < chunks_8; chunk_24++) {
                    const int64_t i_32_from = lc_smaller(64*chunk_24*(D / (64*chunks_8)) + 64*chunk_24, D);
                    const int64_t i_32_to = lc_smaller(64*chunk_24*(D / (64*chunks_8)) + 64*chunk_24 + 64*(D / (64*chunks_8)) + 64, D);
                    #pragma omp simd
                    for (int64_t i_32 = i_32_from; i_32 < i_32_to; i_32++) {
                        const float e_8_2 = -sum_2[i_32];
                        const float product_4v_2 = product_4_2[i_32];
                        d_b[b_2*D + i_32] += e_8_2 / product_4v_2;
                        expand_dims_2_2[i_32] = -((e_8_2 * ratio_2[i_32]) / product_4v_2);
                    }
                }
                #pragma omp parallel for schedule(static) num_threads(lc_threads) if(lc_threads > 1 && (16*D*(C / 4) + 24*(C / 4)) > 40000)
                for (int64_t chunk_25 = 0; chunk_25 < chunks_11; chunk_25++) {
                    const int64_t j_16x4_from = chunk_25*(C / 4) / chunks_11;
                    const int64_t j_16x4_to = (chunk_25*(C / 4) + (C / 4)) / chunks_11;
                    for (int64_t j_16x4 = j_16x4_from; j_16x4 < j_16x4_to; j_16x4++) {
                        double wide_21_2 = 0.0;
                        double wide_22_2 = 0.0;
                        double wide_23_2 = 0.0;
                        double wide_24_2 = 0.0;
                        const int64_t q_12_to_2 = (D + 1023) / 1024;
                        for (int64_t q_12 = 0; q_12 < q_12_to_2; q_12++) {
                            float part_26_2 = 0.0f;
                            float part_27_2 = 0.0f;
                            float part_28_2 = 0.0f;
                            float part_29_2 = 0.0f;
                            const int64_t k_2_2_to_2 = lc_smaller(1024*q_12 + 1024, D);
                            #pragma omp simd reduction(+:part_26_2, part_27_2, part_28_2, part_29_2)
                            for (int64_t k_2_2 = 1024*q_12; k_2_2 < k_2_2_to_2; k_2_2++) {
                                const float expand_dims_2v_2 = expand_dims_2_2[k_2_2];
                                part_26_2 += expand_dims_2v_2 * kernel_2[(4*j_16x4)*D + k_2_2];
                                part_27_2 += expand_dims_2v_2 * kernel_2[(4*j_16x4 + 1)*D + k_2_2];
                                part_28_2 += expand_dims_2v_2 * kernel_2[(4*j_16x4 + 2)*D + k_2_2];
                                part_29_2 += expand_dims_2v_2 * kernel_2[(4*j_16x4 + 3)*D + k_2_2];
                            }
                            wide_21_2 += (double)part_26_2;
                            wide_22_2 += (double)part_27_2;
                            wide_23_2 += (double)part_28_2;
                            wide_24_2 += (double)part_29_2;
                        }
                        product_8_2[4*j_16x4] += (float)wide_21_2;
                        product_8_2[4*j_16x4 + 1] += (float)wide_22_2;
                        product_8_2[4*j_16x4 + 2] += (float)wide_23_2;
                        product_8_2[4*j_16x4 + 3] += (float)wide_24_2;
                        d_u_2[4*j_16x4] = product_8_2[4*j_16x4];
                        u_2[4*j_16x4] = u_saved_2[(n_iter - v_2_step - 1)*C + 4*j_16x4];
                        d_u_2[4*j_16x4 + 1] = product_8_2[4*j_16x4 + 1];
                        u_2[4*j_16x4 + 1] = u_saved_2[(n_iter - v_2_step - 1)*C + 4*j_16x4 + 1];
                        d_u_2[4*j_16x4 + 2] = product_8_2[4*j_16x4 + 2];
                        u_2[4*j_16x4 + 2] = u_saved_2[(n_iter - v_2_step - 1)*C + 4*j_16x4 + 2];
                        d_u_2[4*j_16x4 + 3] = product_8_2[4*j_16x4 + 3];
                        u_2[4*j_16x4 + 3] = u_saved_2[(n_iter - v_2_step - 1)*C + 4*j_16x4 + 3];
                    }
                }
                #pragma omp parallel for schedule(static) num_threads(lc_threads) if(lc_threads > 1 && (4*C*D + 6*C - 16*D*(C / 4) - 24*(C / 4)) > 40000)
                for (int64_t chunk_26 = 0; chunk_26 < chunks_12; chunk_26++) {
                    const int64_t j_16_from = lc_floor_div_i64(C*chunk_26 - 4*chunk_26*(C / 4), chunks_12) + 4*(C / 4);
                    const int64_t j_16_to = lc_floor_div_i64(C*chunk_26 + C - 4*chunk_26*(C / 4) - 4*(C / 4), chunks_12) + 4*(C / 4);
                    for (int64_t j_16 = j_16_from; j_16 < j_16_to; j_16++) {
                        double wide_25_2 = 0.0;
                        const int64_t q_13_to_2 = (D + 1023) / 1024;
                        for (int64_t q_13 = 0; q_13 < q_13_to_2; q_13++) {
                            float part_30_2 = 0.0f;
                            const int64_t k_2_6_to_2 = lc_smaller(1024*q_13 + 1024, D);
                            #pragma omp simd reduction(+:part_30_2)
                            for (int64_t k_2_6 = 1024*q_13; k_2_6 < k_2_6_to_2; k_2_6++) {
                                part_30_2 += expand_dims_2_2[k_2_6] * kernel_2[j_16*D + k_2_6];
                            }
                            wide_25_2 += (double)part_30_2;
                        }
                        product_8_2[j_16] += (float)wide_25_2;
                        d_u_2[j_16] = product_8_2[j_16];
                        u_2[j_16] = u_saved_2[(n_iter - v_2_step - 1)*C + j_16];
                    }
                }
            }
        }
    }
lc_done:
    free(lc_arena);
    return lc_leave(call, &lc_fault);
}

int LC_NAME(wasserstein_backward_f64)(int64_t batch, int64_t C, int64_t D, double lam, int64_t n_iter, const double *restrict a, const double *restrict b, const double *restrict cost, const double *restrict dy, double *restrict d_a, double *restrict d_b, lc_call *call)
{
    const int lc_threads LC_USED = call && call->threads > 0 ? call->threads : 1;
    lc_fault_t lc_fault = {0, {0}};
    size_t lc_room = 0;
    const size_t lc_at_kernel_2 = lc_reserve(&lc_room, sizeof(double), (const int64_t[]){C, D}, 2);
    const size_t lc_at_u_2 = lc_reserve(&lc_room, sizeof(double), (const int64_t[]){C}, 1);
    const size_t lc_at_u_saved_2 = lc_reserve(&lc_room, sizeof(double), (const int64_t[]){n_iter, C}, 2);
    const size_t lc_at_product_5_2 = lc_reserve(&lc_room, sizeof(double), (const int64_t[]){C}, 1);
    const size_t lc_at_product_6_2 = lc_reserve(&lc_room, sizeof(double), (const int64_t[]){D}, 1);
    const size_t lc_at_divide_2 = lc_reserve(&lc_room, sizeof(double), (const int64_t[]){D}, 1);
    const size_t lc_at_product_2_2 = lc_reserve(&lc_room, sizeof(double), (const int64_t[]){D}, 1);
    const size_t lc_at_v_2 = lc_reserve(&lc_room, sizeof(double), (const int64_t[]){D}, 1);
    const size_t lc_at_product_9 = lc_reserve(&lc_room, sizeof(double), (const int64_t[]){C}, 1);
    const size_t lc_at_d_ratio_2 = lc_reserve(&lc_room, sizeof(double), (const int64_t[]){D}, 1);
    const size_t lc_at_d_u_2 = lc_reserve(&lc_room, sizeof(double), (const int64_t[]){C}, 1);
    const size_t lc_at_product_7_2 = lc_reserve(&lc_room, sizeof(double), (const int64_t[]){C}, 1);
    const size_t lc_at_expand_dims_3 = lc_reserve(&lc_room, sizeof(double), (const int64_t[]){D}, 1);
    const size_t lc_at_product_4_2 = lc_reserve(&lc_room, sizeof(double), (const int64_t[]){D}, 1);
    const size_t lc_at_ratio_2 = lc_reserve(&lc_room, sizeof(double), (const int64_t[]){D}, 1);
    const size_t lc_at_product_3_2 = lc_reserve(&lc_room, sizeof(double), (const int64_t[]){C}, 1);
    const size_t lc_at_sum_2 = lc_reserve(&lc_room, sizeof(double), (const int64_t[]){D}, 1);
    const size_t lc_at_product_8_2 = lc_reserve(&lc_room, sizeof(double), (const int64_t[]){1, C}, 2);
    const size_t lc_at_expand_dims_2_2 = lc_reserve(&lc_room, sizeof(double), (const int64_t[]){D}, 1);
    const size_t lc_at_product_6_2_part = lc_reserve(&lc_room, sizeof(double), (const int64_t[]){16, D}, 2);
    const size_t lc_at_product_2_2_part = lc_reserve(&lc_room, sizeof(double), (const int64_t[]){16, D}, 2);
    const size_t lc_at_d_ratio_2_part = lc_reserve(&lc_room, sizeof(double), (const int64_t[]){16, D}, 2);
    const size_t lc_at_d_ratio_2_part_2 = lc_reserve(&lc_room, sizeof(double), (const int64_t[]){16, D}, 2);
    const size_t lc_at_product_4_2_part = lc_reserve(&lc_room, sizeof(double), (const int64_t[]){16, D}, 2);
    const size_t lc_at_sum_2_part = lc_reserve(&lc_room, sizeof(double), (const int64_t[]){16, D}, 2);
    const size_t lc_at_sum_2_part_2 = lc_reserve(&lc_room, sizeof(double), (const int64_t[]){16, D}, 2);
    const size_t lc_own1 = lc_room;
    const size_t lc_at_kernel = lc_reserve(&lc_room, sizeof(double), (const int64_t[]){C, D}, 2);
    const size_t lc_at_u = lc_reserve(&lc_room, sizeof(double), (const int64_t[]){C}, 1);
    const size_t lc_at_u_saved = lc_reserve(&lc_room, sizeof(double), (const int64_t[]){n_iter, C}, 2);
    const size_t lc_at_product_5 = lc_reserve(&lc_room, sizeof(double), (const int64_t[]){C}, 1);
    const size_t lc_at_product_6 = lc_reserve(&lc_room, sizeof(double), (const int64_t[]){D}, 1);
    const size_t lc_at_divide = lc_reserve(&lc_room, sizeof(double), (const int64_t[]){D}, 1);
    const size_t lc_at_product_2 = lc_reserve(&lc_room, sizeof(double), (const int64_t[]){D}, 1);
    const size_t lc_at_v = lc_reserve(&lc_room, sizeof(double), (const int64_t[]){D}, 1);
    const size_t lc_at_product = lc_reserve(&lc_room, sizeof(double), (const int64_t[]){C}, 1);
    const size_t lc_at_d_ratio = lc_reserve(&lc_room, sizeof(double), (const int64_t[]){D}, 1);
    const size_t lc_at_d_u = lc_reserve(&lc_room, sizeof(double), (const int64_t[]){C}, 1);
    const size_t lc_at_product_7 = lc_reserve(&lc_room, sizeof(double), (const int64_t[]){C}, 1);
    const size_t lc_at_expand_dims = lc_reserve(&lc_room, sizeof(double), (const int64_t[]){D}, 1);
    const size_t lc_at_product_4 = lc_reserve(&lc_room, sizeof(double), (const int64_t[]){D}, 1);
    const size_t lc_at_ratio = lc_reserve(&lc_room, sizeof(double), (const int64_t[]){D}, 1);
    const size_t lc_at_product_3 = lc_reserve(&lc_room, sizeof(double), (const int64_t[]){C}, 1);
    const size_t lc_at_sum = lc_reserve(&lc_room, sizeof(double), (const int64_t[]){D}, 1);
    const size_t lc_at_product_8 = lc_reserve(&lc_room, sizeof(double), (const int64_t[]){1, C}, 2);
    const size_t lc_at_expand_dims_2 = lc_reserve(&lc_room, sizeof(double), (const int64_t[]){D}, 1);
    const size_t lc_step1 = lc_copies(&lc_room, lc_own1, lc_threads);
    char *const lc_arena = lc_take(lc_room);
    if (!lc_arena) { lc_fault.code = 1; goto lc_done; }
    double *restrict const kernel_2 = (double *)(lc_arena + lc_at_kernel_2);
    double *restrict const u_2 = (double *)(lc_arena + lc_at_u_2);
    double *restrict const u_saved_2 = (double *)(lc_arena + lc_at_u_saved_2);
    double *restrict const product_5_2 = (double *)(lc_arena + lc_at_product_5_2);
    double *restrict const product_6_2 = (double *)(lc_arena + lc_at_product_6_2);
    double *restrict const divide_2 = (double *)(lc_arena + lc_at_divide_2);
    double *restrict const product_2_2 = (double *)(lc_arena + lc_at_product_2_2);
    double *restrict const v_2 = (double *)(lc_arena + lc_at_v_2);
    double *restrict const product_9 = (double *)(lc_arena + lc_at_product_9);
    double *restrict const d_ratio_2 = (double *)(lc_arena + lc_at_d_ratio_2);
    double *restrict const d_u_2 = (double *)(lc_arena + lc_at_d_u_2);
    double *restrict const product_7_2 = (double *)(lc_arena + lc_at_product_7_2);
    double *restrict const expand_dims_3 = (double *)(lc_arena + lc_at_expand_dims_3);
    double *restrict const product_4_2 = (double *)(lc_arena + lc_at_product_4_2);
    double *restrict const ratio_2 = (double *)(lc_arena + lc_at_ratio_2);
    double *restrict const product_3_2 = (double *)(lc_arena + lc_at_product_3_2);
    double *restrict const sum_2 = (double *)(lc_arena + lc_at_sum_2);
    double *restrict const product_8_2 = (double *)(lc_arena + lc_at_product_8_2);
    double *restrict const expand_dims_2_2 = (double *)(lc_arena + lc_at_expand_dims_2_2);
    double *restrict const product_6_2_part = (double *)(lc_arena + lc_at_product_6_2_part);
    double *restrict const product_2_2_part = (double *)(lc_arena + lc_at_product_2_2_part);
    double *restrict const d_ratio_2_part = (double *)(lc_arena + lc_at_d_ratio_2_part);
    double *restrict const d_ratio_2_part_2 = (double *)(lc_arena + lc_at_d_ratio_2_part_2);
    double *restrict const product_4_2_part = (double *)(lc_arena + lc_at_product_4_2_part);
    double *restrict const sum_2_part = (double *)(lc_arena + lc_at_sum_2_part);
    double *restrict const sum_2_part_2 = (double *)(lc_arena + lc_at_sum_2_part_2);
    const double e = 1.0 / (double)C;
    if (batch >= 4) {
        const int64_t chunks = lc_smaller(64, batch);
        #pragma omp parallel for schedule(static) num_threads(lc_threads) if(lc_threads > 1 && (21*C*D*batch*n_iter + 35*C*D*batch + 46*C*batch*n_iter + 35*D*batch*n_iter + 3*batch*(C / 4)*n_iter + 18*C*batch + 26*D*batch + 5*batch - 4*batch*(C / 4)) > 40000)
        for (int64_t chunk_27 = 0; chunk_27 < chunks; chunk_27++) {
            char *const lc_mine1 = lc_arena + (size_t)lc_thread() * lc_step1;
            double *restrict const kernel = (double *)(lc_mine1 + lc_at_kernel);
            double *restrict const u = (double *)(lc_mine1 + lc_at_u);
            double *restrict const u_saved = (double *)(lc_mine1 + lc_at_u_saved);
            double *restrict const product_5 = (double *)(lc_mine1 + lc_at_product_5);
            double *restrict const product_6 = (double *)(lc_mine1 + lc_at_product_6);
            double *restrict const divide = (double *)(lc_mine1 + lc_at_divide);
            double *restrict const product_2 = (double *)(lc_mine1 + lc_at_product_2);
            double *restrict const v = (double *)(lc_mine1 + lc_at_v);
            double *restrict const product = (double *)(lc_mine1 + lc_at_product);
            double *restrict const d_ratio = (double *)(lc_mine1 + lc_at_d_ratio);
            double *restrict const d_u = (double *)(lc_mine1 + lc_at_d_u);
            double *restrict const product_7 = (double *)(lc_mine1 + lc_at_product_7);
            double *restrict const expand_dims = (double *)(lc_mine1 + lc_at_expand_dims);
            double *restrict const product_4 = (double *)(lc_mine1 + lc_at_product_4);
            double *restrict const ratio = (double *)(lc_mine1 + lc_at_ratio);
            double *restrict const product_3 = (double *)(lc_mine1 + lc_at_product_3);
            double *restrict const sum = (double *)(lc_mine1 + lc_at_sum);
            double *restrict const product_8 = (double *)(lc_mine1 + lc_at_product_8);
            double *restrict const expand_dims_2 = (double *)(lc_mine1 + lc_at_expand_dims_2);
            const int64_t b_2_from = batch*chunk_27 / chunks;
            const int64_t b_2_to = (batch*chunk_27 + batch) / chunks;
            for (int64_t b_2 = b_2_from; b_2 < b_2_to; b_2++) {
                for (int64_t i = 0; i < C; i++) {
                    #pragma omp simd
                    for (int64_t j = 0; j < D; j++) {
                        kernel[i*D + j] = lc_exp((-(double)lam) * cost[i*D + j]);
                    }
                    u[i] = e;
                }
                for (int64_t i_3 = 0; i_3 < n_iter; i_3++) {
                    #pragma omp simd
                    for (int64_t i_5 = 0; i_5 < D; i_5++) {
                        product_6[i_5] = 0.0;
                    }
                    for (int64_t j_2 = 0; j_2 < C; j_2++) {
                        product_5[j_2] = 0.0;
                        const double uv_2 = u[j_2];
                        u_saved[i_3*C + j_2] = uv_2;
                        const double uv = uv_2;
                        #pragma omp simd
                        for (int64_t i_6 = 0; i_6 < D; i_6++) {
                            product_6[i_6] += uv * kernel[j_2*D + i_6];
                        }
                    }
                    #pragma omp simd
                    for (int64_t i_7 = 0; i_7 < D; i_7++) {
                        divide[i_7] = b[b_2*D + i_7] / product_6[i_7];
                    }
                    const int64_t i_9x4_to = C / 4;
                    for (int64_t i_9x4 = 0; i_9x4 < i_9x4_to; i_9x4++) {
                        double wide = 0.0;
                        double wide_2 = 0.0;
                        double wide_3 = 0.0;
                        double wide_4 = 0.0;
                        const int64_t q_to = (D + 1023) / 1024;
                        for (int64_t q = 0; q < q_to; q++) {
                            double part = 0.0;
                            double part_7 = 0.0;
                            double part_8 = 0.0;
                            double part_9 = 0.0;
                            const int64_t j_4_2_to = lc_smaller(1024*q + 1024, D);
                            #pragma omp simd reduction(+:part, part_7, part_8, part_9)
                            for (int64_t j_4_2 = 1024*q; j_4_2 < j_4_2_to; j_4_2++) {
                                const double dividev = divide[j_4_2];
                                part += kernel[(4*i_9x4)*D + j_4_2] * dividev;
                                part_7 += kernel[(4*i_9x4 + 1)*D + j_4_2] * dividev;
                                part_8 += kernel[(4*i_9x4 + 2)*D + j_4_2] * dividev;
                                part_9 += kernel[(4*i_9x4 + 3)*D + j_4_2] * dividev;
                            }
                            wide += part;
                            wide_2 += part_7;
                            wide_3 += part_8;
                            wide_4 += part_9;
                        }
                        product_5[4*i_9x4] += wide;
                        product_5[4*i_9x4 + 1] += wide_2;
                        product_5[4*i_9x4 + 2] += wide_3;
                        product_5[4*i_9x4 + 3] += wide_4;
                        u[4*i_9x4] = a[b_2*C + 4*i_9x4] / product_5[4*i_9x4];
                        u[4*i_9x4 + 1] = a[b_2*C + 4*i_9x4 + 1] / product_5[4*i_9x4 + 1];
                        u[4*i_9x4 + 2] = a[b_2*C + 4*i_9x4 + 2] / product_5[4*i_9x4 + 2];
                        u[4*i_9x4 + 3] = a[b_2*C + 4*i_9x4 + 3] / product_5[4*i_9x4 + 3];
                    }
                    const int64_t i_9_from = 4*i_9x4_to;
                    for (int64_t i_9 = i_9_from; i_9 < C; i_9++) {
                        double wide_5 = 0.0;
                        const int64_t q_2_to = (D + 1023) / 1024;
                        for (int64_t q_2 = 0; q_2 < q_2_to; q_2++) {
                            double part_10 = 0.0;
                            const int64_t j_4_6_to = lc_smaller(1024*q_2 + 1024, D);
                            #pragma omp simd reduction(+:part_10)
                            for (int64_t j_4_6 = 1024*q_2; j_4_6 < j_4_6_to; j_4_6++) {
                                part_10 += kernel[i_9*D + j_4_6] * divide[j_4_6];
                            }
                            wide_5 += part_10;
                        }
                        product_5[i_9] += wide_5;
                        u[i_9] = a[b_2*C + i_9] / product_5[i_9];
                    }
                }
                #pragma omp simd
                for (int64_t i_11 = 0; i_11 < D; i_11++) {
                    product_2[i_11] = 0.0;
                }
                for (int64_t j_5 = 0; j_5 < C; j_5++) {
                    product[j_5] = 0.0;
                    const double uv_3 = u[j_5];
                    #pragma omp simd
                    for (int64_t i_12 = 0; i_12 < D; i_12++) {
                        product_2[i_12] += uv_3 * kernel[j_5*D + i_12];
                    }
                }
                #pragma omp simd
                for (int64_t i_13 = 0; i_13 < D; i_13++) {
                    v[i_13] = b[b_2*D + i_13] / product_2[i_13];
                    d_ratio[i_13] = 0.0;
                }
                const double dyv = dy[b_2];
                const int64_t i_15x4_to = C / 4;
                for (int64_t i_15x4 = 0; i_15x4 < i_15x4_to; i_15x4++) {
                    d_a[b_2*C + 4*i_15x4 + 3] = 0.0;
                    product_7[4*i_15x4 + 3] = 0.0;
                    d_a[b_2*C + 4*i_15x4 + 2] = 0.0;
                    product_7[4*i_15x4 + 2] = 0.0;
                    d_a[b_2*C + 4*i_15x4 + 1] = 0.0;
                    product_7[4*i_15x4 + 1] = 0.0;
                    product_7[4*i_15x4] = 0.0;
                    d_a[b_2*C + 4*i_15x4] = 0.0;
                    double wide_6 = 0.0;
                    double wide_7 = 0.0;
                    double wide_8 = 0.0;
                    double wide_9 = 0.0;
                    const double uv_4 = u[4*i_15x4];
                    const double uv_5 = u[4*i_15x4 + 1];
                    const double uv_6 = u[4*i_15x4 + 2];
                    const double uv_7 = u[4*i_15x4 + 3];
                    const int64_t q_3_to = (D + 1023) / 1024;
                    for (int64_t q_3 = 0; q_3 < q_3_to; q_3++) {
                        double part_11 = 0.0;
                        double part_12 = 0.0;
                        double part_13 = 0.0;
                        double part_14 = 0.0;
                        const int64_t j_6_2_to = lc_smaller(1024*q_3 + 1024, D);
                        #pragma omp simd reduction(+:part_11, part_12, part_13, part_14)
                        for (int64_t j_6_2 = 1024*q_3; j_6_2 < j_6_2_to; j_6_2++) {
                            const double e_2 = kernel[(4*i_15x4)*D + j_6_2] * cost[(4*i_15x4)*D + j_6_2];
                            const double vv = v[j_6_2];
                            part_11 += e_2 * vv;
                            d_ratio[j_6_2] += e_2 * (dyv * uv_4);
                            const double e_3 = kernel[(4*i_15x4 + 1)*D + j_6_2] * cost[(4*i_15x4 + 1)*D + j_6_2];
                            part_12 += e_3 * vv;
                            d_ratio[j_6_2] += e_3 * (dyv * uv_5);
                            const double e_4 = kernel[(4*i_15x4 + 2)*D + j_6_2] * cost[(4*i_15x4 + 2)*D + j_6_2];
                            part_13 += e_4 * vv;
                            d_ratio[j_6_2] += e_4 * (dyv * uv_6);
                            const double e_5 = kernel[(4*i_15x4 + 3)*D + j_6_2] * cost[(4*i_15x4 + 3)*D + j_6_2];
                            part_14 += e_5 * vv;
                            d_ratio[j_6_2] += e_5 * (dyv * uv_7);
                        }
                        wide_6 += part_11;
                        wide_7 += part_12;
                        wide_8 += part_13;
                        wide_9 += part_14;
                    }
                    product[4*i_15x4] += wide_6;
                    product[4*i_15x4 + 1] += wide_7;
                    product[4*i_15x4 + 2] += wide_8;
                    product[4*i_15x4 + 3] += wide_9;
                }
                const double dyv_2 = dyv;
                const int64_t i_15_from = 4*i_15x4_to;
                for (int64_t i_15 = i_15_from; i_15 < C; i_15++) {
                    product_7[i_15] = 0.0;
                    d_a[b_2*C + i_15] = 0.0;
                    double wide_10 = 0.0;
                    const double e_7 = dyv_2 * u[i_15];
                    const int64_t q_4_to = (D + 1023) / 1024;
                    for (int64_t q_4 = 0; q_4 < q_4_to; q_4++) {
                        double part_15 = 0.0;
                        const int64_t j_6_6_to = lc_smaller(1024*q_4 + 1024, D);
                        #pragma omp simd reduction(+:part_15)
                        for (int64_t j_6_6 = 1024*q_4; j_6_6 < j_6_6_to; j_6_6++) {
                            const double e_6 = kernel[i_15*D + j_6_6] * cost[i_15*D + j_6_6];
                            part_15 += e_6 * v[j_6_6];
                            d_ratio[j_6_6] += e_6 * e_7;
                        }
                        wide_10 += part_15;
                    }
                    product[i_15] += wide_10;
                }
                #pragma omp simd
                for (int64_t i_19 = 0; i_19 < D; i_19++) {
                    const double d_ratiov = d_ratio[i_19];
                    const double product_2v = product_2[i_19];
                    d_b[b_2*D + i_19] = d_ratiov / product_2v;
                    expand_dims[i_19] = -((d_ratiov * v[i_19]) / product_2v);
                }
                const double dyv_3 = dyv;
                for (int64_t j_10x4 = 0; j_10x4 < i_15x4_to; j_10x4++) {
                    double wide_11 = 0.0;
                    double wide_12 = 0.0;
                    double wide_13 = 0.0;
                    double wide_14 = 0.0;
                    const int64_t q_5_to = (D + 1023) / 1024;
                    for (int64_t q_5 = 0; q_5 < q_5_to; q_5++) {
                        double part_16 = 0.0;
                        double part_17 = 0.0;
                        double part_18 = 0.0;
                        double part_19 = 0.0;
                        const int64_t k_3_to = lc_smaller(1024*q_5 + 1024, D);
                        #pragma omp simd reduction(+:part_16, part_17, part_18, part_19)
                        for (int64_t k_3 = 1024*q_5; k_3 < k_3_to; k_3++) {
                            const double expand_dimsv = expand_dims[k_3];
                            part_16 += expand_dimsv * kernel[(4*j_10x4)*D + k_3];
                            part_17 += expand_dimsv * kernel[(4*j_10x4 + 1)*D + k_3];
                            part_18 += expand_dimsv * kernel[(4*j_10x4 + 2)*D + k_3];
                            part_19 += expand_dimsv * kernel[(4*j_10x4 + 3)*D + k_3];
                        }
                        wide_11 += part_16;
                        wide_12 += part_17;
                        wide_13 += part_18;
                        wide_14 += part_19;
                    }
                    product_7[4*j_10x4] += wide_11;
                    product_7[4*j_10x4 + 1] += wide_12;
                    product_7[4*j_10x4 + 2] += wide_13;
                    product_7[4*j_10x4 + 3] += wide_14;
                    d_u[4*j_10x4] = (dyv_3 * product[4*j_10x4]) + product_7[4*j_10x4];
                    d_u[4*j_10x4 + 1] = (dyv_3 * product[4*j_10x4 + 1]) + product_7[4*j_10x4 + 1];
                    d_u[4*j_10x4 + 2] = (dyv_3 * product[4*j_10x4 + 2]) + product_7[4*j_10x4 + 2];
                    d_u[4*j_10x4 + 3] = (dyv_3 * product[4*j_10x4 + 3]) + product_7[4*j_10x4 + 3];
                }
                const double dyv_4 = dyv;
                for (int64_t j_10 = i_15_from; j_10 < C; j_10++) {
                    double wide_15 = 0.0;
                    const int64_t q_6_to = (D + 1023) / 1024;
                    for (int64_t q_6 = 0; q_6 < q_6_to; q_6++) {
                        double part_20 = 0.0;
                        const int64_t k_7_to = lc_smaller(1024*q_6 + 1024, D);
                        #pragma omp simd reduction(+:part_20)
                        for (int64_t k_7 = 1024*q_6; k_7 < k_7_to; k_7++) {
                            part_20 += expand_dims[k_7] * kernel[j_10*D + k_7];
                        }
                        wide_15 += part_20;
                    }
                    product_7[j_10] += wide_15;
                    d_u[j_10] = (dyv_4 * product[j_10]) + product_7[j_10];
                }
                for (int64_t v_2_step = 0; v_2_step < n_iter; v_2_step++) {
                    #pragma omp simd
                    for (int64_t i_21 = 0; i_21 < D; i_21++) {
                        product_4[i_21] = 0.0;
                    }
                    for (int64_t j_11 = 0; j_11 < C; j_11++) {
                        product_3[j_11] = 0.0;
                        const double u_savedv = u_saved[(n_iter - v_2_step - 1)*C + j_11];
                        #pragma omp simd
                        for (int64_t i_22 = 0; i_22 < D; i_22++) {
                            product_4[i_22] += u_savedv * kernel[j_11*D + i_22];
                        }
                    }
                    #pragma omp simd
                    for (int64_t i_23 = 0; i_23 < D; i_23++) {
                        ratio[i_23] = b[b_2*D + i_23] / product_4[i_23];
                        sum[i_23] = 0.0;
                    }
                    for (int64_t i_25x4 = 0; i_25x4 < i_15x4_to; i_25x4++) {
                        product_8[4*i_25x4 + 3] = 0.0;
                        product_8[4*i_25x4 + 2] = 0.0;
                        product_8[4*i_25x4 + 1] = 0.0;
                        product_8[4*i_25x4] = 0.0;
                        double wide_16 = 0.0;
                        const int64_t q_7_to = (D + 1023) / 1024;
                        for (int64_t q_7 = 0; q_7 < q_7_to; q_7++) {
                            double part_21 = 0.0;
                            const int64_t j_12_2_to = lc_smaller(1024*q_7 + 1024, D);
                            #pragma omp simd reduction(+:part_21)
                            for (int64_t j_12_2 = 1024*q_7; j_12_2 < j_12_2_to; j_12_2++) {
                                part_21 += kernel[(4*i_25x4)*D + j_12_2] * ratio[j_12_2];
                            }
                            wide_16 += part_21;
                        }
                        product_3[4*i_25x4] += wide_16;
                        const double d_uv = d_u[4*i_25x4];
                        const double product_3v = product_3[4*i_25x4];
                        const double part_2 = (d_uv * (a[b_2*C + 4*i_25x4] / product_3v)) / product_3v;
                        double wide_17 = 0.0;
                        for (int64_t q_8 = 0; q_8 < q_7_to; q_8++) {
                            double part_22 = 0.0;
                            const int64_t j_13_2_to = lc_smaller(1024*q_8 + 1024, D);
                            #pragma omp simd reduction(+:part_22)
                            for (int64_t j_13_2 = 1024*q_8; j_13_2 < j_13_2_to; j_13_2++) {
                                sum[j_13_2] += kernel[(4*i_25x4)*D + j_13_2] * part_2;
                                part_22 += kernel[(4*i_25x4 + 1)*D + j_13_2] * ratio[j_13_2];
                            }
                            wide_17 += part_22;
                        }
                        product_3[4*i_25x4 + 1] += wide_17;
                        d_a[b_2*C + 4*i_25x4] += d_uv / product_3[4*i_25x4];
                        const double d_uv_2 = d_u[4*i_25x4 + 1];
                        const double product_3v_2 = product_3[4*i_25x4 + 1];
                        const double part_3 = (d_uv_2 * (a[b_2*C + 4*i_25x4 + 1] / product_3v_2)) / product_3v_2;
                        double wide_18 = 0.0;
                        for (int64_t q_9 = 0; q_9 < q_7_to; q_9++) {
                            double part_23 = 0.0;
                            const int64_t j_13_3_to = lc_smaller(1024*q_9 + 1024, D);
                            #pragma omp simd reduction(+:part_23)
                            for (int64_t j_13_3 = 1024*q_9; j_13_3 < j_13_3_to; j_13_3++) {
                                sum[j_13_3] += kernel[(4*i_25x4 + 1)*D + j_13_3] * part_3;
                                part_23 += kernel[(4*i_25x4 + 2)*D + j_13_3] * ratio[j_13_3];
                            }
                            wide_18 += part_23;
                        }
                        product_3[4*i_25x4 + 2] += wide_18;
                        d_a[b_2*C + 4*i_25x4 + 1] += d_uv_2 / product_3[4*i_25x4 + 1];
                        const double d_uv_3 = d_u[4*i_25x4 + 2];
                        const double product_3v_3 = product_3[4*i_25x4 + 2];
                        const double part_4 = (d_uv_3 * (a[b_2*C + 4*i_25x4 + 2] / product_3v_3)) / product_3v_3;
                        double wide_19 = 0.0;
                        for (int64_t q_10 = 0; q_10 < q_7_to; q_10++) {
                            double part_24 = 0.0;
                            const int64_t j_13_4_to = lc_smaller(1024*q_10 + 1024, D);
                            #pragma omp simd reduction(+:part_24)
                            for (int64_t j_13_4 = 1024*q_10; j_13_4 < j_13_4_to; j_13_4++) {
                                sum[j_13_4] += kernel[(4*i_25x4 + 2)*D + j_13_4] * part_4;
                                part_24 += kernel[(4*i_25x4 + 3)*D + j_13_4] * ratio[j_13_4];
                            }
                            wide_19 += part_24;
                        }
                        product_3[4*i_25x4 + 3] += wide_19;
                        d_a[b_2*C + 4*i_25x4 + 2] += d_uv_3 / product_3[4*i_25x4 + 2];
                        const double d_uv_4 = d_u[4*i_25x4 + 3];
                        const double product_3v_4 = product_3[4*i_25x4 + 3];
                        const double part_5 = (d_uv_4 * (a[b_2*C + 4*i_25x4 + 3] / product_3v_4)) / product_3v_4;
                        #pragma omp simd
                        for (int64_t j_13_5 = 0; j_13_5 < D; j_13_5++) {
                            sum[j_13_5] += kernel[(4*i_25x4 + 3)*D + j_13_5] * part_5;
                        }
                        d_a[b_2*C + 4*i_25x4 + 3] += d_uv_4 / product_3v_4;
                    }
                    for (int64_t i_25 = i_15_from; i_25 < C; i_25++) {
                        product_8[i_25] = 0.0;
                        double wide_20 = 0.0;
                        const int64_t q_11_to = (D + 1023) / 1024;
                        for (int64_t q_11 = 0; q_11 < q_11_to; q_11++) {
                            double part_25 = 0.0;
                            const int64_t j_12_6_to = lc_smaller(1024*q_11 + 1024, D);
                            #pragma omp simd reduction(+:part_25)
                            for (int64_t j_12_6 = 1024*q_11; j_12_6 < j_12_6_to; j_12_6++) {
                                part_25 += kernel[i_25*D + j_12_6] * ratio[j_12_6];
                            }
                            wide_20 += part_25;
                        }
                        product_3[i_25] += wide_20;
                        const double d_uv_5 = d_u[i_25];
                        const double product_3v_5 = product_3[i_25];
                        const double part_6 = (d_uv_5 * (a[b_2*C + i_25] / product_3v_5)) / product_3v_5;
                        #pragma omp simd
                        for (int64_t j_13_6 = 0; j_13_6 < D; j_13_6++) {
                            sum[j_13_6] += kernel[i_25*D + j_13_6] * part_6;
                        }
                        d_a[b_2*C + i_25] += d_uv_5 / product_3v_5;
                    }
                    #pragma omp simd
                    for (int64_t i_32 = 0; i_32 < D; i_32++) {
                        const double e_8 = -sum[i_32];
                        const double product_4v = product_4[i_32];
                        d_b[b_2*D + i_32] += e_8 / product_4v;
                        expand_dims_2[i_32] = -((e_8 * ratio[i_32]) / product_4v);
                    }
                    for (int64_t j_16x4 = 0; j_16x4 < i_15x4_to; j_16x4++) {
                        double wide_21 = 0.0;
                        double wide_22 = 0.0;
                        double wide_23 = 0.0;
                        double wide_24 = 0.0;
                        const int64_t q_12_to = (D + 1023) / 1024;
                        for (int64_t q_12 = 0; q_12 < q_12_to; q_12++) {
                            double part_26 = 0.0;
                            double part_27 = 0.0;
                            double part_28 = 0.0;
                            double part_29 = 0.0;
                            const int64_t k_2_2_to = lc_smaller(1024*q_12 + 1024, D);
                            #pragma omp simd reduction(+:part_26, part_27, part_28, part_29)
                            for (int64_t k_2_2 = 1024*q_12; k_2_2 < k_2_2_to; k_2_2++) {
                                const double expand_dims_2v = expand_dims_2[k_2_2];
                                part_26 += expand_dims_2v * kernel[(4*j_16x4)*D + k_2_2];
                                part_27 += expand_dims_2v * kernel[(4*j_16x4 + 1)*D + k_2_2];
                                part_28 += expand_dims_2v * kernel[(4*j_16x4 + 2)*D + k_2_2];
                                part_29 += expand_dims_2v * kernel[(4*j_16x4 + 3)*D + k_2_2];
                            }
                            wide_21 += part_26;
                            wide_22 += part_27;
                            wide_23 += part_28;
                            wide_24 += part_29;
                        }
                        product_8[4*j_16x4] += wide_21;
                        product_8[4*j_16x4 + 1] += wide_22;
                        product_8[4*j_16x4 + 2] += wide_23;
                        product_8[4*j_16x4 + 3] += wide_24;
                        d_u[4*j_16x4] = product_8[4*j_16x4];
                        u[4*j_16x4] = u_saved[(n_iter - v_2_step - 1)*C + 4*j_16x4];
                        d_u[4*j_16x4 + 1] = product_8[4*j_16x4 + 1];
                        u[4*j_16x4 + 1] = u_saved[(n_iter - v_2_step - 1)*C + 4*j_16x4 + 1];
                        d_u[4*j_16x4 + 2] = product_8[4*j_16x4 + 2];
                        u[4*j_16x4 + 2] = u_saved[(n_iter - v_2_step - 1)*C + 4*j_16x4 + 2];
                        d_u[4*j_16x4 + 3] = product_8[4*j_16x4 + 3];
                        u[4*j_16x4 + 3] = u_saved[(n_iter - v_2_step - 1)*C + 4*j_16x4 + 3];
                    }
                    for (int64_t j_16 = i_15_from; j_16 < C; j_16++) {
                        double wide_25 = 0.0;
                        const int64_t q_13_to = (D + 1023) / 1024;
                        for (int64_t q_13 = 0; q_13 < q_13_to; q_13++) {
                            double part_30 = 0.0;
                            const int64_t k_2_6_to = lc_smaller(1024*q_13 + 1024, D);
                            #pragma omp simd reduction(+:part_30)
                            for (int64_t k_2_6 = 1024*q_13; k_2_6 < k_2_6_to; k_2_6++) {
                                part_30 += expand_dims_2[k_2_6] * kernel[j_16*D + k_2_6];
                            }
                            wide_25 += part_30;
                        }
                        product_8[j_16] += wide_25;
                        d_u[j_16] = product_8[j_16];
                        u[j_16] = u_saved[(n_iter - v_2_step - 1)*C + j_16];
                    }
                }
            }
        }
    } else {
        for (int64_t b_2 = 0; b_2 < batch; b_2++) {
            const int64_t chunks_2 = lc_smaller(64, C);
            #pragma omp parallel for schedule(static) num_threads(lc_threads) if(lc_threads > 1 && (14*C*D + C) > 40000)
            for (int64_t chunk = 0; chunk < chunks_2; chunk++) {
                const int64_t i_from = C*chunk / chunks_2;
                const int64_t i_to = (C*chunk + C) / chunks_2;
                for (int64_t i = i_from; i < i_to; i++) {
                    #pragma omp simd
                    for (int64_t j = 0; j < D; j++) {
                        kernel_2[i*D + j] = lc_exp((-(double)lam) * cost[i*D + j]);
                    }
                    u_2[i] = e;
                }
            }
            for (int64_t i_3 = 0; i_3 < n_iter; i_3++) {
                #pragma omp simd
                for (int64_t i_5 = 0; i_5 < D; i_5++) {
                    product_6_2[i_5] = 0.0;
                }
                const int64_t chunks_3 = lc_smaller(lc_larger((C / 4), lc_smaller(4, C)), lc_smaller(16, lc_larger((2097152 / (D + 1)), 1)));
                #pragma omp parallel for schedule(static) num_threads(lc_threads) if(lc_threads > 1 && (3*C*D + 5*C) > 40000)
                for (int64_t chunk_2 = 0; chunk_2 < chunks_3; chunk_2++) {
                    #pragma omp simd
                    for (int64_t i_2 = 0; i_2 < D; i_2++) {
                        product_6_2_part[chunk_2*D + i_2] = 0.0;
                    }
                    const int64_t j_2_from = C*chunk_2 / chunks_3;
                    const int64_t j_2_to = (C*chunk_2 + C) / chunks_3;
                    for (int64_t j_2 = j_2_from; j_2 < j_2_to; j_2++) {
                        product_5_2[j_2] = 0.0;
                        const double uv_2_2 = u_2[j_2];
                        u_saved_2[i_3*C + j_2] = uv_2_2;
                        const double uv_8 = uv_2_2;
                        #pragma omp simd
                        for (int64_t i_6 = 0; i_6 < D; i_6++) {
                            product_6_2_part[chunk_2*D + i_6] += uv_8 * kernel_2[j_2*D + i_6];
                        }
                    }
                }
                for (int64_t chunk_3 = 0; chunk_3 < chunks_3; chunk_3++) {
                    #pragma omp simd
                    for (int64_t i_4 = 0; i_4 < D; i_4++) {
                        product_6_2[i_4] += product_6_2_part[chunk_3*D + i_4];
                    }
                }
                const int64_t chunks_4 = lc_smaller(((D + 2047) / 2048), 64);
                #pragma omp parallel for schedule(static) num_threads(lc_threads) if(lc_threads > 1 && 7*D > 40000)
                for (int64_t chunk_4 = 0; chunk_4 < chunks_4; chunk_4++) {
                    const int64_t i_7_from = lc_smaller(64*chunk_4*(D / (64*chunks_4)) + 64*chunk_4, D);
                    const int64_t i_7_to = lc_smaller(64*chunk_4*(D / (64*chunks_4)) + 64*chunk_4 + 64*(D / (64*chunks_4)) + 64, D);
                    #pragma omp simd
                    for (int64_t i_7 = i_7_from; i_7 < i_7_to; i_7++) {
                        divide_2[i_7] = b[b_2*D + i_7] / product_6_2[i_7];
                    }
                }
                const int64_t chunks_5 = lc_smaller((C / 4), 64);
                #pragma omp parallel for schedule(static) num_threads(lc_threads) if(lc_threads > 1 && (16*D*(C / 4) + 36*(C / 4)) > 40000)
                for (int64_t chunk_5 = 0; chunk_5 < chunks_5; chunk_5++) {
                    const int64_t i_9x4_from = chunk_5*(C / 4) / chunks_5;
                    const int64_t i_9x4_to_2 = (chunk_5*(C / 4) + (C / 4)) / chunks_5;
                    for (int64_t i_9x4 = i_9x4_from; i_9x4 < i_9x4_to_2; i_9x4++) {
                        double wide_26 = 0.0;
                        double wide_2_2 = 0.0;
                        double wide_3_2 = 0.0;
                        double wide_4_2 = 0.0;
                        const int64_t q_to_2 = (D + 1023) / 1024;
                        for (int64_t q = 0; q < q_to_2; q++) {
                            double part_31 = 0.0;
                            double part_7_2 = 0.0;
                            double part_8_2 = 0.0;
                            double part_9_2 = 0.0;
                            const int64_t j_4_2_to_2 = lc_smaller(1024*q + 1024, D);
                            #pragma omp simd reduction(+:part_31, part_7_2, part_8_2, part_9_2)
                            for (int64_t j_4_2 = 1024*q; j_4_2 < j_4_2_to_2; j_4_2++) {
                                const double dividev_2 = divide_2[j_4_2];
                                part_31 += kernel_2[(4*i_9x4)*D + j_4_2] * dividev_2;
                                part_7_2 += kernel_2[(4*i_9x4 + 1)*D + j_4_2] * dividev_2;
                                part_8_2 += kernel_2[(4*i_9x4 + 2)*D + j_4_2] * dividev_2;
                                part_9_2 += kernel_2[(4*i_9x4 + 3)*D + j_4_2] * dividev_2;
                            }
                            wide_26 += part_31;
                            wide_2_2 += part_7_2;
                            wide_3_2 += part_8_2;
                            wide_4_2 += part_9_2;
                        }
                        product_5_2[4*i_9x4] += wide_26;
                        product_5_2[4*i_9x4 + 1] += wide_2_2;
                        product_5_2[4*i_9x4 + 2] += wide_3_2;
                        product_5_2[4*i_9x4 + 3] += wide_4_2;
                        u_2[4*i_9x4] = a[b_2*C + 4*i_9x4] / product_5_2[4*i_9x4];
                        u_2[4*i_9x4 + 1] = a[b_2*C + 4*i_9x4 + 1] / product_5_2[4*i_9x4 + 1];
                        u_2[4*i_9x4 + 2] = a[b_2*C + 4*i_9x4 + 2] / product_5_2[4*i_9x4 + 2];
                        u_2[4*i_9x4 + 3] = a[b_2*C + 4*i_9x4 + 3] / product_5_2[4*i_9x4 + 3];
                    }
                }
                const int64_t chunks_6 = lc_smaller(64, C - 4*(C / 4));
                #pragma omp parallel for schedule(static) num_threads(lc_threads) if(lc_threads > 1 && (4*C*D + 9*C - 16*D*(C / 4) - 36*(C / 4)) > 40000)
                for (int64_t chunk_6 = 0; chunk_6 < chunks_6; chunk_6++) {
                    const int64_t i_9_from_2 = lc_floor_div_i64(C*chunk_6 - 4*chunk_6*(C / 4), chunks_6) + 4*(C / 4);
                    const int64_t i_9_to = lc_floor_div_i64(C*chunk_6 + C - 4*chunk_6*(C / 4) - 4*(C / 4), chunks_6) + 4*(C / 4);
                    for (int64_t i_9 = i_9_from_2; i_9 < i_9_to; i_9++) {
                        double wide_5_2 = 0.0;
                        const int64_t q_2_to_2 = (D + 1023) / 1024;
                        for (int64_t q_2 = 0; q_2 < q_2_to_2; q_2++) {
                            double part_10_2 = 0.0;
                            const int64_t j_4_6_to_2 = lc_smaller(1024*q_2 + 1024, D);
                            #pragma omp simd reduction(+:part_10_2)
                            for (int64_t j_4_6 = 1024*q_2; j_4_6 < j_4_6_to_2; j_4_6++) {
                                part_10_2 += kernel_2[i_9*D + j_4_6] * divide_2[j_4_6];
                            }
                            wide_5_2 += part_10_2;
                        }
                        product_5_2[i_9] += wide_5_2;
                        u_2[i_9] = a[b_2*C + i_9] / product_5_2[i_9];
                    }
                }
            }
            #pragma omp simd
            for (int64_t i_11 = 0; i_11 < D; i_11++) {
                product_2_2[i_11] = 0.0;
            }
            const int64_t chunks_7 = lc_smaller(lc_larger((C / 4), lc_smaller(4, C)), lc_smaller(16, lc_larger((2097152 / (D + 1)), 1)));
            #pragma omp parallel for schedule(static) num_threads(lc_threads) if(lc_threads > 1 && (3*C*D + 3*C) > 40000)
            for (int64_t chunk_7 = 0; chunk_7 < chunks_7; chunk_7++) {
                #pragma omp simd
                for (int64_t i_8 = 0; i_8 < D; i_8++) {
                    product_2_2_part[chunk_7*D + i_8] = 0.0;
                }
                const int64_t j_5_from = C*chunk_7 / chunks_7;
                const int64_t j_5_to = (C*chunk_7 + C) / chunks_7;
                for (int64_t j_5 = j_5_from; j_5 < j_5_to; j_5++) {
                    product_9[j_5] = 0.0;
                    const double uv_3_2 = u_2[j_5];
                    #pragma omp simd
                    for (int64_t i_12 = 0; i_12 < D; i_12++) {
                        product_2_2_part[chunk_7*D + i_12] += uv_3_2 * kernel_2[j_5*D + i_12];
                    }
                }
            }
            for (int64_t chunk_8 = 0; chunk_8 < chunks_7; chunk_8++) {
                #pragma omp simd
                for (int64_t i_10 = 0; i_10 < D; i_10++) {
                    product_2_2[i_10] += product_2_2_part[chunk_8*D + i_10];
                }
            }
            const int64_t chunks_8 = lc_smaller(((D + 2047) / 2048), 64);
            #pragma omp parallel for schedule(static) num_threads(lc_threads) if(lc_threads > 1 && 8*D > 40000)
            for (int64_t chunk_9 = 0; chunk_9 < chunks_8; chunk_9++) {
                const int64_t i_13_from = lc_smaller(64*chunk_9*(D / (64*chunks_8)) + 64*chunk_9, D);
                const int64_t i_13_to = lc_smaller(64*chunk_9*(D / (64*chunks_8)) + 64*chunk_9 + 64*(D / (64*chunks_8)) + 64, D);
                #pragma omp simd
                for (int64_t i_13 = i_13_from; i_13 < i_13_to; i_13++) {
                    v_2[i_13] = b[b_2*D + i_13] / product_2_2[i_13];
                    d_ratio_2[i_13] = 0.0;
                }
            }
            const double dyv_5 = dy[b_2];
            const int64_t chunks_9 = lc_smaller(lc_larger(((C / 4) / 4), lc_smaller((C / 4), 4)), lc_smaller(16, lc_larger((2097152 / (D + 1)), 1)));
            #pragma omp parallel for schedule(static) num_threads(lc_threads) if(lc_threads > 1 && (56*D*(C / 4) + 24*(C / 4)) > 40000)
            for (int64_t chunk_10 = 0; chunk_10 < chunks_9; chunk_10++) {
                #pragma omp simd
                for (int64_t i_14 = 0; i_14 < D; i_14++) {
                    d_ratio_2_part[chunk_10*D + i_14] = 0.0;
                }
                const int64_t i_15x4_from = chunk_10*(C / 4) / chunks_9;
                const int64_t i_15x4_to_2 = (chunk_10*(C / 4) + (C / 4)) / chunks_9;
                for (int64_t i_15x4 = i_15x4_from; i_15x4 < i_15x4_to_2; i_15x4++) {
                    d_a[b_2*C + 4*i_15x4 + 3] = 0.0;
                    product_7_2[4*i_15x4 + 3] = 0.0;
                    d_a[b_2*C + 4*i_15x4 + 2] = 0.0;
                    product_7_2[4*i_15x4 + 2] = 0.0;
                    d_a[b_2*C + 4*i_15x4 + 1] = 0.0;
                    product_7_2[4*i_15x4 + 1] = 0.0;
                    product_7_2[4*i_15x4] = 0.0;
                    d_a[b_2*C + 4*i_15x4] = 0.0;
                    double wide_6_2 = 0.0;
                    double wide_7_2 = 0.0;
                    double wide_8_2 = 0.0;
                    double wide_9_2 = 0.0;
                    const double uv_4_2 = u_2[4*i_15x4];
                    const double uv_5_2 = u_2[4*i_15x4 + 1];
                    const double uv_6_2 = u_2[4*i_15x4 + 2];
                    const double uv_7_2 = u_2[4*i_15x4 + 3];
                    const int64_t q_3_to_2 = (D + 1023) / 1024;
                    for (int64_t q_3 = 0; q_3 < q_3_to_2; q_3++) {
                        double part_11_2 = 0.0;
                        double part_12_2 = 0.0;
                        double part_13_2 = 0.0;
                        double part_14_2 = 0.0;
                        const int64_t j_6_2_to_2 = lc_smaller(1024*q_3 + 1024, D);
                        #pragma omp simd reduction(+:part_11_2, part_12_2, part_13_2, part_14_2)
                        for (int64_t j_6_2 = 1024*q_3; j_6_2 < j_6_2_to_2; j_6_2++) {
                            const double e_2_2 = kernel_2[(4*i_15x4)*D + j_6_2] * cost[(4*i_15x4)*D + j_6_2];
                            const double vv_2 = v_2[j_6_2];
                            part_11_2 += e_2_2 * vv_2;
                            d_ratio_2_part[chunk_10*D + j_6_2] += e_2_2 * (dyv_5 * uv_4_2);
                            const double e_3_2 = kernel_2[(4*i_15x4 + 1)*D + j_6_2] * cost[(4*i_15x4 + 1)*D + j_6_2];
                            part_12_2 += e_3_2 * vv_2;
                            d_ratio_2_part[chunk_10*D + j_6_2] += e_3_2 * (dyv_5 * uv_5_2);
                            const double e_4_2 = kernel_2[(4*i_15x4 + 2)*D + j_6_2] * cost[(4*i_15x4 + 2)*D + j_6_2];
                            part_13_2 += e_4_2 * vv_2;
                            d_ratio_2_part[chunk_10*D + j_6_2] += e_4_2 * (dyv_5 * uv_6_2);
                            const double e_5_2 = kernel_2[(4*i_15x4 + 3)*D + j_6_2] * cost[(4*i_15x4 + 3)*D + j_6_2];
                            part_14_2 += e_5_2 * vv_2;
                            d_ratio_2_part[chunk_10*D + j_6_2] += e_5_2 * (dyv_5 * uv_7_2);
                        }
                        wide_6_2 += part_11_2;
                        wide_7_2 += part_12_2;
                        wide_8_2 += part_13_2;
                        wide_9_2 += part_14_2;
                    }
                    product_9[4*i_15x4] += wide_6_2;
                    product_9[4*i_15x4 + 1] += wide_7_2;
                    product_9[4*i_15x4 + 2] += wide_8_2;
                    product_9[4*i_15x4 + 3] += wide_9_2;
                }
            }
            for (int64_t chunk_11 = 0; chunk_11 < chunks_9; chunk_11++) {
                #pragma omp simd
                for (int64_t i_16 = 0; i_16 < D; i_16++) {
                    d_ratio_2[i_16] += d_ratio_2_part[chunk_11*D + i_16];
                }
            }
            const double dyv_2_2 = dyv_5;
            const int64_t chunks_10 = lc_smaller(lc_larger(((C - 4*(C / 4)) / 4), lc_smaller(4, C - 4*(C / 4))), lc_smaller(16, lc_larger((2097152 / (D + 1)), 1)));
            #pragma omp parallel for schedule(static) num_threads(lc_threads) if(lc_threads > 1 && (14*C*D + 7*C - 56*D*(C / 4) - 28*(C / 4)) > 40000)
            for (int64_t chunk_12 = 0; chunk_12 < chunks_10; chunk_12++) {
                #pragma omp simd
                for (int64_t i_17 = 0; i_17 < D; i_17++) {
                    d_ratio_2_part_2[chunk_12*D + i_17] = 0.0;
                }
                const int64_t i_15_from_2 = lc_floor_div_i64(C*chunk_12 - 4*chunk_12*(C / 4), chunks_10) + 4*(C / 4);
                const int64_t i_15_to = lc_floor_div_i64(C*chunk_12 + C - 4*chunk_12*(C / 4) - 4*(C / 4), chunks_10) + 4*(C / 4);
                for (int64_t i_15 = i_15_from_2; i_15 < i_15_to; i_15++) {
                    product_7_2[i_15] = 0.0;
                    d_a[b_2*C + i_15] = 0.0;
                    double wide_10_2 = 0.0;
                    const double e_7_2 = dyv_2_2 * u_2[i_15];
                    const int64_t q_4_to_2 = (D + 1023) / 1024;
                    for (int64_t q_4 = 0; q_4 < q_4_to_2; q_4++) {
                        double part_15_2 = 0.0;
                        const int64_t j_6_6_to_2 = lc_smaller(1024*q_4 + 1024, D);
                        #pragma omp simd reduction(+:part_15_2)
                        for (int64_t j_6_6 = 1024*q_4; j_6_6 < j_6_6_to_2; j_6_6++) {
                            const double e_6_2 = kernel_2[i_15*D + j_6_6] * cost[i_15*D + j_6_6];
                            part_15_2 += e_6_2 * v_2[j_6_6];
                            d_ratio_2_part_2[chunk_12*D + j_6_6] += e_6_2 * e_7_2;
                        }
                        wide_10_2 += part_15_2;
                    }
                    product_9[i_15] += wide_10_2;
                }
            }
            for (int64_t chunk_13 = 0; chunk_13 < chunks_10; chunk_13++) {
                #pragma omp simd
                for (int64_t i_18 = 0; i_18 < D; i_18++) {
                    d_ratio_2[i_18] += d_ratio_2_part_2[chunk_13*D + i_18];
                }
            }
            #pragma omp parallel for schedule(static) num_threads(lc_threads) if(lc_threads > 1 && 17*D > 40000)
            for (int64_t chunk_14 = 0; chunk_14 < chunks_8; chunk_14++) {
                const int64_t i_19_from = lc_smaller(64*chunk_14*(D / (64*chunks_8)) + 64*chunk_14, D);
                const int64_t i_19_to = lc_smaller(64*chunk_14*(D / (64*chunks_8)) + 64*chunk_14 + 64*(D / (64*chunks_8)) + 64, D);
                #pragma omp simd
                for (int64_t i_19 = i_19_from; i_19 < i_19_to; i_19++) {
                    const double d_ratiov_2 = d_ratio_2[i_19];
                    const double product_2v_2 = product_2_2[i_19];
                    d_b[b_2*D + i_19] = d_ratiov_2 / product_2v_2;
                    expand_dims_3[i_19] = -((d_ratiov_2 * v_2[i_19]) / product_2v_2);
                }
            }
            const double dyv_3_2 = dyv_5;
            const int64_t chunks_11 = lc_smaller((C / 4), 64);
            #pragma omp parallel for schedule(static) num_threads(lc_threads) if(lc_threads > 1 && (16*D*(C / 4) + 28*(C / 4)) > 40000)
            for (int64_t chunk_15 = 0; chunk_15 < chunks_11; chunk_15++) {
                const int64_t j_10x4_from = chunk_15*(C / 4) / chunks_11;
                const int64_t j_10x4_to = (chunk_15*(C / 4) + (C / 4)) / chunks_11;
                for (int64_t j_10x4 = j_10x4_from; j_10x4 < j_10x4_to; j_10x4++) {
                    double wide_11_2 = 0.0;
                    double wide_12_2 = 0.0;
                    double wide_13_2 = 0.0;
                    double wide_14_2 = 0.0;
                    const int64_t q_5_to_2 = (D + 1023) / 1024;
                    for (int64_t q_5 = 0; q_5 < q_5_to_2; q_5++) {
                        double part_16_2 = 0.0;
                        double part_17_2 = 0.0;
                        double part_18_2 = 0.0;
                        double part_19_2 = 0.0;
                        const int64_t k_3_to_2 = lc_smaller(1024*q_5 + 1024, D);
                        #pragma omp simd reduction(+:part_16_2, part_17_2, part_18_2, part_19_2)
                        for (int64_t k_3 = 1024*q_5; k_3 < k_3_to_2; k_3++) {
                            const double expand_dimsv_2 = expand_dims_3[k_3];
                            part_16_2 += expand_dimsv_2 * kernel_2[(4*j_10x4)*D + k_3];
                            part_17_2 += expand_dimsv_2 * kernel_2[(4*j_10x4 + 1)*D + k_3];
                            part_18_2 += expand_dimsv_2 * kernel_2[(4*j_10x4 + 2)*D + k_3];
                            part_19_2 += expand_dimsv_2 * kernel_2[(4*j_10x4 + 3)*D + k_3];
                        }
                        wide_11_2 += part_16_2;
                        wide_12_2 += part_17_2;
                        wide_13_2 += part_18_2;
                        wide_14_2 += part_19_2;
                    }
                    product_7_2[4*j_10x4] += wide_11_2;
                    product_7_2[4*j_10x4 + 1] += wide_12_2;
                    product_7_2[4*j_10x4 + 2] += wide_13_2;
                    product_7_2[4*j_10x4 + 3] += wide_14_2;
                    d_u_2[4*j_10x4] = (dyv_3_2 * product_9[4*j_10x4]) + product_7_2[4*j_10x4];
                    d_u_2[4*j_10x4 + 1] = (dyv_3_2 * product_9[4*j_10x4 + 1]) + product_7_2[4*j_10x4 + 1];
                    d_u_2[4*j_10x4 + 2] = (dyv_3_2 * product_9[4*j_10x4 + 2]) + product_7_2[4*j_10x4 + 2];
                    d_u_2[4*j_10x4 + 3] = (dyv_3_2 * product_9[4*j_10x4 + 3]) + product_7_2[4*j_10x4 + 3];
                }
            }
            const double dyv_4_2 = dyv_5;
            const int64_t chunks_12 = lc_smaller(64, C - 4*(C / 4));
            #pragma omp parallel for schedule(static) num_threads(lc_threads) if(lc_threads > 1 && (4*C*D + 7*C - 16*D*(C / 4) - 28*(C / 4)) > 40000)
            for (int64_t chunk_16 = 0; chunk_16 < chunks_12; chunk_16++) {
                const int64_t j_10_from = lc_floor_div_i64(C*chunk_16 - 4*chunk_16*(C / 4), chunks_12) + 4*(C / 4);
                const int64_t j_10_to = lc_floor_div_i64(C*chunk_16 + C - 4*chunk_16*(C / 4) - 4*(C / 4), chunks_12) + 4*(C / 4);
                for (int64_t j_10 = j_10_from; j_10 < j_10_to; j_10++) {
                    double wide_15_2 = 0.0;
                    const int64_t q_6_to_2 = (D + 1023) / 1024;
                    for (int64_t q_6 = 0; q_6 < q_6_to_2; q_6++) {
                        double part_20_2 = 0.0;
                        const int64_t k_7_to_2 = lc_smaller(1024*q_6 + 1024, D);
                        #pragma omp simd reduction(+:part_20_2)
                        for (int64_t k_7 = 1024*q_6; k_7 < k_7_to_2; k_7++) {
                            part_20_2 += expand_dims_3[k_7] * kernel_2[j_10*D + k_7];
                        }
                        wide_15_2 += part_20_2;
                    }
                    product_7_2[j_10] += wide_15_2;
                    d_u_2[j_10] = (dyv_4_2 * product_9[j_10]) + product_7_2[j_10];
                }
            }
            for (int64_t v_2_step = 0; v_2_step < n_iter; v_2_step++) {
                #pragma omp simd
                for (int64_t i_21 = 0; i_21 < D; i_21++) {
                    product_4_2[i_21] = 0.0;
                }
                #pragma omp parallel for schedule(static) num_threads(lc_threads) if(lc_threads > 1 && (3*C*D + 3*C) > 40000)
                for (int64_t chunk_17 = 0; chunk_17 < chunks_7; chunk_17++) {
                    #pragma omp simd
                    for (int64_t i_20 = 0; i_20 < D; i_20++) {
                        product_4_2_part[chunk_17*D + i_20] = 0.0;
                    }
                    const int64_t j_11_from = C*chunk_17 / chunks_7;
                    const int64_t j_11_to = (C*chunk_17 + C) / chunks_7;
                    for (int64_t j_11 = j_11_from; j_11 < j_11_to; j_11++) {
                        product_3_2[j_11] = 0.0;
                        const double u_savedv_2 = u_saved_2[(n_iter - v_2_step - 1)*C + j_11];
                        #pragma omp simd
                        for (int64_t i_22 = 0; i_22 < D; i_22++) {
                            product_4_2_part[chunk_17*D + i_22] += u_savedv_2 * kernel_2[j_11*D + i_22];
                        }
                    }
                }
                for (int64_t chunk_18 = 0; chunk_18 < chunks_7; chunk_18++) {
                    #pragma omp simd
                    for (int64_t i_24 = 0; i_24 < D; i_24++) {
                        product_4_2[i_24] += product_4_2_part[chunk_18*D + i_24];
                    }
                }
                #pragma omp parallel for schedule(static) num_threads(lc_threads) if(lc_threads > 1 && 8*D > 40000)
                for (int64_t chunk_19 = 0; chunk_19 < chunks_8; chunk_19++) {
                    const int64_t i_23_from = lc_smaller(64*chunk_19*(D / (64*chunks_8)) + 64*chunk_19, D);
                    const int64_t i_23_to = lc_smaller(64*chunk_19*(D / (64*chunks_8)) + 64*chunk_19 + 64*(D / (64*chunks_8)) + 64, D);
                    #pragma omp simd
                    for (int64_t i_23 = i_23_from; i_23 < i_23_to; i_23++) {
                        ratio_2[i_23] = b[b_2*D + i_23] / product_4_2[i_23];
                        sum_2[i_23] = 0.0;
                    }
                }
                #pragma omp parallel for schedule(static) num_threads(lc_threads) if(lc_threads > 1 && (28*D*(C / 4) + 95*(C / 4)) > 40000)
                for (int64_t chunk_20 = 0; chunk_20 < chunks_9; chunk_20++) {
                    #pragma omp simd
                    for (int64_t i_26 = 0; i_26 < D; i_26++) {
                        sum_2_part[chunk_20*D + i_26] = 0.0;
                    }
                    const int64_t i_25x4_from = chunk_20*(C / 4) / chunks_9;
                    const int64_t i_25x4_to = (chunk_20*(C / 4) + (C / 4)) / chunks_9;
                    for (int64_t i_25x4 = i_25x4_from; i_25x4 < i_25x4_to; i_25x4++) {
                        product_8_2[4*i_25x4 + 3] = 0.0;
                        product_8_2[4*i_25x4 + 2] = 0.0;
                        product_8_2[4*i_25x4 + 1] = 0.0;
                        product_8_2[4*i_25x4] = 0.0;
                        double wide_16_2 = 0.0;
                        const int64_t q_7_to_2 = (D + 1023) / 1024;
                        for (int64_t q_7 = 0; q_7 < q_7_to_2; q_7++) {
                            double part_21_2 = 0.0;
                            const int64_t j_12_2_to_2 = lc_smaller(1024*q_7 + 1024, D);
                            #pragma omp simd reduction(+:part_21_2)
                            for (int64_t j_12_2 = 1024*q_7; j_12_2 < j_12_2_to_2; j_12_2++) {
                                part_21_2 += kernel_2[(4*i_25x4)*D + j_12_2] * ratio_2[j_12_2];
                            }
                            wide_16_2 += part_21_2;
                        }
                        product_3_2[4*i_25x4] += wide_16_2;
                        const double d_uv_6 = d_u_2[4*i_25x4];
                        const double product_3v_6 = product_3_2[4*i_25x4];
                        const double part_2_2 = (d_uv_6 * (a[b_2*C + 4*i_25x4] / product_3v_6)) / product_3v_6;
                        double wide_17_2 = 0.0;
                        for (int64_t q_8 = 0; q_8 < q_7_to_2; q_8++) {
                            double part_22_2 = 0.0;
                            const int64_t j_13_2_to_2 = lc_smaller(1024*q_8 + 1024, D);
                            #pragma omp simd reduction(+:part_22_2)
                            for (int64_t j_13_2 = 1024*q_8; j_13_2 < j_13_2_to_2; j_13_2++) {
                                sum_2_part[chunk_20*D + j_13_2] += kernel_2[(4*i_25x4)*D + j_13_2] * part_2_2;
                                part_22_2 += kernel_2[(4*i_25x4 + 1)*D + j_13_2] * ratio_2[j_13_2];
                            }
                            wide_17_2 += part_22_2;
                        }
                        product_3_2[4*i_25x4 + 1] += wide_17_2;
                        d_a[b_2*C + 4*i_25x4] += d_uv_6 / product_3_2[4*i_25x4];
                        const double d_uv_2_2 = d_u_2[4*i_25x4 + 1];
                        const double product_3v_2_2 = product_3_2[4*i_25x4 + 1];
                        const double part_3_2 = (d_uv_2_2 * (a[b_2*C + 4*i_25x4 + 1] / product_3v_2_2)) / product_3v_2_2;
                        double wide_18_2 = 0.0;
                        for (int64_t q_9 = 0; q_9 < q_7_to_2; q_9++) {
                            double part_23_2 = 0.0;
                            const int64_t j_13_3_to_2 = lc_smaller(1024*q_9 + 1024, D);
                            #pragma omp simd reduction(+:part_23_2)
                            for (int64_t j_13_3 = 1024*q_9; j_13_3 < j_13_3_to_2; j_13_3++) {
                                sum_2_part[chunk_20*D + j_13_3] += kernel_2[(4*i_25x4 + 1)*D + j_13_3] * part_3_2;
                                part_23_2 += kernel_2[(4*i_25x4 + 2)*D + j_13_3] * ratio_2[j_13_3];
                            }
                            wide_18_2 += part_23_2;
                        }
                        product_3_2[4*i_25x4 + 2] += wide_18_2;
                        d_a[b_2*C + 4*i_25x4 + 1] += d_uv_2_2 / product_3_2[4*i_25x4 + 1];
                        const double d_uv_3_2 = d_u_2[4*i_25x4 + 2];
                        const double product_3v_3_2 = product_3_2[4*i_25x4 + 2];
                        const double part_4_2 = (d_uv_3_2 * (a[b_2*C + 4*i_25x4 + 2] / product_3v_3_2)) / product_3v_3_2;
                        double wide_19_2 = 0.0;
                        for (int64_t q_10 = 0; q_10 < q_7_to_2; q_10++) {
                            double part_24_2 = 0.0;
                            const int64_t j_13_4_to_2 = lc_smaller(1024*q_10 + 1024, D);
                            #pragma omp simd reduction(+:part_24_2)
                            for (int64_t j_13_4 = 1024*q_10; j_13_4 < j_13_4_to_2; j_13_4++) {
                                sum_2_part[chunk_20*D + j_13_4] += kernel_2[(4*i_25x4 + 2)*D + j_13_4] * part_4_2;
                                part_24_2 += kernel_2[(4*i_25x4 + 3)*D + j_13_4] * ratio_2[j_13_4];
                            }
                            wide_19_2 += part_24_2;
                        }
                        product_3_2[4*i_25x4 + 3] += wide_19_2;
                        d_a[b_2*C + 4*i_25x4 + 2] += d_uv_3_2 / product_3_2[4*i_25x4 + 2];
                        const double d_uv_4_2 = d_u_2[4*i_25x4 + 3];
                        const double product_3v_4_2 = product_3_2[4*i_25x4 + 3];
                        const double part_5_2 = (d_uv_4_2 * (a[b_2*C + 4*i_25x4 + 3] / product_3v_4_2)) / product_3v_4_2;
                        #pragma omp simd
                        for (int64_t j_13_5 = 0; j_13_5 < D; j_13_5++) {
                            sum_2_part[chunk_20*D + j_13_5] += kernel_2[(4*i_25x4 + 3)*D + j_13_5] * part_5_2;
                        }
                        d_a[b_2*C + 4*i_25x4 + 3] += d_uv_4_2 / product_3v_4_2;
                    }
                }
                for (int64_t chunk_21 = 0; chunk_21 < chunks_9; chunk_21++) {
                    #pragma omp simd
                    for (int64_t i_27 = 0; i_27 < D; i_27++) {
                        sum_2[i_27] += sum_2_part[chunk_21*D + i_27];
                    }
                }
                #pragma omp parallel for schedule(static) num_threads(lc_threads) if(lc_threads > 1 && (7*C*D + 23*C - 28*D*(C / 4) - 92*(C / 4)) > 40000)
                for (int64_t chunk_22 = 0; chunk_22 < chunks_10; chunk_22++) {
                    #pragma omp simd
                    for (int64_t i_28 = 0; i_28 < D; i_28++) {
                        sum_2_part_2[chunk_22*D + i_28] = 0.0;
                    }
                    const int64_t i_25_from = lc_floor_div_i64(C*chunk_22 - 4*chunk_22*(C / 4), chunks_10) + 4*(C / 4);
                    const int64_t i_25_to = lc_floor_div_i64(C*chunk_22 + C - 4*chunk_22*(C / 4) - 4*(C / 4), chunks_10) + 4*(C / 4);
                    for (int64_t i_25 = i_25_from; i_25 < i_25_to; i_25++) {
                        product_8_2[i_25] = 0.0;
                        double wide_20_2 = 0.0;
                        const int64_t q_11_to_2 = (D + 1023) / 1024;
                        for (int64_t q_11 = 0; q_11 < q_11_to_2; q_11++) {
                            double part_25_2 = 0.0;
                            const int64_t j_12_6_to_2 = lc_smaller(1024*q_11 + 1024, D);
                            #pragma omp simd reduction(+:part_25_2)
                            for (int64_t j_12_6 = 1024*q_11; j_12_6 < j_12_6_to_2; j_12_6++) {
                                part_25_2 += kernel_2[i_25*D + j_12_6] * ratio_2[j_12_6];
                            }
                            wide_20_2 += part_25_2;
                        }
                        product_3_2[i_25] += wide_20_2;
                        const double d_uv_5_2 = d_u_2[i_25];
                        const double product_3v_5_2 = product_3_2[i_25];
                        const double part_6_2 = (d_uv_5_2 * (a[b_2*C + i_25] / product_3v_5_2)) / product_3v_5_2;
                        #pragma omp simd
                        for (int64_t j_13_6 = 0; j_13_6 < D; j_13_6++) {
                            sum_2_part_2[chunk_22*D + j_13_6] += kernel_2[i_25*D + j_13_6] * part_6_2;
                        }
                        d_a[b_2*C + i_25] += d_uv_5_2 / product_3v_5_2;
                    }
                }
                for (int64_t chunk_23 = 0; chunk_23 < chunks_10; chunk_23++) {
                    #pragma omp simd
                    for (int64_t i_29 = 0; i_29 < D; i_29++) {
                        sum_2[i_29] += sum_2_part_2[chunk_23*D + i_29];
                    }
                }
                #pragma omp parallel for schedule(static) num_threads(lc_threads) if(lc_threads > 1 && 18*D > 40000)
                for (int64_t chunk_24 = 0; chunk_24 < chunks_8; chunk_24++) {
                    const int64_t i_32_from = lc_smaller(64*chunk_24*(D / (64*chunks_8)) + 64*chunk_24, D);
                    const int64_t i_32_to = lc_smaller(64*chunk_24*(D / (64*chunks_8)) + 64*chunk_24 + 64*(D / (64*chunks_8)) + 64, D);
                    #pragma omp simd
                    for (int64_t i_32 = i_32_from; i_32 < i_32_to; i_32++) {
                        const double e_8_2 = -sum_2[i_32];
                        const double product_4v_2 = product_4_2[i_32];
                        d_b[b_2*D + i_32] += e_8_2 / product_4v_2;
                        expand_dims_2_2[i_32] = -((e_8_2 * ratio_2[i_32]) / product_4v_2);
                    }
                }
                #pragma omp parallel for schedule(static) num_threads(lc_threads) if(lc_threads > 1 && (16*D*(C / 4) + 24*(C / 4)) > 40000)
                for (int64_t chunk_25 = 0; chunk_25 < chunks_11; chunk_25++) {
                    const int64_t j_16x4_from = chunk_25*(C / 4) / chunks_11;
                    const int64_t j_16x4_to = (chunk_25*(C / 4) + (C / 4)) / chunks_11;
                    for (int64_t j_16x4 = j_16x4_from; j_16x4 < j_16x4_to; j_16x4++) {
                        double wide_21_2 = 0.0;
                        double wide_22_2 = 0.0;
                        double wide_23_2 = 0.0;
                        double wide_24_2 = 0.0;
                        const int64_t q_12_to_2 = (D + 1023) / 1024;
                        for (int64_t q_12 = 0; q_12 < q_12_to_2; q_12++) {
                            double part_26_2 = 0.0;
                            double part_27_2 = 0.0;
                            double part_28_2 = 0.0;
                            double part_29_2 = 0.0;
                            const int64_t k_2_2_to_2 = lc_smaller(1024*q_12 + 1024, D);
                            #pragma omp simd reduction(+:part_26_2, part_27_2, part_28_2, part_29_2)
                            for (int64_t k_2_2 = 1024*q_12; k_2_2 < k_2_2_to_2; k_2_2++) {
                                const double expand_dims_2v_2 = expand_dims_2_2[k_2_2];
                                part_26_2 += expand_dims_2v_2 * kernel_2[(4*j_16x4)*D + k_2_2];
                                part_27_2 += expand_dims_2v_2 * kernel_2[(4*j_16x4 + 1)*D + k_2_2];
                                part_28_2 += expand_dims_2v_2 * kernel_2[(4*j_16x4 + 2)*D + k_2_2];
                                part_29_2 += expand_dims_2v_2 * kernel_2[(4*j_16x4 + 3)*D + k_2_2];
                            }
                            wide_21_2 += part_26_2;
                            wide_22_2 += part_27_2;
                            wide_23_2 += part_28_2;
                            wide_24_2 += part_29_2;
                        }
                        product_8_2[4*j_16x4] += wide_21_2;
                        product_8_2[4*j_16x4 + 1] += wide_22_2;
                        product_8_2[4*j_16x4 + 2] += wide_23_2;
                        product_8_2[4*j_16x4 + 3] += wide_24_2;
                        d_u_2[4*j_16x4] = product_8_2[4*j_16x4];
                        u_2[4*j_16x4] = u_saved_2[(n_iter - v_2_step - 1)*C + 4*j_16x4];
                        d_u_2[4*j_16x4 + 1] = product_8_2[4*j_16x4 + 1];
                        u_2[4*j_16x4 + 1] = u_saved_2[(n_iter - v_2_step - 1)*C + 4*j_16x4 + 1];
                        d_u_2[4*j_16x4 + 2] = product_8_2[4*j_16x4 + 2];
                        u_2[4*j_16x4 + 2] = u_saved_2[(n_iter - v_2_step - 1)*C + 4*j_16x4 + 2];
                        d_u_2[4*j_16x4 + 3] = product_8_2[4*j_16x4 + 3];
                        u_2[4*j_16x4 + 3] = u_saved_2[(n_iter - v_2_step - 1)*C + 4*j_16x4 + 3];
                    }
                }
                #pragma omp parallel for schedule(static) num_threads(lc_threads) if(lc_threads > 1 && (4*C*D + 6*C - 16*D*(C / 4) - 24*(C / 4)) > 40000)
                for (int64_t chunk_26 = 0; chunk_26 < chunks_12; chunk_26++) {
                    const int64_t j_16_from = lc_floor_div_i64(C*chunk_26 - 4*chunk_26*(C / 4), chunks_12) + 4*(C / 4);
                    const int64_t j_16_to = lc_floor_div_i64(C*chunk_26 + C - 4*chunk_26*(C / 4) - 4*(C / 4), chunks_12) + 4*(C / 4);
                    for (int64_t j_16 = j_16_from; j_16 < j_16_to; j_16++) {
                        double wide_25_2 = 0.0;
                        const int64_t q_13_to_2 = (D + 1023) / 1024;
                        for (int64_t q_13 = 0; q_13 < q_13_to_2; q_13++) {
                            double part_30_2 = 0.0;
                            const int64_t k_2_6_to_2 = lc_smaller(1024*q_13 + 1024, D);
                            #pragma omp simd reduction(+:part_30_2)
                            for (int64_t k_2_6 = 1024*q_13; k_2_6 < k_2_6_to_2; k_2_6++) {
                                part_30_2 += expand_dims_2_2[k_2_6] * kernel_2[j_16*D + k_2_6];
                            }
                            wide_25_2 += part_30_2;
                        }
                        product_8_2[j_16] += wide_25_2;
                        d_u_2[j_16] = product_8_2[j_16];
                        u_2[j_16] = u_saved_2[(n_iter - v_2_step - 1)*C + j_16];
                    }
                }
            }
        }
    }
lc_done:
    free(lc_arena);
    return lc_leave(call, &lc_fault);
}
