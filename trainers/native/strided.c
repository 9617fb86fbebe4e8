/* 3×3 convolutions with padding 1, stride 2 and ReLU over (image, row, column, channel), image by image.

   Three pixels of a row lie side by side in memory, so a row of the filter is one long term of the product.
   Weights are (row, column, in, out) on the way forth and (row, column, out, in) on the way back. */

#include <stddef.h>
#include <string.h>

#include "tile.h"

#define SIDE 3
#define STRIDE 2

typedef struct {
    long rows, columns, inputs, outputs; /* of the inputs of one image */
} shape;

INLINE long half(long size) { return (size + 1) / STRIDE; }
INLINE long wide(shape s) { return (s.columns + 2) * s.inputs; }
INLINE long bordered(shape s) { return (s.rows + 2) * wide(s); }

/* The image with a border of zeros. */
static void frame(shape s, const float *x, float *framed)
{
    memset(framed, 0, bordered(s) * sizeof(float));
    for (long row = 0; row < s.rows; row++)
        memcpy(framed + (row + 1) * wide(s) + s.inputs, x + row * s.columns * s.inputs,
               s.columns * s.inputs * sizeof(float));
}

long strided_scratch(long rows, long columns, long inputs, long outputs)
{
    shape s = {rows, columns, inputs, outputs};
    return 2 * bordered(s) + half(rows) * half(columns) * outputs;
}

void strided_forth(
    const float *x, const float *weight, const float *bias, float *y, float *scratch, long first, long last,
    long rows, long columns, long inputs, long outputs)
{
    shape s = {rows, columns, inputs, outputs};
    long size = half(columns) * outputs;
    for (long image = first; image < last; image++) {
        frame(s, x + image * rows * columns * inputs, scratch);
        for (long row = 0; row < half(rows); row++) {
            product p = {.a = scratch + STRIDE * row * wide(s), .a_row = STRIDE * inputs, .a_step = 1,
                         .a_tap = wide(s), .b = weight, .b_row = outputs, .b_column = 1,
                         .b_tap = SIDE * inputs * outputs, .depth = SIDE * inputs, .taps = SIDE, .bias = bias,
                         .out = y + (image * half(rows) + row) * size, .out_row = outputs, .relu = 1};
            multiply(&p, half(columns), outputs);
        }
    }
}

/* A row of the filter at a time, over the whole image: the sums stay in registers. */
static void weigh_rows(shape s, const float *framed, const float *gradient, float *to_weight)
{
    for (long tap = 0; tap < SIDE; tap++) {
        float *to = to_weight + tap * SIDE * s.inputs * s.outputs;
        product p = {.a = framed + tap * wide(s), .a_row = 1, .a_step = STRIDE * s.inputs,
                     .a_tap = STRIDE * wide(s), .b = gradient, .b_row = s.outputs, .b_column = 1,
                     .b_tap = half(s.columns) * s.outputs, .depth = half(s.columns), .taps = half(s.rows),
                     .start = to, .out = to, .start_row = s.outputs, .out_row = s.outputs};
        multiply(&p, SIDE * s.inputs, s.outputs);
    }
}

/* Every output gives to the nine pixels it came from. */
static void spread(shape s, const float *gradient, const float *turned, float *framed)
{
    memset(framed, 0, bordered(s) * sizeof(float));
    for (long row = 0; row < half(s.rows); row++)
        for (long tap = 0; tap < SIDE * SIDE; tap++) {
            float *to = framed + (STRIDE * row + tap / SIDE) * wide(s) + tap % SIDE * s.inputs;
            product p = {.a = gradient + row * half(s.columns) * s.outputs, .a_row = s.outputs, .a_step = 1,
                         .b = turned + tap * s.outputs * s.inputs, .b_row = s.inputs, .b_column = 1,
                         .depth = s.outputs, .taps = 1, .start = to, .out = to, .start_row = STRIDE * s.inputs,
                         .out_row = STRIDE * s.inputs};
            multiply(&p, half(s.columns), s.inputs);
        }
}

/* Adds to to_weight and to_bias; to_x may be absent. */
void strided_back(
    const float *x, const float *turned, const float *y, const float *upstream, float *to_x, float *to_weight,
    float *to_bias, float *scratch, long first, long last, long rows, long columns, long inputs, long outputs)
{
    shape s = {rows, columns, inputs, outputs};
    long size = half(rows) * half(columns) * outputs;
    float *framed = scratch, *returned = framed + bordered(s), *gradient = returned + bordered(s);
    for (long image = first; image < last; image++) {
        for (long at = 0; at < size; at += LANES)
            store(gradient + at, where_active(load(y + image * size + at), load(upstream + image * size + at)));
        frame(s, x + image * rows * columns * inputs, framed);
        weigh_rows(s, framed, gradient, to_weight);
        add_rows(gradient, outputs, half(rows) * half(columns), to_bias);
        if (!to_x)
            continue;
        spread(s, gradient, turned, returned);
        for (long row = 0; row < rows; row++)
            memcpy(to_x + (image * rows + row) * columns * inputs, returned + (row + 1) * wide(s) + inputs,
                   columns * inputs * sizeof(float));
    }
}
