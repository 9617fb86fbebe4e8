/* A stack of dilated causal convolutions with ReLU and residuals, sample by sample, forth and back.

   Activations are (sample, time, channel). All layers of a sample follow one another, so what one layer
   writes the next finds in the cache. The network:

       x0 = relu(conv(inputs));   h = relu(conv(x));   x' = relu(conv(h) + x)   for each level

   weights[n] is (tap, in, out), turned[n] is (tap, out, in); tap 0 looks 2·dilation back, tap 2 at now. */

#include <stddef.h>

#include "functions.h"
#include "tile.h"

#define TAPS 3

INLINE long least(long one, long two) { return one < two ? one : two; }

/* One layer of one sample: the first steps have fewer taps to look back at. */
static void forth(
    const float *x, long depth, const float *weight, long width, long time, long dilation, const float *bias,
    const float *residual, float *out)
{
    long begins[TAPS + 1] = {0, least(dilation, time), least(2 * dilation, time), time};
    for (int taps = 1; taps <= TAPS; taps++) {
        long at = begins[taps - 1];
        product p = {.a = x + at * depth, .a_row = depth, .a_step = 1, .a_tap = -dilation * depth,
                     .b = weight + (TAPS - 1) * depth * width, .b_row = width, .b_column = 1,
                     .b_tap = -depth * width, .depth = depth, .taps = taps, .bias = bias,
                     .start = residual ? residual + at * width : NULL, .out = out + at * width,
                     .start_row = width, .out_row = width, .relu = 1};
        multiply(&p, begins[taps] - at, width);
    }
}

/* to_x = [to_x +] what flows back through a layer: the last steps have fewer taps that look back at them. */
static void back(
    const float *gradient, long depth, const float *turned, long width, long time, long dilation, int add,
    float *to_x)
{
    long ends[TAPS + 1] = {time, time - least(dilation, time), time - least(2 * dilation, time), 0};
    for (int taps = 1; taps <= TAPS; taps++) {
        long at = ends[taps];
        product p = {.a = gradient + at * depth, .a_row = depth, .a_step = 1, .a_tap = dilation * depth,
                     .b = turned + (TAPS - 1) * depth * width, .b_row = width, .b_column = 1,
                     .b_tap = -depth * width, .depth = depth, .taps = taps,
                     .start = add ? to_x + at * width : NULL, .out = to_x + at * width, .start_row = width,
                     .out_row = width};
        multiply(&p, ends[taps - 1] - at, width);
    }
}

/* to_weight += x of each tap times the gradient; to_bias += the gradient. */
static void weigh_taps(
    const float *x, long depth, const float *gradient, long width, long time, long dilation, float *to_weight,
    float *to_bias)
{
    for (int tap = 0; tap < TAPS; tap++) {
        long shift = (TAPS - 1 - tap) * dilation;
        if (shift >= time)
            continue;
        weigh(x, depth, gradient + shift * width, width, time - shift, to_weight + tap * depth * width);
    }
    add_rows(gradient, width, time, to_bias);
}

/* gradient = upstream where the layer's output is positive. */
INLINE void masked(const float *upstream, const float *out, long count, float *gradient)
{
    for (long at = 0; at < count; at += LANES)
        store(gradient + at, where_active(load(out + at), load(upstream + at)));
}

long lanes(void) { return LANES; }

/* kept: (1 + 2·levels) activations, each (samples, time, width). The head is (outputs, width). */
void causal_forth(
    const float *inputs, long columns, const float **weights, const float **biases, const float *head,
    const float *head_bias, float **kept, float *out, long first, long last, long time, long width, long levels,
    long outputs)
{
    for (long sample = first; sample < last; sample++) {
        long at = sample * time * width;
        forth(inputs + sample * time * columns, columns, weights[0], width, time, 1, biases[0], 0, kept[0] + at);
        for (long level = 0; level < levels; level++) {
            long one = 1 + 2 * level, two = one + 1, dilation = 1L << level;
            const float *x = kept[two - 2] + at;
            forth(x, width, weights[one], width, time, dilation, biases[one], 0, kept[one] + at);
            forth(kept[one] + at, width, weights[two], width, time, dilation, biases[two], x, kept[two] + at);
        }
        for (long step = sample * time; step < (sample + 1) * time; step++)
            for (long n = 0; n < outputs; n++)
                out[step * outputs + n] =
                    head_bias[n] + dot(kept[2 * levels] + step * width, head + n * width, width);
    }
}

/* Adds to to_weights and to_biases; scratch has room for three activations of a sample. */
void causal_back(
    const float *inputs, long columns, const float **turned, const float *head, const float **kept,
    const float *upstream, float **to_weights, float **to_biases, float *to_head, float *scratch, long first,
    long last, long time, long width, long levels, long outputs)
{
    long size = time * width;
    float *flow = scratch, *gradient = scratch + size, *inner = scratch + 2 * size;
    for (long sample = first; sample < last; sample++) {
        long at = sample * size;
        const float *given = upstream + sample * time * outputs;
        rows_times(time, given, outputs, head, width, NULL, NULL, flow);
        weigh(given, outputs, kept[2 * levels] + at, width, time, to_head);
        for (long level = levels - 1; level >= 0; level--) {
            long one = 1 + 2 * level, two = one + 1, dilation = 1L << level;
            masked(flow, kept[two] + at, size, flow); /* reaches x through the residual as well */
            weigh_taps(kept[one] + at, width, flow, width, time, dilation, to_weights[two], to_biases[two]);
            back(flow, width, turned[two], width, time, dilation, 0, inner);
            masked(inner, kept[one] + at, size, gradient);
            weigh_taps(kept[two - 2] + at, width, gradient, width, time, dilation, to_weights[one], to_biases[one]);
            back(gradient, width, turned[one], width, time, dilation, 1, flow);
        }
        masked(flow, kept[0] + at, size, gradient);
        weigh_taps(inputs + sample * time * columns, columns, gradient, width, time, 1, to_weights[0], to_biases[0]);
    }
}
