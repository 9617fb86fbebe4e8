/* A stack of dilated causal convolutions with ReLU and residuals, sample by sample, forth and back.

   Activations are (sample, time, channel). All layers of a sample follow one another, so what one layer
   writes the next finds in the cache. The network:

       x0 = relu(conv(inputs));   h = relu(conv(x));   x' = relu(conv(h) + x)   for each level

   The first convolution has few columns and goes tap by tap. The others make two outputs at a time, those at
   t and t + dilation, which share their inputs (Winograd's F(2, 3)): a pair is turned into four numbers by
   additions, one product a number takes the place of six, and additions make the outputs. It rounds a little
   differently. Pairs are counted so that the one a whole 2·dilation later is the one `dilation` further on. */

#include <stddef.h>
#include <string.h>

#include "functions.h"
#include "tile.h"

#define TAPS 3
#define PLACES 4

INLINE long least(long one, long two) { return one < two ? one : two; }

typedef struct {
    long time, width, dilation;
    float *turned, *made; /* (place, pair, channel) */
    const float *zeros;   /* a step outside of the sample */
} layer;

/* The earlier of a pair's two steps. A dilation is a power of two: no division. */
INLINE long first_of(layer s, long pair) { return pair + (pair & -s.dilation); }

INLINE long pairs(layer s)
{
    long two = 2 * s.dilation;
    return (s.time & -two) / 2 + least(s.dilation, s.time & (two - 1));
}

INLINE const float *step(layer s, const float *x, long time)
{
    return time >= 0 && time < s.time ? x + time * s.width : s.zeros;
}

/* turned = d0−d2, d1+d2, d2−d1, d1−d3 of what a pair of outputs looks at. */
static void turn_inputs(layer s, const float *x)
{
    long count = pairs(s), next = count * s.width;
    for (long pair = 0; pair < count; pair++) {
        long now = first_of(s, pair);
        const float *places[PLACES];
        for (long n = 0; n < PLACES; n++)
            places[n] = step(s, x, now + (n - 2) * s.dilation);
        float *to = s.turned + pair * s.width;
        for (long at = 0; at < s.width; at += LANES, to += LANES) {
            vector d0 = load(places[0] + at), d1 = load(places[1] + at);
            vector d2 = load(places[2] + at), d3 = load(places[3] + at);
            store(to, d0 - d2), store(to + next, d1 + d2), store(to + 2 * next, d2 - d1), store(to + 3 * next, d1 - d3);
        }
    }
}

/* turned = g0, g0+g1, g0−g1, −g1 of the gradients of a pair of outputs; adds them to to_bias. */
static void turn_gradients(layer s, const float *gradient, float *turned, float *to_bias)
{
    long count = pairs(s), next = count * s.width;
    for (long at = 0; at < s.width; at += LANES) {
        vector sum = {0};
        for (long pair = 0; pair < count; pair++) {
            long now = first_of(s, pair);
            vector g0 = load(step(s, gradient, now) + at), g1 = load(step(s, gradient, now + s.dilation) + at);
            float *to = turned + pair * s.width + at;
            store(to, g0), store(to + next, g0 + g1), store(to + 2 * next, g0 - g1), store(to + 3 * next, -g1);
            sum += g0 + g1;
        }
        store(to_bias + at, load(to_bias + at) + sum);
    }
}

/* made = turned times one matrix a place. */
static void multiply_places(layer s, const float *weight)
{
    long count = pairs(s);
    for (long place = 0; place < PLACES; place++)
        rows_times(count, s.turned + place * count * s.width, s.width, weight + place * s.width * s.width, s.width,
                   NULL, NULL, s.made + place * count * s.width);
}

/* out = relu(conv(x) [+ residual]); weight is (place, in, out). */
static void forth(layer s, const float *x, const float *weight, const float *bias, const float *residual, float *out)
{
    long count = pairs(s), next = count * s.width;
    turn_inputs(s, x);
    multiply_places(s, weight);
    for (long pair = 0; pair < count; pair++) {
        long one = first_of(s, pair) * s.width, two = one + s.dilation * s.width;
        const float *from = s.made + pair * s.width;
        for (long at = 0; at < s.width; at += LANES, from += LANES) {
            vector m1 = load(from + next), m2 = load(from + 2 * next), start = load(bias + at);
            vector sum = start + load(from) + m1 + m2;
            if (residual)
                sum += load(residual + one + at);
            store(out + one + at, where_active(sum, sum));
            if (two >= s.time * s.width)
                continue;
            sum = start + m1 - m2 - load(from + 3 * next);
            if (residual)
                sum += load(residual + two + at);
            store(out + two + at, where_active(sum, sum));
        }
    }
}

/* to_x = what flows back [+ to_x] where x is positive; turned is (place, out, in), to_weight (place, in, out). */
static void back(
    layer s, const float *x, const float *gradient, const float *turned, int add, float *to_x, float *to_weight,
    float *to_bias)
{
    long count = pairs(s), next = count * s.width;
    turn_inputs(s, x);
    turn_gradients(s, gradient, s.made, to_bias);
    for (long place = 0; place < PLACES; place++)
        weigh(s.turned + place * next, s.width, s.made + place * next, s.width, count,
              to_weight + place * s.width * s.width);
    float *spare = s.turned;
    s.turned = s.made, s.made = spare;
    multiply_places(s, turned);
    for (long pair = 0; pair < count; pair++) {
        long one = first_of(s, pair) * s.width, two = one + s.dilation * s.width;
        int follows = pair + s.dilation < count, paired = two < s.time * s.width;
        for (long at = 0; at < s.width; at += LANES) {
            const float *from = s.made + pair * s.width + at, *later = from + s.dilation * s.width;
            vector to_one = load(from + next) + load(from + 2 * next) - load(from), to_two = -load(from + 3 * next);
            if (follows) {
                to_one += load(later);
                to_two += load(later + next) - load(later + 2 * next) + load(later + 3 * next);
            }
            if (add)
                to_one += load(to_x + one + at);
            store(to_x + one + at, where_active(load(x + one + at), to_one));
            if (!paired)
                continue;
            if (add)
                to_two += load(to_x + two + at);
            store(to_x + two + at, where_active(load(x + two + at), to_two));
        }
    }
}

