/* Batch norm with its ReLU over (pixel, channel), forth and back, in two passes each.

   Sums are taken over a few hundred pixels in float, those sums in double: no digits are lost over a million. */

#include <stddef.h>
#include <string.h>

#include "tile.h"

#define SOME 256
#define WIDEST 64 /* channels at a time */

INLINE long least(long one, long two) { return one < two ? one : two; }

/* Of some pixels: Σ value and Σ value · (x − mean), for the value x − mean itself or a gradient behind the ReLU. */
INLINE void chunk(
    const float *x, const float *y, const float *upstream, const float *mean, long pixels, long channels, long width,
    double *sums, double *along)
{
    float some[2][WIDEST];
    memset(some, 0, sizeof some);
    for (long pixel = 0; pixel < pixels; pixel++)
        for (long at = 0; at < width; at += LANES) {
            long place = pixel * channels + at;
            vector away = load(x + place) - load(mean + at), value = away;
            if (upstream)
                value = where_active(load(y + place), load(upstream + place));
            store(some[0] + at, load(some[0] + at) + value);
            store(some[1] + at, load(some[1] + at) + value * away);
        }
    for (long at = 0; at < width; at++)
        sums[at] += some[0][at], along[at] += some[1][at];
}

/* Adds to sums and along, of pixels first … last. Without `upstream`: of x itself. */
void norm_sums(
    const float *x, const float *y, const float *upstream, const float *mean, double *sums, double *along, long first,
    long last, long channels)
{
    for (long pixel = first; pixel < last; pixel += SOME)
        for (long at = 0; at < channels; at += WIDEST) {
            long begin = pixel * channels + at, width = least(channels - at, WIDEST);
            chunk(x + begin, upstream ? y + begin : NULL, upstream ? upstream + begin : NULL, mean + at,
                  least(last - pixel, SOME), channels, width, sums + at, along + at);
        }
}

/* y = relu(x · scale + offset) */
void norm_forth(
    const float *x, const float *scale, const float *offset, float *y, long first, long last, long channels)
{
    for (long pixel = first; pixel < last; pixel++)
        for (long at = 0; at < channels; at += LANES) {
            vector value = load(x + pixel * channels + at) * load(scale + at) + load(offset + at);
            store(y + pixel * channels + at, where_active(value, value));
        }
}

/* to_x = gradient behind the ReLU · scale + x · slope + offset */
void norm_back(
    const float *x, const float *y, const float *upstream, const float *scale, const float *slope,
    const float *offset, float *to_x, long first, long last, long channels)
{
    for (long pixel = first; pixel < last; pixel++)
        for (long at = 0; at < channels; at += LANES) {
            long place = pixel * channels + at;
            vector gradient = where_active(load(y + place), load(upstream + place));
            vector rest = load(x + place) * load(slope + at) + load(offset + at);
            store(to_x + place, gradient * load(scale + at) + rest);
        }
}
