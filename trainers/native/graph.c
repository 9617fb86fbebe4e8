/* A graph layer, window by window, forth and back: relu(own(h) + mean over neighbours of near(h)) + h.

   h is (window, node, width); a window's neighbours are (node, k) numbers of its own nodes. What one window
   needs fits into the first caches, so its rows are gathered and scattered there. */

#include "tile.h"

/* sums[i] += share · rows[j] for each neighbour j of i. */
static void gathered(
    const float *rows, const short *near, long nodes, long k, long width, float share, float *sums)
{
    for (long node = 0; node < nodes; node++, near += k, sums += width)
        for (long at = 0; at < width; at += LANES) {
            vector sum = {0};
            for (long n = 0; n < k; n++)
                sum += load(rows + near[n] * width + at);
            store(sums + at, load(sums + at) + share * sum);
        }
}

/* sums[j] += share · rows[i] for each neighbour j of i. */
static void scattered(
    const float *rows, const short *near, long nodes, long k, long width, float share, float *sums)
{
    for (long node = 0; node < nodes; node++, near += k, rows += width)
        for (long at = 0; at < width; at += LANES) {
            vector row = share * load(rows + at);
            for (long n = 0; n < k; n++) {
                float *place = sums + near[n] * width + at;
                store(place, load(place) + row);
            }
        }
}

/* means = those of the raw columns of each node's neighbours, however many columns there are. */
void graph_means(
    const float *x, const short *neighbours, float *means, long first, long last, long nodes, long k, long columns)
{
    for (long window = first; window < last; window++)
        for (long node = 0; node < nodes; node++) {
            const short *near = neighbours + (window * nodes + node) * k;
            const float *rows = x + window * nodes * columns;
            float *mean = means + (window * nodes + node) * columns;
            for (long at = 0; at < columns; at++)
                mean[at] = 0;
            for (long n = 0; n < k; n++)
                for (long at = 0; at < columns; at++)
                    mean[at] += rows[near[n] * columns + at] / k;
        }
}

/* own and near are (in, out). active is kept for the way back. */
void graph_forth(
    const float *h, const short *neighbours, const float *own, const float *bias, const float *near,
    float *active, float *out, float *scratch, long first, long last, long nodes, long k, long width)
{
    for (long window = first; window < last; window++) {
        long at = window * nodes * width, size = nodes * width;
        rows_times(nodes, h + at, width, near, width, 0, 0, scratch);
        rows_times(nodes, h + at, width, own, width, bias, 0, active + at);
        gathered(scratch, neighbours + window * nodes * k, nodes, k, width, 1.0f / k, active + at);
        for (long place = at; place < at + size; place += LANES) {
            vector value = where_active(load(active + place), load(active + place));
            store(active + place, value);
            store(out + place, value + load(h + place));
        }
    }
}

/* own and near are (out, in). Adds to to_own and to_near, likewise, and to to_bias. */
void graph_back(
    const float *h, const short *neighbours, const float *own, const float *near, const float *active,
    const float *upstream, float *to_h, float *to_own, float *to_near, float *to_bias, float *scratch, long first,
    long last, long nodes, long k, long width)
{
    long size = nodes * width;
    float *gradient = scratch, *spread = scratch + size;
    for (long window = first; window < last; window++) {
        long at = window * size;
        for (long place = 0; place < size; place += LANES) {
            store(gradient + place, where_active(load(active + at + place), load(upstream + at + place)));
            store(spread + place, (vector){0});
        }
        scattered(gradient, neighbours + window * nodes * k, nodes, k, width, 1.0f / k, spread);
        rows_times(nodes, gradient, width, own, width, 0, upstream + at, to_h + at);
        rows_times(nodes, spread, width, near, width, 0, to_h + at, to_h + at);
        weigh(gradient, width, h + at, width, nodes, to_own);
        weigh(spread, width, h + at, width, nodes, to_near);
        add_rows(gradient, width, nodes, to_bias);
    }
}