/* The first convolution of one sample: the first steps have fewer taps to look back at. */
static void lift_forth(
    const float *x, long depth, const float *weight, long width, long time, const float *bias, float *out)
{
    long begins[TAPS + 1] = {0, least(1, time), least(2, time), time};
    for (int taps = 1; taps <= TAPS; taps++) {
        long at = begins[taps - 1];
        product p = {.a = x + at * depth, .a_row = depth, .a_step = 1, .a_tap = -depth,
                     .b = weight + (TAPS - 1) * depth * width, .b_row = width, .b_column = 1,
                     .b_tap = -depth * width, .depth = depth, .taps = taps, .bias = bias, .out = out + at * width,
                     .out_row = width, .relu = 1};
        multiply(&p, begins[taps] - at, width);
    }
}

/* to_weight += x of each tap times the gradient; to_bias += the gradient. */
static void lift_back(
    const float *x, long depth, const float *gradient, long width, long time, float *to_weight, float *to_bias)
{
    for (long tap = 0; tap < TAPS; tap++) {
        long shift = least(TAPS - 1 - tap, time);
        weigh(x, depth, gradient + shift * width, width, time - shift, to_weight + tap * depth * width);
    }
    add_rows(gradient, width, time, to_bias);
}

/* Kept activations come from far away: asked for while the layer before is at work. */
INLINE void ask_for(const float *from, long count, const int to_write)
{
    for (long at = 0; at < count; at += 16)
        __builtin_prefetch(from + at, to_write, 2);
}

long lanes(void) { return LANES; }

/* Numbers of at most `time` pairs twice, two flows of gradients, and a step of zeros. */
long causal_scratch(long time, long width) { return (2 * PLACES + 2) * time * width + width; }

INLINE layer laid_out(float *scratch, long time, long width)
{
    layer s = {time, width, 1, scratch, scratch + PLACES * time * width, scratch + 2 * PLACES * time * width};
    memset(scratch + 2 * PLACES * time * width, 0, width * sizeof(float));
    return s;
}

/* lift is (tap, column, channel), weights (layer, place, in, out), biases those of all, the head (outputs, width);
   kept: (1 + layers) activations, each (samples, time, width). */
void causal_forth(
    const float *inputs, long columns, const float *lift, const float *weights, const float **biases,
    const float *head, const float *head_bias, float **kept, float *out, float *scratch, long first, long last,
    long time, long width, long layers, long outputs)
{
    layer s = laid_out(scratch, time, width);
    for (long sample = first; sample < last; sample++) {
        long at = sample * time * width;
        lift_forth(inputs + sample * time * columns, columns, lift, width, time, biases[0], kept[0] + at);
        for (long n = 1; n <= layers; n++) {
            s.dilation = 1L << (n - 1) / 2;
            if (n < layers)
                ask_for(kept[n + 1] + at, time * width, 1);
            forth(s, kept[n - 1] + at, weights + (n - 1) * PLACES * width * width, biases[n],
                  n % 2 ? NULL : kept[n - 2] + at, kept[n] + at);
        }
        for (long now = sample * time; now < (sample + 1) * time; now++)
            for (long n = 0; n < outputs; n++)
                out[now * outputs + n] = head_bias[n] + dot(kept[layers] + now * width, head + n * width, width);
    }
}

/* turned is (layer, place, out, in). Adds to to_lift, to_weights (layer, place, in, out), to_biases, to_head. */
void causal_back(
    const float *inputs, long columns, const float *turned, const float *head, const float **kept,
    const float *upstream, float *to_lift, float *to_weights, float *to_biases, float *to_head, float *scratch,
    long first, long last, long time, long width, long layers, long outputs)
{
    long size = time * width, matrices = PLACES * width * width;
    layer s = laid_out(scratch, time, width);
    float *flow = scratch + 2 * PLACES * size + width, *inner = flow + size;
    for (long sample = first; sample < last; sample++) {
        const float *given = upstream + sample * time * outputs, *top = kept[layers] + sample * size;
        rows_times(time, given, outputs, head, width, NULL, NULL, flow);
        weigh(given, outputs, top, width, time, to_head);
        for (long at = 0; at < size; at += LANES)
            store(flow + at, where_active(load(top + at), load(flow + at)));
        for (long n = layers; n > 0; n--) { /* the second of a level reaches x through the residual as well */
            s.dilation = 1L << (n - 1) / 2;
            if (n > 1)
                ask_for(kept[n - 2] + sample * size, size, 0);
            else if (sample + 1 < last)
                ask_for(kept[layers] + (sample + 1) * size, size, 0);
            back(s, kept[n - 1] + sample * size, n % 2 ? inner : flow, turned + (n - 1) * matrices, n % 2,
                 n % 2 ? flow : inner, to_weights + (n - 1) * matrices, to_biases + n * width);
        }
        lift_back(inputs + sample * time * columns, columns, flow, width, time, to_lift, to_biases);
    }
}
