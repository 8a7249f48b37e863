#version 450
#extension GL_GOOGLE_include_directive : require
// A binary operator on two quantized tensors that broadcast in any way. COMPARES, set by -D: the result
// is a truth value. FUSES: functions of bytes may be fused behind it.
//
// tflite_vk/ops/quantized/binary.py has the same numbers.

#define TABLE_BINDING 3
#define TABLE_ID 4
#include "dispatch.glsl"
#include "quantize.glsl"
#ifdef FUSES
#include "table.glsl"
#endif

layout(constant_id = 3) const uint BINARY_OP = 0u;
const uint ADD = 0u;
const uint SUB = 1u;
const uint MUL = 2u;
const uint MAXIMUM = 3u;
const uint MINIMUM = 4u;
const uint SQUARED_DIFFERENCE = 5u;
const uint PRELU = 6u;
const uint EQUAL = 7u;
const uint NOT_EQUAL = 8u;
const uint GREATER = 9u;
const uint GREATER_EQUAL = 10u;
const uint LESS = 11u;
const uint LESS_EQUAL = 12u;

TENSOR_IN(0, ACT, a);
TENSOR_IN(1, ACT, b);
#ifdef COMPARES
TENSOR_OUT(2, u32, y);
#else
TENSOR_OUT(2, ACT, y);
#endif

layout(push_constant) uniform Push {
    uint num_groups;
    uint groups_per_row;
    uint num_dims;       // in use below, the outermost first
    uint dims[5];
    uint a_strides[5];   // in elements
    uint b_strides[5];
    uint splat;          // bit 0: `a` has one element for a row of y; bit 1: `b`
    uint flip;
    int a_zero;
    int b_zero;
    int y_zero;
    int left_shift;      // before the multipliers of a and b
    int a_multiplier;    // PRELU: of values >= 0
    int a_shift;
    int b_multiplier;
    int b_shift;
    int y_multiplier;    // PRELU: of the products
    int y_shift;
    int lowest;
    int highest;
} p;

ivec4 scaled(ivec4 x, int multiplier, int shift) {
    return multiply_by_quantized(x, ivec4(multiplier), ivec4(shift));
}

#ifdef COMPARES
uvec4 combine(ivec4 x, ivec4 y) {
    ivec4 s = scaled(x << p.left_shift, p.a_multiplier, p.a_shift);
    ivec4 t = scaled(y << p.left_shift, p.b_multiplier, p.b_shift);
    switch (BINARY_OP) {
    case EQUAL: return uvec4(equal(s, t));
    case NOT_EQUAL: return uvec4(notEqual(s, t));
    case GREATER: return uvec4(greaterThan(s, t));
    case GREATER_EQUAL: return uvec4(greaterThanEqual(s, t));
    case LESS: return uvec4(lessThan(s, t));
    }
    return uvec4(lessThanEqual(s, t));
}
#else
ivec4 combine(ivec4 x, ivec4 y) {
    if (BINARY_OP == MAXIMUM) return max(x, y);
    if (BINARY_OP == MINIMUM) return min(x, y);
    ivec4 result;
    if (BINARY_OP == MUL) {
        result = scaled(x * y, p.y_multiplier, p.y_shift);
    } else if (BINARY_OP == PRELU) {
        ivec4 kept = scaled(x, p.a_multiplier, p.a_shift);
        result = mix(kept, scaled(x * y, p.y_multiplier, p.y_shift), lessThan(x, ivec4(0)));
    } else {
        ivec4 s = scaled(x << p.left_shift, p.a_multiplier, p.a_shift);
        ivec4 t = scaled(y << p.left_shift, p.b_multiplier, p.b_shift);
        ivec4 raw = BINARY_OP == ADD ? s + t : s - t;
        if (BINARY_OP == SQUARED_DIFFERENCE) raw *= raw;
        result = scaled(raw, p.y_multiplier, p.y_shift);
    }
    return clamp(result + p.y_zero, p.lowest, p.highest);
}
#endif

void main() {
    uint i = flat_index();
    if (i >= p.num_groups) return;
    uint rest = i / p.groups_per_row;
    uint group = i - rest * p.groups_per_row;
    uint at_a = 0u;
    uint at_b = 0u;
    for (uint d = p.num_dims; d-- > 0u;) {
        uint quotient = d == 0u ? 0u : rest / p.dims[d];
        uint coordinate = rest - quotient * p.dims[d];
        at_a += coordinate * p.a_strides[d];
        at_b += coordinate * p.b_strides[d];
        rest = quotient;
    }
    ivec4 av = LOAD_Q(ACT, a, (at_a >> 2) + ((p.splat & 1u) != 0u ? 0u : group), p.flip) - p.a_zero;
    ivec4 bv = LOAD_Q(ACT, b, (at_b >> 2) + ((p.splat & 2u) != 0u ? 0u : group), p.flip) - p.b_zero;
    if ((p.splat & 1u) != 0u) av = ivec4(av[at_a & 3u]);
    if ((p.splat & 2u) != 0u) bv = ivec4(bv[at_b & 3u]);
#ifdef COMPARES
    STORE(u32, y, i, combine(av, bv));
#elif defined(FUSES)
    y.data[i] = through_table(pack_i8(combine(av, bv)) ^ p.flip);
#else
    STORE_Q(ACT, y, i, combine(av, bv), p.flip);
#endif
}
