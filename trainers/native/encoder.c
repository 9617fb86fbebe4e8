/* A transformer encoder layer (norms after the sums, no dropout), window by window, forth and back:

       h = norm(x + out(attention(x)));   y = norm(h + second(relu(first(h))))

   Weights are (in, out) on the way forth and (out, in) on the way back. */

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "functions.h"
#include "tile.h"

#define SMALL 1e-5f /* the library's, added to variances */

typedef struct {
    long nodes, width, heads, inner;
} sizes;

INLINE long head(sizes s) { return s.width / s.heads; }
INLINE long padded(sizes s) { return (s.nodes + LANES - 1) / LANES * LANES; }

/* What is kept of a window, one after the other. */
typedef struct {
    float *mixed, *chances, *context, *first, *first_scale, *relu, *second, *second_scale;
} room;

INLINE long of_window(sizes s)
{
    return s.nodes * (3 * s.width + s.heads * padded(s) + 3 * s.width + s.inner + 2);
}

INLINE room laid_out(sizes s, float *at)
{
    room kept;
    kept.mixed = at, at += s.nodes * 3 * s.width;
    kept.chances = at, at += s.heads * s.nodes * padded(s);
    kept.context = at, at += s.nodes * s.width;
    kept.first = at, at += s.nodes * s.width;
    kept.second = at, at += s.nodes * s.width;
    kept.relu = at, at += s.nodes * s.inner;
    kept.first_scale = at, at += s.nodes;
    kept.second_scale = at;
    return kept;
}

/* rows (nodes, head) of `from`, `row` apart, as columns of `to` (head, padded). */
static void turn(sizes s, const float *from, long row, float *to)
{
    long width = padded(s);
    for (long k = 0; k < head(s); k++)
        for (long node = 0; node < width; node++)
            to[k * width + node] = node < s.nodes ? from[node * row + k] : 0;
}

static void softmax_row(float *row, long count, long width)
{
    vector top = all(row[0]), sum = {0};
    for (long n = count; n < width; n++)
        row[n] = -INFINITY;
    for (long at = 0; at < width; at += LANES)
        top = larger(top, load(row + at));
    float most = top[0];
    for (int lane = 1; lane < LANES; lane++)
        most = top[lane] > most ? top[lane] : most;
    for (long at = 0; at < width; at += LANES) {
        vector value = exponential(load(row + at) - most);
        store(row + at, value);
        sum += value;
    }
    for (long n = count; n < width; n++)
        sum[0] -= row[n], row[n] = 0;
    float share = 1.0f / total(sum);
    for (long at = 0; at < width; at += LANES)
        store(row + at, load(row + at) * share);
}

/* In place: rows become normalised; scale[n] = 1 / deviation. out = rows · gain + bias. */
static void normalise(
    long nodes, long width, float *rows, float *scale, const float *gain, const float *bias, float *out)
{
    for (long node = 0; node < nodes; node++, rows += width, out += width) {
        vector sum = {0}, squares = {0};
        for (long at = 0; at < width; at += LANES)
            sum += load(rows + at);
        float mean = total(sum) / width;
        for (long at = 0; at < width; at += LANES) {
            vector away = load(rows + at) - mean;
            squares += away * away;
        }
        scale[node] = 1.0f / sqrtf(total(squares) / width + SMALL);
        for (long at = 0; at < width; at += LANES) {
            vector value = (load(rows + at) - mean) * scale[node];
            store(rows + at, value);
            store(out + at, value * load(gain + at) + load(bias + at));
        }
    }
}

/* gradient: of the outputs → of the inputs of a norm; adds to to_gain and to_bias. */
static void denormalise(
    long nodes, long width, const float *rows, const float *scale, const float *gain, float *gradient,
    float *to_gain, float *to_bias)
{
    for (long node = 0; node < nodes; node++, rows += width, gradient += width) {
        vector sum = {0}, along = {0};
        for (long at = 0; at < width; at += LANES) {
            vector given = load(gradient + at), row = load(rows + at), inner = given * load(gain + at);
            store(to_gain + at, load(to_gain + at) + given * row);
            store(to_bias + at, load(to_bias + at) + given);
            sum += inner, along += inner * row;
        }
        float mean = total(sum) / width, part = total(along) / width;
        for (long at = 0; at < width; at += LANES) {
            vector inner = load(gradient + at) * load(gain + at);
            store(gradient + at, scale[node] * (inner - mean - part * load(rows + at)));
        }
    }
}

/* A product whose rows are parts of wider ones. */
INLINE void cut(
    long rows, long columns, long depth, const float *a, long a_row, long a_step, const float *b, long b_row,
    float *out, long out_row)
{
    product p = {.a = a, .a_row = a_row, .a_step = a_step, .b = b, .b_row = b_row, .b_column = 1, .depth = depth,
                 .taps = 1, .out = out, .out_row = out_row};
    multiply(&p, rows, columns);
}

static void attend(sizes s, room kept, float *turned)
{
    long row = 3 * s.width, wide = padded(s);
    float factor = 1.0f / sqrtf(head(s));
    for (long h = 0; h < s.heads; h++) {
        const float *query = kept.mixed + h * head(s), *key = query + s.width, *value = key + s.width;
        float *chances = kept.chances + h * s.nodes * wide;
        turn(s, key, row, turned);
        cut(s.nodes, wide, head(s), query, row, 1, turned, wide, chances, wide);
        for (long node = 0; node < s.nodes; node++) {
            for (long at = 0; at < wide; at += LANES)
                store(chances + node * wide + at, load(chances + node * wide + at) * factor);
            softmax_row(chances + node * wide, s.nodes, wide);
        }
        cut(s.nodes, head(s), s.nodes, chances, wide, 1, value, row, kept.context + h * head(s), s.width);
    }
}

