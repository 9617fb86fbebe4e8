/* Exponential, sigmoid and tangent of vectors, to the last digit or two of a float. */

#pragma once

#include "tile.h"

INLINE vector all(float value) { return value - (vector){0}; }

INLINE vector smaller(vector one, vector two)
{
    whole pick = one > two; /* a NaN in `one` stays */
    return (vector)(((whole)two & pick) | ((whole)one & ~pick));
}

INLINE vector larger(vector one, vector two) { return -smaller(-one, -two); }

/* e to the x: 2^n times a series over what is left, at most half a ln 2. */
INLINE vector exponential(vector x)
{
    const float magic = 12582912.0f; /* adding it rounds to a whole number, which is then in the low bits */
    x = larger(smaller(x, all(88.0f)), all(-87.0f));
    vector shifted = x * 1.44269504f + magic, n = shifted - magic;
    vector rest = (x - n * 0.693359375f) + n * 2.12194440e-4f;
    vector sum = all(1.0f / 5040);
    sum = sum * rest + 1.0f / 720;
    sum = sum * rest + 1.0f / 120;
    sum = sum * rest + 1.0f / 24;
    sum = sum * rest + 1.0f / 6;
    sum = sum * rest + 0.5f;
    sum = sum * rest + 1.0f;
    sum = sum * rest + 1.0f;
    return sum * (vector)(((whole)shifted << 23) + (127 << 23));
}

INLINE vector sigmoid(vector x) { return 1.0f / (1.0f + exponential(-x)); }

/* Near zero its series: 1 − 2/(1 + e^2x) would lose its digits there. */
INLINE vector hyperbolic(vector x)
{
    vector square = x * x, series = all(62.0f / 2835);
    series = series * square - 17.0f / 315;
    series = series * square + 2.0f / 15;
    series = series * square - 1.0f / 3;
    vector near = x + x * square * series, far = 1.0f - 2.0f / (1.0f + exponential(2.0f * x));
    whole pick = square < 0.0625f;
    return (vector)(((whole)near & pick) | ((whole)far & ~pick));
}

/* Halves added to one another: lane after lane would wait for every sum before. */
INLINE float total(vector value)
{
    typedef float half __attribute__((vector_size(2 * LANES), aligned(4), may_alias));
    typedef float quarter __attribute__((vector_size(LANES), aligned(4), may_alias));
    half halves = *(half *)&value + *((half *)&value + 1);
    quarter four = *(quarter *)&halves + *((quarter *)&halves + 1);
    float sum = 0;
    for (int lane = 0; lane < LANES / 4; lane += 2)
        sum += four[lane] + four[lane + 1];
    return sum;
}

INLINE float dot(const float *one, const float *two, long count)
{
    vector sum = {0};
    for (long at = 0; at < count; at += LANES)
        sum += load(one + at) * load(two + at);
    return total(sum);
}
