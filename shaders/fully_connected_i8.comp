#version 450
#extension GL_GOOGLE_include_directive : require
// FULLY_CONNECTED of int8 or uint8 on few rows, as fully_connected: a workgroup makes local size x
// groups of four outputs; its invocations along y share the sum over the inputs.
//
// Weights: [input group][output group] of uvec4, as conv_2d_i8.

#define CHANNELS_BINDING 2
#define TABLE_BINDING 4
#define TABLE_ID 6
#include "dispatch.glsl"
#include "dot4.glsl"

// Weights have a zero point: inputs are summed up as well, their padding lanes left out.
layout(constant_id = 3) const uint HAS_WEIGHT_ZERO = 0u;
layout(constant_id = 4) const uint TAIL = 0u;
layout(constant_id = 5) const uint AS_DOUBLE = 1u;

#include "channels.glsl"

TENSOR_IN(0, i8, x);
TENSOR_IN(1, u32, weights);
TENSOR_OUT(3, RESULT, y);

layout(push_constant) uniform Push {
    uint output_groups;
    uint input_groups;
    uint flip_in;
    int weight_zero;
    CHANNELS_PUSH;
} p;

shared ivec4 partial[gl_WorkGroupSize.x * gl_WorkGroupSize.y];

void main() {
    uint group = min(gl_GlobalInvocationID.x, p.output_groups - 1u);
    uint row = gl_WorkGroupID.y + gl_WorkGroupID.z * gl_NumWorkGroups.y;
    ivec4 sum = ivec4(0);
    int inputs = 0;
    for (uint c = gl_LocalInvocationID.y; c < p.input_groups; c += gl_WorkGroupSize.y) {
        uint v = x.data[row * p.input_groups + c] ^ p.flip_in;
        sum += dot4(v, weights.data[c * p.output_groups + group]);
        if (HAS_WEIGHT_ZERO != 0u) {
            bool is_tail = TAIL != 0u && c == p.input_groups - 1u;
            inputs += dot4(v, is_tail ? 0x01010101u >> (8u * (4u - TAIL)) : 0x01010101u);
        }
    }
    sum -= p.weight_zero * inputs;
    uint mine = gl_LocalInvocationID.y * gl_WorkGroupSize.x + gl_LocalInvocationID.x;
    if (gl_WorkGroupSize.y > 1u) {
        partial[mine] = sum;
        for (uint half_size = gl_WorkGroupSize.y / 2u; half_size > 0u; half_size /= 2u) {
            barrier();
            if (gl_LocalInvocationID.y < half_size) {
                sum += partial[mine + half_size * gl_WorkGroupSize.x];
                partial[mine] = sum;
            }
        }
    }
    if (gl_LocalInvocationID.y == 0u && gl_GlobalInvocationID.x < p.output_groups) {
        y.data[row * p.output_groups + group] = requantize(
            sum + channel_bias(group), group, p.output_zero, p.lowest, p.highest, p.flip_out);
    }
}
