#include "transport.h"

static int lc_level;

__attribute__((constructor)) static void lc_choose_level(void)
{
    __builtin_cpu_init();
    lc_level = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") ? 0 : __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") ? 1 : 2;
}

int wasserstein_f32_v4(int64_t batch, int64_t C, int64_t D, double lam, int64_t n_iter, const float *a, const float *b, const float *cost, float *y, lc_call *call);
int wasserstein_f32_v3(int64_t batch, int64_t C, int64_t D, double lam, int64_t n_iter, const float *a, const float *b, const float *cost, float *y, lc_call *call);
int wasserstein_f32_v1(int64_t batch, int64_t C, int64_t D, double lam, int64_t n_iter, const float *a, const float *b, const float *cost, float *y, lc_call *call);
int wasserstein_f32(int64_t batch, int64_t C, int64_t D, double lam, int64_t n_iter, const float *a, const float *b, const float *cost, float *y, lc_call *call)
{
    if (lc_level == 0) return wasserstein_f32_v4(batch, C, D, lam, n_iter, a, b, cost, y, call);
    if (lc_level == 1) return wasserstein_f32_v3(batch, C, D, lam, n_iter, a, b, cost, y, call);
    return wasserstein_f32_v1(batch, C, D, lam, n_iter, a, b, cost, y, call);
}

int wasserstein_f64_v4(int64_t batch, int64_t C, int64_t D, double lam, int64_t n_iter, const double *a, const double *b, const double *cost, double *y, lc_call *call);
int wasserstein_f64_v3(int64_t batch, int64_t C, int64_t D, double lam, int64_t n_iter, const double *a, const double *b, const double *cost, double *y, lc_call *call);
int wasserstein_f64_v1(int64_t batch, int64_t C, int64_t D, double lam, int64_t n_iter, const double *a, const double *b, const double *cost, double *y, lc_call *call);
int wasserstein_f64(int64_t batch, int64_t C, int64_t D, double lam, int64_t n_iter, const double *a, const double *b, const double *cost, double *y, lc_call *call)
{
    if (lc_level == 0) return wasserstein_f64_v4(batch, C, D, lam, n_iter, a, b, cost, y, call);
    if (lc_level == 1) return wasserstein_f64_v3(batch, C, D, lam, n_iter, a, b, cost, y, call);
    return wasserstein_f64_v1(batch, C, D, lam, n_iter, a, b, cost, y, call);
}

int wasserstein_backward_f32_v4(int64_t batch, int64_t C, int64_t D, double lam, int64_t n_iter, const float *a, const float *b, const float *cost, const float *dy, float *d_a, float *d_b, lc_call *call);
int wasserstein_backward_f32_v3(int64_t batch, int64_t C, int64_t D, double lam, int64_t n_iter, const float *a, const float *b, const float *cost, const float *dy, float *d_a, float *d_b, lc_call *call);
int wasserstein_backward_f32_v1(int64_t batch, int64_t C, int64_t D, double lam, int64_t n_iter, const float *a, const float *b, const float *cost, const float *dy, float *d_a, float *d_b, lc_call *call);
int wasserstein_backward_f32(int64_t batch, int64_t C, int64_t D, double lam, int64_t n_iter, const float *a, const float *b, const float *cost, const float *dy, float *d_a, float *d_b, lc_call *call)
{
    if (lc_level == 0) return wasserstein_backward_f32_v4(batch, C, D, lam, n_iter, a, b, cost, dy, d_a, d_b, call);
    if (lc_level == 1) return wasserstein_backward_f32_v3(batch, C, D, lam, n_iter, a, b, cost, dy, d_a, d_b, call);
    return wasserstein_backward_f32_v1(batch, C, D, lam, n_iter, a, b, cost, dy, d_a, d_b, call);
}

int wasserstein_backward_f64_v4(int64_t batch, int64_t C, int64_t D, double lam, int64_t n_iter, const double *a, const double *b, const double *cost, const double *dy, double *d_a, double *d_b, lc_call *call);
int wasserstein_backward_f64_v3(int64_t batch, int64_t C, int64_t D, double lam, int64_t n_iter, const double *a, const double *b, const double *cost, const double *dy, double *d_a, double *d_b, lc_call *call);
int wasserstein_backward_f64_v1(int64_t batch, int64_t C, int64_t D, double lam, int64_t n_iter, const double *a, const double *b, const double *cost, const double *dy, double *d_a, double *d_b, lc_call *call);
int wasserstein_backward_f64(int64_t batch, int64_t C, int64_t D, double lam, int64_t n_iter, const double *a, const double *b, const double *cost, const double *dy, double *d_a, double *d_b, lc_call *call)
{
    if (lc_level == 0) return wasserstein_backward_f64_v4(batch, C, D, lam, n_iter, a, b, cost, dy, d_a, d_b, call);
    if (lc_level == 1) return wasserstein_backward_f64_v3(batch, C, D, lam, n_iter, a, b, cost, dy, d_a, d_b, call);
    return wasserstein_backward_f64_v1(batch, C, D, lam, n_iter, a, b, cost, dy, d_a, d_b, call);
}
