#ifndef LC_RANDOM_H
#define LC_RANDOM_H
/* Random numbers by counter: Philox4x32-10 (Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3",
   SC 2011). A number is a pure function of the seed, which draw it is, which example of the batch and which element of
   the array, so it does not matter which thread computes it, or how often. The same numbers as `layerc.Random`.

   Words of 32 bits are kept in 64: then the products are those of vpmuludq, and loops vectorise. */

typedef struct { uint64_t a, b, c, d; } lc_words;

LC_FN lc_words lc_philox(int64_t seed, int64_t draw, int64_t example, int64_t element)
{
    const uint64_t low = 0xFFFFFFFFu;
    uint64_t a = (uint64_t)element & low, b = (uint64_t)element >> 32, c = (uint64_t)draw & low, d = (uint64_t)example & low;
    uint64_t k = (uint64_t)seed & low, l = (uint64_t)seed >> 32;
#define LC_ROUND_OF_PHILOX \
    { \
        const uint64_t p = 0xD2511F53u * a, q = 0xCD9E8D57u * c; \
        a = (q >> 32) ^ b ^ k, b = q & low, c = (p >> 32) ^ d ^ l, d = p & low; \
        k = (k + 0x9E3779B9u) & low, l = (l + 0xBB67AE85u) & low; \
    }
    LC_ROUND_OF_PHILOX LC_ROUND_OF_PHILOX LC_ROUND_OF_PHILOX LC_ROUND_OF_PHILOX LC_ROUND_OF_PHILOX
    LC_ROUND_OF_PHILOX LC_ROUND_OF_PHILOX LC_ROUND_OF_PHILOX LC_ROUND_OF_PHILOX LC_ROUND_OF_PHILOX
#undef LC_ROUND_OF_PHILOX
    return (lc_words){a, b, c, d};
}

/* The upper 53 of 64 bits, as a number in [0, 1). Both halves are put behind the mantissa of a power of two, which
   is subtracted again: exact, and it vectorises where there is no conversion from 64-bit integers. */
LC_FN double lc_fraction(uint64_t high, uint64_t low)
{
    const double x = lc__d(0x4330000000000000u | high) - 0x1p52, y = lc__d(0x4330000000000000u | low >> 11) - 0x1p52;
    return x * 0x1p-32 + y * 0x1p-53;
}

/* In float32 the upper 24. */
LC_FN float lc_fractionf(uint64_t high) { return (float)(int32_t)(high >> 8) * 0x1p-24f; }

LC_FN double lc_draw_random(int64_t seed, int64_t draw, int64_t example, int64_t element)
{
    const lc_words w = lc_philox(seed, draw, example, element);
    return lc_fraction(w.a, w.b);
}
LC_FN float lc_draw_randomf(int64_t seed, int64_t draw, int64_t example, int64_t element)
{
    return lc_fractionf(lc_philox(seed, draw, example, element).a);
}

LC_FN int lc_draw_bernoulli(int64_t seed, int64_t draw, int64_t example, int64_t element, double p)
{
    return lc_draw_random(seed, draw, example, element) < p;
}

/* cos(2 pi v) for v in [0, 1). 4v = q + r with |r| <= 1/2 is exact; the Taylor series of cos and sin, of r pi/2, leave out
   less than 2^-54 (float: 2^-24). */
LC_FN double lc_cos_turns(double v)
{
    const double t = 4. * v + LC_ROUND, r = (4. * v - (t - LC_ROUND)) * 0x1.921fb54442d18p+0, z = r * r;
    double c = 0x1.ae7f3e733b81fp-45 * z - 0x1.93974a8c07c9dp-37, s = 0x1.6124613a86d09p-33 - 0x1.ae7f3e733b81fp-41 * z;
    c = c * z + 0x1.1eed8eff8d898p-29, s = s * z - 0x1.ae64567f544e4p-26;
    c = c * z - 0x1.27e4fb7789f5cp-22, s = s * z + 0x1.71de3a556c734p-19;
    c = c * z + 0x1.a01a01a01a01ap-16, s = s * z - 0x1.a01a01a01a01ap-13;
    c = c * z - 0x1.6c16c16c16c17p-10, s = s * z + 0x1.1111111111111p-7;
    c = c * z + 0x1.5555555555555p-5, s = s * z - 0x1.5555555555555p-3;
    c = 1. - z * (0.5 - z * c), s = r + r * (z * s);
    const uint64_t q = lc__l(t);
    return lc__d(lc__l(q & 1 ? s : c) ^ ((q + 1) & 2) << 62);
}
LC_FN float lc_cos_turnsf(float v)
{
    const float t = 4.f * v + LC_ROUNDF, r = (4.f * v - (t - LC_ROUNDF)) * 0x1.921fb6p+0f, z = r * r;
    float c = 0x1.a01a02p-16f * z - 0x1.6c16c2p-10f, s = 0x1.71de3ap-19f * z - 0x1.a01a02p-13f;
    c = c * z + 0x1.555556p-5f, s = s * z + 0x1.111112p-7f;
    s = s * z - 0x1.555556p-3f;
    c = 1.f - z * (0.5f - z * c), s = r + r * (z * s);
    const uint32_t q = lc__u(t);
    return lc__f(lc__u(q & 1 ? s : c) ^ ((q + 1) & 2) << 30);
}

/* Box and Muller; u is in (0, 1]. In float32 it has 31 bits, so that the tail reaches 6.5. */
LC_FN double lc_draw_normal(int64_t seed, int64_t draw, int64_t example, int64_t element)
{
    const lc_words w = lc_philox(seed, draw, example, element);
    const double u = lc_fraction(w.a, w.b) + 0x1p-53;
    return __builtin_sqrt(-2. * lc_log(u)) * lc_cos_turns(lc_fraction(w.c, w.d));
}
LC_FN float lc_draw_normalf(int64_t seed, int64_t draw, int64_t example, int64_t element)
{
    const lc_words w = lc_philox(seed, draw, example, element);
    const float u = ((float)(int32_t)(w.a >> 1) + 1.f) * 0x1p-31f;
    return __builtin_sqrtf(-2.f * lc_logf(u)) * lc_cos_turnsf(lc_fractionf(w.c));
}

/* low + the upper half of the product of 64 random bits and high - low, in four products of 32 bits. */
LC_FN int64_t lc_draw_integers(int64_t seed, int64_t draw, int64_t example, int64_t element, int64_t low, int64_t high)
{
    const lc_words w = lc_philox(seed, draw, example, element);
    const uint64_t n = (uint64_t)high - (uint64_t)low, b = n & 0xFFFFFFFFu, a = n >> 32;
    const uint64_t middle = w.a * b + (w.b * b >> 32), rest = w.b * a + (middle & 0xFFFFFFFFu);
    return (int64_t)((uint64_t)low + (w.a * a + (middle >> 32) + (rest >> 32)));
}
#endif
