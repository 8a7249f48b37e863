#version 450
#extension GL_GOOGLE_include_directive : require
// Operators whose result is an integer or a truth value (0 or 1), with every broadcast: int32
// and int64 arithmetic, comparisons of these and of float32, logic on truth values. Functions of one
// value read `b` but make nothing of it.
//
// tflite_vk/ops/integer.py has the same numbers.

#include "dispatch.glsl"
#include "divide.glsl"
#include "long.glsl"
#include "tensor.glsl"

#ifndef IN
#define IN i32
#endif
#ifndef OUT
#define OUT i32
#endif

#ifndef MOST_SHIFT
#define MOST_SHIFT 31
#endif

layout(constant_id = 3) const uint OP = 0u;

TENSOR_IN(0, IN, a);
TENSOR_IN(1, IN, b);
TENSOR_OUT(2, OUT, y);

layout(push_constant) uniform Push {
    uint num_groups;
    uint groups_per_row;
    uint num_dims;      // in use below, the outermost first
    uint dims[5];
    uint a_strides[5];  // in elements
    uint b_strides[5];
    uint splat;         // bit 0: `a` has one element for a row of y; bit 1: `b`
    uint magic[6];      // of dims and groups_per_row
    uint shifts;
} p;

#ifdef ARITHMETIC
// Division as in C++, where TFLite itself is defined; anything but a trap elsewhere.
ivec4 quotient(ivec4 x, ivec4 y) {
    bvec4 safe = bvec4(uvec4(notEqual(y, ivec4(0))) & uvec4(notEqual(y, ivec4(-1))));
    return mix(mix(ivec4(0), -x, equal(y, ivec4(-1))), x / mix(ivec4(1), y, safe), safe);
}

// -1 where the exact quotient is negative and no integer.
ivec4 floor_step(ivec4 x, ivec4 y) {
    ivec4 inexact = ivec4(notEqual(x - quotient(x, y) * y, ivec4(0)));
    return -(inexact & ivec4(lessThan(x ^ y, ivec4(0))));
}

int power(int x, int exponent) {
    int result = 1;
    for (; exponent > 0; exponent >>= 1) {
        if ((exponent & 1) != 0) result *= x;
        x *= x;
    }
    return result;
}

ivec4 arithmetic(ivec4 x, ivec4 y) {
    switch (OP) {
    case 16u: return x + y;
    case 17u: return x - y;
    case 18u: return x * y;
    case 19u: return quotient(x, y);
    case 20u: return max(x, y);
    case 21u: return min(x, y);
    case 22u: return quotient(x, y) + floor_step(x, y);
    case 23u: return x - (quotient(x, y) + floor_step(x, y)) * y;
    case 24u: return (x - y) * (x - y);
    case 25u: return x & y;
    case 26u: return x | y;
    case 27u: return ivec4(power(x.x, y.x), power(x.y, y.y), power(x.z, y.z), power(x.w, y.w));
    case 28u: return x ^ y;
    case 29u: return x >> clamp(y, ivec4(0), ivec4(MOST_SHIFT));
    case 30u: return x << (y & 31);
    case 31u: return ivec4(uvec4(x) >> min(uvec4(y), uvec4(31u)));
    case 32u: return -x;
    case 33u: return abs(x);
    case 34u: return sign(x);
    case 35u: return ivec4(equal(x, ivec4(0)));
    case 36u: return max(x, ivec4(0));
    case 37u: return clamp(x, ivec4(0), ivec4(6));
    case 38u: return clamp(x, ivec4(-1), ivec4(1));
    }
    return x;
}
#else
ivec4 arithmetic(vec4 x, vec4 y) { return ivec4(0); }
#endif

vec4 all_lanes(vec4 v, uint lane) { return vec4(v[lane]); }
ivec4 all_lanes(ivec4 v, uint lane) { return ivec4(v[lane]); }

#ifdef LONG
Long4 minimum(Long4 x, Long4 y) { return choose(x, y, is_less(y, x)); }
Long4 maximum(Long4 x, Long4 y) { return choose(x, y, is_less(x, y)); }

Long4 binary(Long4 x, Long4 y) {
    switch (OP) {
    case 16u: return add(x, y);
    case 17u: return subtract(x, y);
    case 18u: return multiply(x, y);
    case 20u: return maximum(x, y);
    case 21u: return minimum(x, y);
    case 23u: return floor_mod(x, y);
    case 32u: return negated(x);
    case 36u: return maximum(x, long_of(0));
    case 37u: return minimum(maximum(x, long_of(0)), long_of(6));
    case 38u: return minimum(maximum(x, long_of(-1)), long_of(1));
    }
    return x;
}
#elif defined COMPARES_LONG
ivec4 binary(Long4 x, Long4 y) {
    switch (OP) {
    case 0u: return ivec4(is_equal(x, y));
    case 1u: return ivec4(not(is_equal(x, y)));
    case 2u: return ivec4(is_less(y, x));
    case 3u: return ivec4(not(is_less(x, y)));
    case 4u: return ivec4(is_less(x, y));
    }
    return ivec4(not(is_less(y, x)));
}
#else
ivec4 binary(VALUE(IN) x, VALUE(IN) y) {
    switch (OP) {
    case 0u: return ivec4(equal(x, y));
    case 1u: return ivec4(notEqual(x, y));
    case 2u: return ivec4(greaterThan(x, y));
    case 3u: return ivec4(greaterThanEqual(x, y));
    case 4u: return ivec4(lessThan(x, y));
    case 5u: return ivec4(lessThanEqual(x, y));
    }
    return arithmetic(x, y);
}
#endif

void main() {
    uint i = flat_index();
    if (i >= p.num_groups) return;
    uint rest = divide(i, p.magic[5], p.shifts, 5u);
    uint group = i - rest * p.groups_per_row;
    uint at_a = 0u;
    uint at_b = 0u;
    for (uint d = p.num_dims; d-- > 0u;) {
        uint quotient = d == 0u ? 0u : divide(rest, p.magic[d], p.shifts, d);
        uint coordinate = rest - quotient * p.dims[d];
        at_a += coordinate * p.a_strides[d];
        at_b += coordinate * p.b_strides[d];
        rest = quotient;
    }
    VALUE(IN) av = LOAD(IN, a, (at_a >> 2) + ((p.splat & 1u) != 0u ? 0u : group));
    VALUE(IN) bv = LOAD(IN, b, (at_b >> 2) + ((p.splat & 2u) != 0u ? 0u : group));
    if ((p.splat & 1u) != 0u) av = all_lanes(av, at_a & 3u);
    if ((p.splat & 2u) != 0u) bv = all_lanes(bv, at_b & 3u);
    STORE(OUT, y, i, binary(av, bv));
}