static void attend_back(sizes s, room kept, const float *to_context, float *turned, float *scores, float *to_mixed)
{
    long row = 3 * s.width, wide = padded(s);
    float factor = 1.0f / sqrtf(head(s));
    for (long h = 0; h < s.heads; h++) {
        const float *query = kept.mixed + h * head(s), *key = query + s.width, *value = key + s.width;
        const float *chances = kept.chances + h * s.nodes * wide, *given = to_context + h * head(s);
        float *to_query = to_mixed + h * head(s), *to_key = to_query + s.width, *to_value = to_key + s.width;
        turn(s, value, row, turned);
        cut(s.nodes, wide, head(s), given, s.width, 1, turned, wide, scores, wide);
        cut(s.nodes, head(s), s.nodes, chances, 1, wide, given, s.width, to_value, row);
        for (long node = 0; node < s.nodes; node++) {
            float *score = scores + node * wide, mean = dot(score, chances + node * wide, wide);
            for (long at = 0; at < wide; at += LANES)
                store(score + at, (load(score + at) - mean) * load(chances + node * wide + at) * factor);
        }
        cut(s.nodes, head(s), s.nodes, scores, wide, 1, key, row, to_query, row);
        cut(s.nodes, head(s), s.nodes, scores, 1, wide, query, row, to_key, row);
    }
}

long encoder_kept(long nodes, long width, long heads, long inner)
{
    return of_window((sizes){nodes, width, heads, inner});
}

long encoder_scratch(long nodes, long width, long heads, long inner)
{
    sizes s = {nodes, width, heads, inner};
    return head(s) * padded(s) + nodes * (padded(s) + 5 * width + inner);
}

/* weights: mix, out, first, second, each with its bias, then gain and bias of both norms. */
void encoder_forth(
    const float *x, const float **weights, float *kept, float *y, float *scratch, long begin, long end, long nodes,
    long width, long heads, long inner)
{
    sizes s = {nodes, width, heads, inner};
    for (long window = begin; window < end; window++) {
        room r = laid_out(s, kept + window * of_window(s));
        const float *from = x + window * nodes * width;
        float *to = y + window * nodes * width, *h = scratch + head(s) * padded(s);
        rows_times(nodes, from, width, weights[0], 3 * width, weights[1], NULL, r.mixed);
        attend(s, r, scratch);
        rows_times(nodes, r.context, width, weights[2], width, weights[3], from, r.first);
        normalise(nodes, width, r.first, r.first_scale, weights[8], weights[9], h);
        rows_times(nodes, h, width, weights[4], inner, weights[5], NULL, r.relu);
        for (long at = 0; at < nodes * inner; at += LANES)
            store(r.relu + at, where_active(load(r.relu + at), load(r.relu + at)));
        rows_times(nodes, r.relu, inner, weights[6], width, weights[7], h, r.second);
        normalise(nodes, width, r.second, r.second_scale, weights[10], weights[11], to);
    }
}

/* The four matrices are (out, in) here; norms: as above. Adds to `to`, ordered like the weights, also (out, in). */
void encoder_back(
    const float *x, const float **turned, const float **norms, float *kept, const float *upstream, float *to_x,
    float **to, float *scratch, long begin, long end, long nodes, long width, long heads, long inner)
{
    sizes s = {nodes, width, heads, inner};
    long size = nodes * width;
    float *keys = scratch, *scores = keys + head(s) * padded(s), *flow = scores + nodes * padded(s);
    float *h = flow + size, *to_mixed = h + size, *to_relu = to_mixed + 3 * size;
    for (long window = begin; window < end; window++) {
        room r = laid_out(s, kept + window * of_window(s));
        const float *from = x + window * size;
        float *back = to_x + window * size;
        memcpy(flow, upstream + window * size, size * sizeof(float));
        denormalise(nodes, width, r.second, r.second_scale, norms[2], flow, to[10], to[11]);
        for (long node = 0; node < nodes; node++)
            for (long at = 0; at < width; at += LANES)
                store(h + node * width + at,
                      load(r.first + node * width + at) * load(norms[0] + at) + load(norms[1] + at));
        rows_times(nodes, flow, width, turned[3], inner, NULL, NULL, to_relu);
        weigh(flow, width, r.relu, inner, nodes, to[6]);
        add_rows(flow, width, nodes, to[7]);
        for (long at = 0; at < nodes * inner; at += LANES)
            store(to_relu + at, where_active(load(r.relu + at), load(to_relu + at)));
        weigh(to_relu, inner, h, width, nodes, to[4]);
        add_rows(to_relu, inner, nodes, to[5]);
        rows_times(nodes, to_relu, inner, turned[2], width, NULL, flow, flow);
        denormalise(nodes, width, r.first, r.first_scale, norms[0], flow, to[8], to[9]);
        weigh(flow, width, r.context, width, nodes, to[2]);
        add_rows(flow, width, nodes, to[3]);
        rows_times(nodes, flow, width, turned[1], width, NULL, NULL, h);
        attend_back(s, r, h, keys, scores, to_mixed);
        weigh(to_mixed, 3 * width, from, width, nodes, to[0]);
        add_rows(to_mixed, 3 * width, nodes, to[1]);
        rows_times(nodes, to_mixed, 3 * width, turned[0], width, NULL, flow, back);
    }
}
