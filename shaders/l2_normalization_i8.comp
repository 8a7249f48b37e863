#version 450
#extension GL_GOOGLE_include_directive : require
// L2_NORMALIZATION of int8 or uint8 over the innermost dimension. A workgroup makes local size y rows;
// the invocations along x share each.

#include "dispatch.glsl"
#include "fixed_point.glsl"

TENSOR_IN(0, i8, x);
TENSOR_OUT(1, i8, y);

layout(push_constant) uniform Push {
    uint num_rows;
    uint groups;      // per row
    uint tail;        // elements in the last group
    uint flip;
    int zero;
    int shift_before; // of the input, left, before it is scaled
    int shift_after;
} p;

shared int partial[gl_WorkGroupSize.x * gl_WorkGroupSize.y];

void main() {
    uint row = flat_group() * gl_WorkGroupSize.y + gl_LocalInvocationID.y;
    bool is_row = row < p.num_rows;
    uint base = (is_row ? row : 0u) * p.groups;
    uint me = gl_LocalInvocationID.x;
    uint first = gl_LocalInvocationID.y * gl_WorkGroupSize.x;

    int sum = 0;
    for (uint g = me; g < p.groups; g += gl_WorkGroupSize.x) {
        ivec4 v = unpack_i8(x.data[base + g] ^ p.flip) - p.zero;
        if (g == p.groups - 1u) v = mix(ivec4(0), v, lessThan(uvec4(0u, 1u, 2u, 3u), uvec4(p.tail)));
        v *= v;
        sum += (v.x + v.y) + (v.z + v.w);
    }
    partial[first + me] = sum;
    for (uint size = gl_WorkGroupSize.x / 2u; size > 0u; size /= 2u) {
        barrier();
        if (me < size) partial[first + me] += partial[first + me + size];
    }
    barrier();
    if (!is_row) return;
    int shift;
    int multiplier = inverse_sqrt(partial[first], shift);
    for (uint g = me; g < p.groups; g += gl_WorkGroupSize.x) {
        ivec4 v = (unpack_i8(x.data[base + g] ^ p.flip) - p.zero) << p.shift_before;
        ivec4 result = multiply_by_quantized(v, ivec4(multiplier), ivec4(shift + p.shift_after));
        y.data[base + g] = pack_i8(clamp(result, -128, 127)) ^ p.flip;
    }
}
