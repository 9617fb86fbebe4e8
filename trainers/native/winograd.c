/* 3×3 convolutions with padding 1 over (image, row, column, channel), two by two outputs at a time.

   Winograd's minimal filtering F(2×2, 3×3): a patch of 4×4 inputs is turned into 16 numbers by additions alone,
   one product a number takes the place of nine products an output, and additions make the outputs: 16 products
   instead of 36. It rounds a little differently. Patches go some at a time, so that they stay in the cache. */

#include <string.h>

#include "tile.h"

#define SOME 48 /* patches at a time: a whole number of row blocks, with either kind of vectors */
#define PLACES 16

typedef struct {
    long rows, columns, depth; /* of one image */
} image;

INLINE long across(image s) { return (s.columns + 1) / 2; }
INLINE long patches(image s) { return across(s) * ((s.rows + 1) / 2); }

/* Where the pixels of a patch are; those outside of the image are zero. */
INLINE void locate(
    image s, const float *x, const float *zeros, long patch, long before, long side, const float *places[])
{
    long top = 2 * (patch / across(s)) - before, left = 2 * (patch % across(s)) - before;
    for (long i = 0; i < side; i++)
        for (long j = 0; j < side; j++) {
            long row = top + i, column = left + j;
            int inside = row >= 0 && row < s.rows && column >= 0 && column < s.columns;
            places[side * i + j] = inside ? x + (row * s.columns + column) * s.depth : zeros;
        }
}

/* turned (place, patch, channel) of the inputs of some patches: d0−d2, d1+d2, d2−d1, d1−d3, along both sides. */
static void turn_inputs(image s, const float *x, const float *zeros, long first, long count, float *turned)
{
    for (long patch = 0; patch < count; patch++) {
        const float *places[PLACES];
        locate(s, x, zeros, first + patch, 1, 4, places);
        for (long at = 0; at < s.depth; at += LANES) {
            vector half[4][4];
#pragma GCC unroll 4
            for (int j = 0; j < 4; j++) {
                vector d0 = load(places[j] + at), d1 = load(places[4 + j] + at);
                vector d2 = load(places[8 + j] + at), d3 = load(places[12 + j] + at);
                half[0][j] = d0 - d2, half[1][j] = d1 + d2, half[2][j] = d2 - d1, half[3][j] = d1 - d3;
            }
            float *to = turned + patch * s.depth + at;
            long next = SOME * s.depth;
#pragma GCC unroll 4
            for (int i = 0; i < 4; i++, to += 4 * next) {
                store(to, half[i][0] - half[i][2]);
                store(to + next, half[i][1] + half[i][2]);
                store(to + 2 * next, half[i][2] - half[i][1]);
                store(to + 3 * next, half[i][1] - half[i][3]);
            }
        }
    }
}

/* The outputs of some patches: m0+m1+m2 and m1−m2−m3, along both sides. */
static void turn_outputs(image s, const float *turned, long first, long count, float *y)
{
    for (long patch = 0; patch < count; patch++) {
        long top = 2 * ((first + patch) / across(s)), left = 2 * ((first + patch) % across(s));
        for (long at = 0; at < s.depth; at += LANES) {
            const float *from = turned + patch * s.depth + at;
            long next = SOME * s.depth;
            vector half[2][4];
#pragma GCC unroll 4
            for (int j = 0; j < 4; j++) {
                vector m0 = load(from + j * next), m1 = load(from + (4 + j) * next);
                vector m2 = load(from + (8 + j) * next), m3 = load(from + (12 + j) * next);
                half[0][j] = m0 + m1 + m2, half[1][j] = m1 - m2 - m3;
            }
            for (long i = 0; i < 2 && top + i < s.rows; i++) {
                float *to = y + ((top + i) * s.columns + left) * s.depth + at;
                store(to, half[i][0] + half[i][1] + half[i][2]);
                if (left + 1 < s.columns)
                    store(to + s.depth, half[i][1] - half[i][2] - half[i][3]);
            }
        }
    }
}

/* turned (place, patch, channel) of the outputs' gradients, for those of the weights: g0, g0+g1, g0−g1, −g1. */
static void turn_gradients(image s, const float *y, const float *zeros, long first, long count, float *turned)
{
    for (long patch = 0; patch < count; patch++) {
        const float *places[4];
        locate(s, y, zeros, first + patch, 0, 2, places);
        for (long at = 0; at < s.depth; at += LANES) {
            vector half[4][2];
#pragma GCC unroll 2
            for (int j = 0; j < 2; j++) {
                vector g0 = load(places[j] + at), g1 = load(places[2 + j] + at);
                half[0][j] = g0, half[1][j] = g0 + g1, half[2][j] = g0 - g1, half[3][j] = -g1;
            }
            float *to = turned + patch * s.depth + at;
            long next = SOME * s.depth;
#pragma GCC unroll 4
            for (int i = 0; i < 4; i++, to += 4 * next) {
                store(to, half[i][0]);
                store(to + next, half[i][0] + half[i][1]);
                store(to + 2 * next, half[i][0] - half[i][1]);
                store(to + 3 * next, -half[i][1]);
            }
        }
    }
}

/* Room for the inputs and outputs of some patches, and for a pixel of zeros. */
long winograd_scratch(long inputs, long outputs) { return (PLACES * SOME + 1) * (inputs + outputs); }

/* Images first … last: x (…, inputs) → y (…, outputs); weight is (place, inputs, outputs). */
void winograd_forth(
    const float *x, const float *weight, float *y, float *scratch, long first, long last, long rows, long columns,
    long inputs, long outputs)
{
    image in = {rows, columns, inputs}, out = {rows, columns, outputs};
    float *turned = scratch, *made = turned + PLACES * SOME * inputs, *zeros = made + PLACES * SOME * outputs;
    memset(zeros, 0, inputs * sizeof(float));
    for (long number = first; number < last; number++)
        for (long patch = 0; patch < patches(in); patch += SOME) {
            long count = patches(in) - patch < SOME ? patches(in) - patch : SOME;
            turn_inputs(in, x + number * rows * columns * inputs, zeros, patch, count, turned);
            for (long place = 0; place < PLACES; place++)
                rows_times(count, turned + place * SOME * inputs, inputs, weight + place * inputs * outputs, outputs,
                      NULL, NULL, made + place * SOME * outputs);
            turn_outputs(out, made, patch, count, y + number * rows * columns * outputs);
        }
}

/* Adds to to_weight (place, inputs, outputs). */
void winograd_weigh(
    const float *x, const float *gradient, float *to_weight, float *scratch, long first, long last, long rows,
    long columns, long inputs, long outputs)
{
    image in = {rows, columns, inputs}, out = {rows, columns, outputs};
    float *turned = scratch, *made = turned + PLACES * SOME * inputs, *zeros = made + PLACES * SOME * outputs;
    memset(zeros, 0, (inputs + outputs) * sizeof(float));
    for (long number = first; number < last; number++)
        for (long patch = 0; patch < patches(in); patch += SOME) {
            long count = patches(in) - patch < SOME ? patches(in) - patch : SOME;
            turn_inputs(in, x + number * rows * columns * inputs, zeros, patch, count, turned);
            turn_gradients(out, gradient + number * rows * columns * outputs, zeros, patch, count, made);
            for (long place = 0; place < PLACES; place++)
                weigh(turned + place * SOME * inputs, inputs, made + place * SOME * outputs, outputs, count,
                      to_weight + place * inputs * outputs);
        }
}
