#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
// SOFTMAX of int8 or uint8 over the innermost dimension. A workgroup makes local size y rows; the
// invocations along x share each. The host tabulates exp(-difference) in Q0.31, zero where TFLite
// leaves it out.
//
// LOG, set by -D: LOG_SOFTMAX. Behind the table there is another, of -difference in Q5.26.

#include "dispatch.glsl"
#include "fixed_point.glsl"

TENSOR_IN(0, i8, x);
layout(set = 0, binding = 1, std430) readonly buffer exps_block { int data[]; } exps;
TENSOR_OUT(2, i8, y);

layout(push_constant) uniform Push {
    uint num_rows;
    uint groups;        // per row
    uint tail;          // elements in the last group
    uint flip;
#ifdef LOG
    int lowest_difference;  // that counts, less 1
    int multiplier;         // from Q5.26 to differences
    int shift;
#endif
} p;

shared int partial[gl_WorkGroupSize.x * gl_WorkGroupSize.y];

const int ACCUMULATOR_INTEGER_BITS = 12;

ivec4 row_group(uint base, uint group, int filler) {
    ivec4 v = unpack_i8(x.data[base + group] ^ p.flip);
    if (group == p.groups - 1u) v = mix(ivec4(filler), v, lessThan(uvec4(0u, 1u, 2u, 3u), uvec4(p.tail)));
    return v;
}

void main() {
    uint row = flat_group() * gl_WorkGroupSize.y + gl_LocalInvocationID.y;
    bool is_row = row < p.num_rows;
    uint base = (is_row ? row : 0u) * p.groups;
    uint me = gl_LocalInvocationID.x;
    uint first = gl_LocalInvocationID.y * gl_WorkGroupSize.x;

    int most = -128;
    for (uint g = me; g < p.groups; g += gl_WorkGroupSize.x) {
        ivec4 v = row_group(base, g, -128);
        most = max(most, max(max(v.x, v.y), max(v.z, v.w)));
    }
    partial[first + me] = most;
    for (uint size = gl_WorkGroupSize.x / 2u; size > 0u; size /= 2u) {
        barrier();
        if (me < size) partial[first + me] = max(partial[first + me], partial[first + me + size]);
    }
    barrier();
    most = partial[first];
    barrier();

    int sum = 0;
    for (uint g = me; g < p.groups; g += gl_WorkGroupSize.x) {
        ivec4 v = unpack_i8(x.data[base + g] ^ p.flip);
        uint count = g == p.groups - 1u ? p.tail : 4u;
        for (uint k = 0u; k < count; ++k) sum += fixed_divide_by_pot(exps.data[most - v[k]], ACCUMULATOR_INTEGER_BITS);
    }
    partial[first + me] = sum;
    for (uint size = gl_WorkGroupSize.x / 2u; size > 0u; size /= 2u) {
        barrier();
        if (me < size) partial[first + me] += partial[first + me + size];
    }
    barrier();
    sum = partial[first];

    if (!is_row) return;
#ifdef LOG
    int log_sum = log_of(sum, ACCUMULATOR_INTEGER_BITS, 5);
    int lowest = multiply_by_quantized(ivec4(log_sum + INT_MIN), ivec4(p.multiplier), ivec4(p.shift)).x;
    lowest = max(lowest, p.lowest_difference);
#else
    int headroom = count_leading_zeros(sum);
    int scale = one_over_one_plus(int((uint(sum) << headroom) - 0x80000000u));
    ivec4 exponent = ivec4(ACCUMULATOR_INTEGER_BITS - headroom + 31 - 8);
#endif
    for (uint g = me; g < p.groups; g += gl_WorkGroupSize.x) {
        ivec4 v = most - row_group(base, g, most);
#ifdef LOG
        ivec4 d = ivec4(exps.data[256 + v.x], exps.data[256 + v.y], exps.data[256 + v.z], exps.data[256 + v.w]);
        ivec4 result = divide_by_pot(d - log_sum, ivec4(31 - 5 - 4)) + 127;
        result = mix(ivec4(-128), result, greaterThan(-v, ivec4(lowest)));
#else
        ivec4 e = ivec4(exps.data[v.x], exps.data[v.y], exps.data[v.z], exps.data[v.w]);
        // From 512 equal values on no result reaches half a step; TFLite's own kernel stops there.
        ivec4 result = (exponent.x > 31 ? ivec4(0) : divide_by_pot(high_mul(e, ivec4(scale)), exponent)) - 128;
#endif
        y.data[base + g] = pack_i8(clamp(result, -128, 127)) ^ p.flip;
    }
}
