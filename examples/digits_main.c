/* Handwritten digits read by a trained net, without Python.

       cc digits_main.c out/digits_ahead/net.c -Iout/digits_ahead -O3 -march=native -lm -o digits
       ./digits out/digits.safetensors out/digits.csv

   Each line of the file is 64 numbers, the pixels of a digit from 0 to 1; each line of the output is the digit and the
   ten scores that the net gives. */
#include "net.h"
#include <stdio.h>
#include <stdlib.h>

enum { PIXELS = 64, CLASSES = 10 };

static float *read_digits(const char *path, int64_t *count)
{
    FILE *file = fopen(path, "r");
    float *pixels = 0, x;
    int64_t n = 0, room = 0;
    if (!file) return 0;
    while (fscanf(file, " %f%*[ ,;]", &x) == 1) {
        if (n == room) {
            float *more = realloc(pixels, (size_t)(room = 2 * room + PIXELS) * sizeof *pixels);
            if (!more) break;
            pixels = more;
        }
        pixels[n++] = x;
    }
    fclose(file);
    *count = n / PIXELS;
    return pixels;
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: %s weights.safetensors digits.csv\n", argv[0]);
        return 2;
    }
    struct net *net = net_open();
    int64_t count = 0;
    float *digits = read_digits(argv[2], &count), *scores = malloc((size_t)(count + 1) * CLASSES * sizeof *scores);
    int code = net_load_safetensors(net, argv[1]);
    if (!code && (!digits || !scores || !count)) {
        fprintf(stderr, "%s: no digits in %s\n", argv[0], argv[2]);
        code = 1;
    } else {
        if (!code) code = net_predict(net, digits, scores, count);
        if (code) fprintf(stderr, "%s: %s\n", argv[0], net_message(net));
    }
    for (int64_t i = 0; !code && i < count; i++) {
        int best = 0;
        for (int k = 1; k < CLASSES; k++)
            if (scores[i * CLASSES + k] > scores[i * CLASSES + best]) best = k;
        printf("%d", best);
        for (int k = 0; k < CLASSES; k++) printf(" %.9g", scores[i * CLASSES + k]); /* 9 digits tell every float apart */
        printf("\n");
    }
    free(digits);
    free(scores);
    net_close(net);
    return code;
}
