/* One LSTM layer, a few sequences at a time through all their steps, forth and back.

   Everything is (sequence, step, …), gates in the library's order: in, forget, candidate, out. The weights come
   in panels, (panel, term, PANEL): all of them stay in the second-level cache while the sequences pass. */

#include <stddef.h>

#include "functions.h"
#include "tile.h"

typedef struct {
    long steps, columns, hidden;
} shape;

/* All gates of one step for a few sequences, before their functions. */
static void mix(
    long rows, shape s, const float *x, const float *states, long step, const float *weight, const float *bias,
    float *gates)
{
    long width = 4 * s.hidden, terms = s.hidden + s.columns;
    product p = {.a = x + step * s.columns, .a_row = s.steps * s.columns, .a_step = 1,
                 .b = weight + s.hidden * PANEL, .b_row = PANEL, .b_column = terms, .depth = s.columns, .taps = 1,
                 .bias = bias, .out = gates + step * width, .out_row = s.steps * width};
    multiply(&p, rows, width);
    if (!step)
        return;
    p.a = states + (step - 1) * s.hidden, p.a_row = s.steps * s.hidden, p.b = weight, p.depth = s.hidden;
    p.bias = NULL, p.start = p.out, p.start_row = p.out_row;
    multiply(&p, rows, width);
}

static void activate(shape s, float *gates, const float *before, float *cell, float *state)
{
    for (long at = 0; at < s.hidden; at += LANES) {
        float *in = gates + at, *forget = in + s.hidden, *candidate = forget + s.hidden, *out = candidate + s.hidden;
        vector i = sigmoid(load(in)), f = sigmoid(load(forget)), g = hyperbolic(load(candidate));
        vector o = sigmoid(load(out)), c = i * g;
        if (before)
            c += f * load(before + at);
        store(in, i), store(forget, f), store(candidate, g), store(out, o);
        store(cell + at, c);
        store(state + at, o * hyperbolic(c));
    }
}

/* Sequences first … last: x (…, columns) → gates (…, 4·hidden), cells and states (…, hidden). */
void lstm_forth(
    const float *x, const float *weight, const float *bias, float *gates, float *cells, float *states, long first,
    long last, long steps, long columns, long hidden)
{
    shape s = {steps, columns, hidden};
    for (long row = first; row < last; row += ROWS)
        for (long step = 0; step < steps; step++) {
            long rows = last - row < ROWS ? last - row : ROWS, begin = row * steps;
            mix(rows, s, x + begin * columns, states + begin * hidden, step, weight, bias,
                gates + 4 * begin * hidden);
            for (long at = begin + step; at < begin + rows * steps; at += steps) {
                float *cell = cells + at * hidden;
                activate(s, gates + 4 * at * hidden, step ? cell - hidden : NULL, cell, states + at * hidden);
            }
        }
}

/* Gradients of a step's gates; `flow` and `carry` are those of its state and cell. */
static void deactivate(
    shape s, const float *gates, const float *cell, const float *before, const float *upstream, float *gradient,
    const float *flow, float *carry)
{
    for (long at = 0; at < s.hidden; at += LANES) {
        const float *place = gates + at;
        vector i = load(place), f = load(place + s.hidden);
        vector g = load(place + 2 * s.hidden), o = load(place + 3 * s.hidden);
        vector c = hyperbolic(load(cell + at)), to_state = load(upstream + at) + load(flow + at);
        vector to_cell = load(carry + at) + to_state * o * (1.0f - c * c), earlier = {0};
        if (before)
            earlier = load(before + at);
        store(gradient + at, to_cell * g * i * (1.0f - i));
        store(gradient + at + s.hidden, to_cell * earlier * f * (1.0f - f));
        store(gradient + at + 2 * s.hidden, to_cell * i * (1.0f - g * g));
        store(gradient + at + 3 * s.hidden, to_state * c * o * (1.0f - o));
        store(carry + at, to_cell * f);
    }
}

/* gradient = those of all gates of a few sequences, step by step from the last to the first. */
static void some_back(
    long rows, shape s, const float *turned, const float *gates, const float *cells, const float *upstream,
    float *gradient, float *flow, float *carry)
{
    long width = 4 * s.hidden;
    product p = {.a_row = s.steps * width, .a_step = 1, .b = turned, .b_row = PANEL, .b_column = width,
                 .depth = width, .taps = 1, .out = flow, .out_row = s.hidden};
    for (long at = 0; at < ROWS * s.hidden; at++)
        flow[at] = carry[at] = 0;
    for (long step = s.steps - 1; step >= 0; step--) {
        for (long r = 0; r < rows; r++) {
            long at = r * s.steps + step;
            const float *cell = cells + at * s.hidden;
            deactivate(s, gates + at * width, cell, step ? cell - s.hidden : NULL, upstream + at * s.hidden,
                       gradient + at * width, flow + r * s.hidden, carry + r * s.hidden);
        }
        p.a = gradient + step * width;
        if (step)
            multiply(&p, rows, s.hidden);
    }
}

long panel(void) { return PANEL; }
long lstm_scratch(long steps, long hidden) { return ROWS * hidden * (4 * steps + 2); }

/* Adds to to_recurrent (hidden, 4·hidden), to_input (columns, 4·hidden) and to_bias. */
void lstm_back(
    const float *x, const float *turned, const float *gates, const float *cells, const float *states,
    const float *upstream, float *to_recurrent, float *to_input, float *to_bias, float *scratch, long first,
    long last, long steps, long columns, long hidden)
{
    shape s = {steps, columns, hidden};
    long width = 4 * hidden;
    float *flow = scratch, *carry = flow + ROWS * hidden, *gradient = carry + ROWS * hidden;
    for (long row = first; row < last; row += ROWS) {
        long rows = last - row < ROWS ? last - row : ROWS, at = row * steps;
        some_back(rows, s, turned, gates + at * width, cells + at * hidden, upstream + at * hidden, gradient, flow,
                  carry);
        for (long r = 0; r < rows; r++, at += steps) {
            const float *mine = gradient + r * steps * width;
            weigh(states + at * hidden, hidden, mine + width, width, steps - 1, to_recurrent);
            weigh(x + at * columns, columns, mine, width, steps, to_input);
            add_rows(mine, width, steps, to_bias);
        }
    }
}
