/* Made by layerc 0.1.0 from pooling.py. */
#ifndef LC_POOLING_H
#define LC_POOLING_H
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
int LC_NAME(max_plane_f32)(int64_t batch, int64_t H, int64_t W, int64_t rows, int64_t columns, int64_t kernel_h, int64_t kernel_w, int64_t stride_h, int64_t stride_w, int64_t pad_h, int64_t pad_w, int64_t end_h, int64_t end_w, const float *x, float *y, lc_call *call);
int LC_NAME(max_plane_f64)(int64_t batch, int64_t H, int64_t W, int64_t rows, int64_t columns, int64_t kernel_h, int64_t kernel_w, int64_t stride_h, int64_t stride_w, int64_t pad_h, int64_t pad_w, int64_t end_h, int64_t end_w, const double *x, double *y, lc_call *call);
int LC_NAME(max_plane_backward_f32)(int64_t batch, int64_t H, int64_t W, int64_t rows, int64_t columns, int64_t kernel_h, int64_t kernel_w, int64_t stride_h, int64_t stride_w, int64_t pad_h, int64_t pad_w, int64_t end_h, int64_t end_w, const float *x, const float *y, const float *dy, float *d_x, lc_call *call);
int LC_NAME(max_plane_backward_f64)(int64_t batch, int64_t H, int64_t W, int64_t rows, int64_t columns, int64_t kernel_h, int64_t kernel_w, int64_t stride_h, int64_t stride_w, int64_t pad_h, int64_t pad_w, int64_t end_h, int64_t end_w, const double *x, const double *y, const double *dy, double *d_x, lc_call *call);
int LC_NAME(mean_plane_f32)(int64_t batch, int64_t H, int64_t W, int64_t rows, int64_t columns, int64_t kernel_h, int64_t kernel_w, int64_t stride_h, int64_t stride_w, int64_t pad_h, int64_t pad_w, int64_t end_h, int64_t end_w, const float *x, const float *share_h, const float *share_w, float *y, lc_call *call);
int LC_NAME(mean_plane_f64)(int64_t batch, int64_t H, int64_t W, int64_t rows, int64_t columns, int64_t kernel_h, int64_t kernel_w, int64_t stride_h, int64_t stride_w, int64_t pad_h, int64_t pad_w, int64_t end_h, int64_t end_w, const double *x, const double *share_h, const double *share_w, double *y, lc_call *call);
int LC_NAME(mean_plane_backward_f32)(int64_t batch, int64_t H, int64_t W, int64_t rows, int64_t columns, int64_t kernel_h, int64_t kernel_w, int64_t stride_h, int64_t stride_w, int64_t pad_h, int64_t pad_w, int64_t end_h, int64_t end_w, const float *x, const float *share_h, const float *share_w, const float *dy, float *d_x, lc_call *call);
int LC_NAME(mean_plane_backward_f64)(int64_t batch, int64_t H, int64_t W, int64_t rows, int64_t columns, int64_t kernel_h, int64_t kernel_w, int64_t stride_h, int64_t stride_w, int64_t pad_h, int64_t pad_w, int64_t end_h, int64_t end_w, const double *x, const double *share_h, const double *share_w, const double *dy, double *d_x, lc_call *call);
int LC_NAME(max_channels_f32)(int64_t batch, int64_t C, int64_t S, int64_t count, int64_t kernel, int64_t stride, int64_t pad, const float *x, float *y, lc_call *call);
int LC_NAME(max_channels_f64)(int64_t batch, int64_t C, int64_t S, int64_t count, int64_t kernel, int64_t stride, int64_t pad, const double *x, double *y, lc_call *call);
int LC_NAME(max_channels_backward_f32)(int64_t batch, int64_t C, int64_t S, int64_t count, int64_t kernel, int64_t stride, int64_t pad, const float *x, const float *dy, float *d_x, lc_call *call);
int LC_NAME(max_channels_backward_f64)(int64_t batch, int64_t C, int64_t S, int64_t count, int64_t kernel, int64_t stride, int64_t pad, const double *x, const double *dy, double *d_x, lc_call *call);
int LC_NAME(mean_channels_f32)(int64_t batch, int64_t C, int64_t S, int64_t count, int64_t kernel, int64_t stride, int64_t pad, const float *x, float *y, lc_call *call);
int LC_NAME(mean_channels_f64)(int64_t batch, int64_t C, int64_t S, int64_t count, int64_t kernel, int64_t stride, int64_t pad, const double *x, double *y, lc_call *call);
int LC_NAME(mean_channels_backward_f32)(int64_t batch, int64_t C, int64_t S, int64_t count, int64_t kernel, int64_t stride, int64_t pad, const float *x, const float *dy, float *d_x, lc_call *call);
int LC_NAME(mean_channels_backward_f64)(int64_t batch, int64_t C, int64_t S, int64_t count, int64_t kernel, int64_t stride, int64_t pad, const double *x, const double *dy, double *d_x, lc_call *call);
int LC_NAME(normalise_channels_f32)(int64_t batch, int64_t C, int64_t S, int64_t kernel, int64_t pad, double scale, double shift, double power, const float *x, float *y, lc_call *call);
int LC_NAME(normalise_channels_f64)(int64_t batch, int64_t C, int64_t S, int64_t kernel, int64_t pad, double scale, double shift, double power, const double *x, double *y, lc_call *call);
int LC_NAME(normalise_channels_backward_f32)(int64_t batch, int64_t C, int64_t S, int64_t kernel, int64_t pad, double scale, double shift, double power, const float *x, const float *dy, float *d_x, lc_call *call);
int LC_NAME(normalise_channels_backward_f64)(int64_t batch, int64_t C, int64_t S, int64_t kernel, int64_t pad, double scale, double shift, double power, const double *x, const double *dy, double *d_x, lc_call *call);
int LC_NAME(normalise_plane_f32)(int64_t batch, int64_t H, int64_t W, int64_t kernel, int64_t pad, double scale, double shift, double power, const float *x, float *y, lc_call *call);
int LC_NAME(normalise_plane_f64)(int64_t batch, int64_t H, int64_t W, int64_t kernel, int64_t pad, double scale, double shift, double power, const double *x, double *y, lc_call *call);
int LC_NAME(normalise_plane_backward_f32)(int64_t batch, int64_t H, int64_t W, int64_t kernel, int64_t pad, double scale, double shift, double power, const float *x, const float *dy, float *d_x, lc_call *call);
int LC_NAME(normalise_plane_backward_f64)(int64_t batch, int64_t H, int64_t W, int64_t kernel, int64_t pad, double scale, double shift, double power, const double *x, const double *dy, double *d_x, lc_call *call);
#ifdef __cplusplus
}
#endif
#endif
