/* Made by layerc 0.1.0 from transport.py. */
#ifndef LC_TRANSPORT_H
#define LC_TRANSPORT_H
#include <stdint.h>
#ifndef LC_CALL
#define LC_CALL
/* threads: how many may be used (0: one). code, info: set when a call fails; code 1: out of memory. */
typedef struct { int32_t threads; int32_t code; int64_t info[4]; } lc_call;
#endif
#ifndef LC_NAME
#define LC_NAME(name) name
#endif

#ifdef __cplusplus
extern "C" {
#endif
int LC_NAME(wasserstein_f32)(int64_t batch, int64_t C, int64_t D, double lam, int64_t n_iter, const float *a, const float *b, const float *cost, float *y, lc_call *call);
int LC_NAME(wasserstein_f64)(int64_t batch, int64_t C, int64_t D, double lam, int64_t n_iter, const double *a, const double *b, const double *cost, double *y, lc_call *call);
int LC_NAME(wasserstein_backward_f32)(int64_t batch, int64_t C, int64_t D, double lam, int64_t n_iter, const float *a, const float *b, const float *cost, const float *dy, float *d_a, float *d_b, lc_call *call);
int LC_NAME(wasserstein_backward_f64)(int64_t batch, int64_t C, int64_t D, double lam, int64_t n_iter, const double *a, const double *b, const double *cost, const double *dy, double *d_a, double *d_b, lc_call *call);
#ifdef __cplusplus
}
#endif
#endif
