/* The product itself, for every number of rows. */

#include <stddef.h>

#include "tile.h"

/* The numbers of rows and vectors are known when compiling, or the sums would not stay in registers. */
INLINE void part(const int rows, const int vectors, const product *p, long row, long column)
{
    vector sums[ROWS][2];
#pragma GCC unroll 12
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 2
        for (int v = 0; v < vectors; v++) {
            long at = column + v * LANES;
            sums[r][v] = (vector){0};
            if (p->bias)
                sums[r][v] = load(p->bias + at);
            if (p->start)
                sums[r][v] += load(p->start + (row + r) * p->start_row + at);
        }
    for (long tap = 0; tap < p->taps; tap++) {
        const float *a = p->a + row * p->a_row + tap * p->a_tap, *b = p->b + column * p->b_column + tap * p->b_tap;
        const long a_row = p->a_row, a_step = p->a_step, b_row = p->b_row, depth = p->depth;
        for (long k = 0; k < depth; k++, a += a_step, b += b_row) {
            vector first = load(b), second = first;
            if (vectors == 2)
                second = load(b + LANES);
#pragma GCC unroll 12
            for (int r = 0; r < rows; r++) {
                sums[r][0] += a[r * a_row] * first;
                if (vectors == 2)
                    sums[r][1] += a[r * a_row] * second;
            }
        }
    }
#pragma GCC unroll 12
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 2
        for (int v = 0; v < vectors; v++) {
            vector sum = sums[r][v];
            store(p->out + (row + r) * p->out_row + column + v * LANES, p->relu ? where_active(sum, sum) : sum);
        }
}

#define PART(n)                                                                                             \
    static void single_##n(const product *p, long row, long column) { part(n, 1, p, row, column); }         \
    static void double_##n(const product *p, long row, long column) { part(n, 2, p, row, column); }
PART(1) PART(2) PART(3) PART(4) PART(5) PART(6)
#if ROWS == 12
PART(7) PART(8) PART(9) PART(10) PART(11) PART(12)
#define TABLE(kind)                                                                                         \
    { NULL, kind##_1, kind##_2, kind##_3, kind##_4, kind##_5, kind##_6, kind##_7, kind##_8, kind##_9,       \
      kind##_10, kind##_11, kind##_12 }
#else
#define TABLE(kind) { NULL, kind##_1, kind##_2, kind##_3, kind##_4, kind##_5, kind##_6 }
#endif

void multiply(const product *p, long rows, long columns)
{
    static void (*const singles[])(const product *, long, long) = TABLE(single);
    static void (*const doubles[])(const product *, long, long) = TABLE(double);
    for (long row = 0; row < rows; row += ROWS) {
        long some = rows - row < ROWS ? rows - row : ROWS, column = 0;
        for (; column + PANEL <= columns; column += PANEL)
            doubles[some](p, row, column);
        if (column < columns)
            singles[some](p, row, column);
    }
}

void rows_times(
    long count, const float *a, long depth, const float *b, long width, const float *bias, const float *start,
    float *out)
{
    product p = {.a = a, .a_row = depth, .a_step = 1, .b = b, .b_row = width, .b_column = 1, .depth = depth,
                 .taps = 1, .bias = bias, .start = start, .out = out, .start_row = width, .out_row = width};
    multiply(&p, count, width);
}

void weigh(const float *x, long terms, const float *gradient, long width, long steps, float *to_weight)
{
    product p = {.a = x, .a_row = 1, .a_step = terms, .b = gradient, .b_row = width, .b_column = 1,
                 .depth = steps, .taps = 1, .start = to_weight, .out = to_weight, .start_row = width,
                 .out_row = width};
    multiply(&p, terms, width);
}

void add_rows(const float *gradient, long width, long steps, float *to_bias)
{
    for (long step = 0; step < steps; step++, gradient += width)
        for (long at = 0; at < width; at += LANES)
            store(to_bias + at, load(to_bias + at) + load(gradient + at));
}
