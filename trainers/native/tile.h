/* The one product everything here is made of: a few rows times one or two vectors of columns, in registers.

   Vectors are the compiler's own (GCC's), as wide as the flags let them be; no instruction is named. */

#pragma once

#define INLINE static inline __attribute__((always_inline))

#ifdef __AVX512F__
#define LANES 16
#define ROWS 12
#else
#define LANES 8
#define ROWS 6
#endif
#define PANEL (2 * LANES)

typedef float vector __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
typedef int whole __attribute__((vector_size(4 * LANES), aligned(4), may_alias));

INLINE vector load(const float *from) { return *(const vector *)from; }
INLINE void store(float *to, vector value) { *(vector *)to = value; }

/* `value` where `out` is not below or at zero: a NaN passes, as it does in the library. */
INLINE vector where_active(vector out, vector value) { return (vector)((whole)value & ~(out <= 0)); }

/* out[r][c] = [relu] ([bias[c]] + [start[r][c]] + Σ over taps and terms of a[r][k] · b[k][c]) */
typedef struct {
    const float *a; /* a[r][k] of a tap: a + r·a_row + k·a_step + tap·a_tap */
    long a_row, a_step, a_tap;
    const float *b; /* b[k][c] of a tap: b + k·b_row + c·b_column + tap·b_tap, c the first of a panel */
    long b_row, b_column, b_tap;
    long depth, taps;
    const float *bias, *start;
    float *out;
    long start_row, out_row;
    int relu;
} product;

/* Of this library alone: a function of the same name elsewhere must not take their place. */
#pragma GCC visibility push(hidden)

/* All rows and columns; the columns are as many as some vectors have lanes. */
void multiply(const product *p, long rows, long columns);

/* out = [bias +] [start +] a (count, depth) times b (depth, width). */
void rows_times(
    long count, const float *a, long depth, const float *b, long width, const float *bias, const float *start,
    float *out);

/* to_weight (terms, width) += Σ over steps of x (steps, terms) times gradient (steps, width). */
void weigh(const float *x, long terms, const float *gradient, long width, long steps, float *to_weight);

/* to_bias += Σ over steps of the gradient's rows. */
void add_rows(const float *gradient, long width, long steps, float *to_bias);

#pragma GCC visibility pop
