/* Attention over the steps of a sequence, forth and back, one sequence after the other.

       inner = tanh(states · first + bias);   weight = softmax(inner · second);   context = Σ weight · states

   The last bias of the scores is left out: a softmax does not see it. first is (hidden, inner). */

#include <stddef.h>

#include "functions.h"
#include "tile.h"

static void softmax(float *scores, long count)
{
    float most = scores[0], sum = 0;
    for (long n = 1; n < count; n++)
        most = scores[n] > most ? scores[n] : most;
    for (long n = 0; n < count; n++)
        sum += scores[n] = exponential(all(scores[n] - most))[0];
    for (long n = 0; n < count; n++)
        scores[n] /= sum;
}

INLINE void add_scaled(float *sums, float factor, const float *row, long width)
{
    for (long at = 0; at < width; at += LANES)
        store(sums + at, load(sums + at) + factor * load(row + at));
}

/* inner (…, steps, inner) and weights (…, steps) are kept for the way back. */
void attention_forth(
    const float *states, const float *first_weight, const float *bias, const float *second, float *inners,
    float *weights, float *contexts, long first, long last, long steps, long hidden, long width)
{
    for (long row = first; row < last; row++) {
        const float *state = states + row * steps * hidden;
        float *inner = inners + row * steps * width, *weight = weights + row * steps;
        float *context = contexts + row * hidden;
        rows_times(steps, state, hidden, first_weight, width, bias, NULL, inner);
        for (long at = 0; at < steps * width; at += LANES)
            store(inner + at, hyperbolic(load(inner + at)));
        for (long step = 0; step < steps; step++)
            weight[step] = dot(inner + step * width, second, width);
        softmax(weight, steps);
        for (long at = 0; at < hidden; at++)
            context[at] = 0;
        for (long step = 0; step < steps; step++)
            add_scaled(context, weight[step], state + step * hidden, hidden);
    }
}

/* turned is (inner, hidden). Adds to to_first, to_bias and to_second; scratch has room for (steps, inner). */
void attention_back(
    const float *states, const float *turned, const float *second, const float *inners, const float *weights,
    const float *upstream, float *to_states, float *to_first, float *to_bias, float *to_second, float *scratch,
    long first, long last, long steps, long hidden, long width)
{
    for (long row = first; row < last; row++) {
        const float *state = states + row * steps * hidden, *to_context = upstream + row * hidden;
        const float *inner = inners + row * steps * width, *weight = weights + row * steps;
        float *to_state = to_states + row * steps * hidden, mean = 0;
        for (long step = 0; step < steps; step++)
            mean += weight[step] * dot(state + step * hidden, to_context, hidden);
        for (long step = 0; step < steps; step++) {
            float to_score = weight[step] * (dot(state + step * hidden, to_context, hidden) - mean);
            for (long at = 0; at < hidden; at += LANES)
                store(to_state + step * hidden + at, weight[step] * load(to_context + at));
            for (long at = 0; at < width; at += LANES) {
                vector value = load(inner + step * width + at);
                store(scratch + step * width + at, to_score * load(second + at) * (1.0f - value * value));
            }
            add_scaled(to_second, to_score, inner + step * width, width);
        }
        rows_times(steps, scratch, width, turned, hidden, NULL, to_state, to_state);
        weigh(state, hidden, scratch, width, steps, to_first);
        add_rows(scratch, width, steps, to_bias);
    }
}
