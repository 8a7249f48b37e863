#version 450
#extension GL_GOOGLE_include_directive : require
// SOFTMAX of int16 over the innermost dimension. A workgroup makes local size y rows; the invocations
// along x share each. The host tabulates exp(-difference) for differences 0 to 65,535, two in a word,
// and behind them 513 anchors of 1 / (1 + x) for 0 <= x <= 1.
//
// Source: SoftmaxInt16 of tflite/kernels/internal/reference/softmax.h.

#include "dispatch.glsl"
#include "tensor.glsl"

TENSOR_IN(0, i16, x);
layout(set = 0, binding = 1, std430) readonly buffer exps_block { int data[]; } exps;
TENSOR_OUT(2, i16, y);

layout(push_constant) uniform Push {
    uint num_rows;
    uint groups;        // per row
    uint tail;          // elements in the last group
    uint flip;          // none
} p;

shared int partial[gl_WorkGroupSize.x * gl_WorkGroupSize.y];

const uint ANCHORS = 32768u;

int exp_of(int difference) {
    return bitfieldExtract(exps.data[uint(difference) >> 1], (difference & 1) << 4, 16);
}

ivec4 row_group(uint base, uint group, int filler) {
    ivec4 v = LOAD(i16, x, base + group);
    if (group == p.groups - 1u) v = mix(ivec4(filler), v, lessThan(uvec4(0u, 1u, 2u, 3u), uvec4(p.tail)));
    return v;
}

void main() {
    uint row = flat_group() * gl_WorkGroupSize.y + gl_LocalInvocationID.y;
    bool is_row = row < p.num_rows;
    uint base = (is_row ? row : 0u) * p.groups;
    uint me = gl_LocalInvocationID.x;
    uint first = gl_LocalInvocationID.y * gl_WorkGroupSize.x;

    int most = -32768;
    for (uint g = me; g < p.groups; g += gl_WorkGroupSize.x) {
        ivec4 v = row_group(base, g, -32768);
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
        ivec4 v = LOAD(i16, x, base + g);
        uint count = g == p.groups - 1u ? p.tail : 4u;
        for (uint k = 0u; k < count; ++k) sum += exp_of(most - v[k]);
    }
    partial[first + me] = sum;
    for (uint size = gl_WorkGroupSize.x / 2u; size > 0u; size /= 2u) {
        barrier();
        if (me < size) partial[first + me] += partial[first + me + size];
    }
    barrier();
    sum = partial[first];
    if (!is_row) return;

    // The sum in 1 to 2 is 1 + at / 65536: its anchor, and where it lies behind that.
    int headroom = 30 - findMSB(sum);
    int at = int(((uint(sum) << headroom) + (1u << 13)) >> 14) - (1 << 16);
    at = clamp(at, 0, 65535);
    int anchor = exps.data[ANCHORS + uint(at >> 7)];
    int slope = exps.data[ANCHORS + uint(at >> 7) + 1u] - anchor;
    int reciprocal = anchor + ((slope * (at & 0x7F) + 64) >> 7);
    int shift = 30 - headroom;
    for (uint g = me; g < p.groups; g += gl_WorkGroupSize.x) {
        ivec4 v = most - row_group(base, g, most);
        ivec4 e = ivec4(exp_of(v.x), exp_of(v.y), exp_of(v.z), exp_of(v.w));
        ivec4 result = (e * reciprocal + (1 << (shift - 1))) >> shift;
        STORE(i16, y, base + g, clamp(result, 0, 32767));
    }
}
