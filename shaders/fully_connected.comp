#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
// FULLY_CONNECTED on few rows: a matrix-vector product. A workgroup makes local size x groups of
// four outputs; its invocations along y share the sum over the inputs and meet in shared memory.
//
// Weights: [input group][input lane][output group] of vec4 over outputs, as conv_2d.

#define EPILOGUE_BINDING 4
#include "dispatch.glsl"
#include "epilogue.glsl"

// Input channels modulo 4.
layout(constant_id = 11) const uint TAIL = 0u;

TENSOR_IN(0, ACT, x);
TENSOR_IN(1, WEIGHT, weights);
TENSOR_IN(2, f32, bias);
TENSOR_OUT(3, ACT, y);

layout(push_constant) uniform Push {
    EPILOGUE_PUSH;
    uint output_groups;
    uint input_groups;
} p;

shared vec4 partial[gl_WorkGroupSize.x * gl_WorkGroupSize.y];

void main() {
    uint group = min(gl_GlobalInvocationID.x, p.output_groups - 1u);
    uint row = gl_WorkGroupID.y + gl_WorkGroupID.z * gl_NumWorkGroups.y;
    vec4 sum = vec4(0.0);
    for (uint c = gl_LocalInvocationID.y; c < p.input_groups; c += gl_WorkGroupSize.y) {
        vec4 v = LOAD(ACT, x, row * p.input_groups + c);
        if (TAIL != 0u && c == p.input_groups - 1u) {
            v = vec4(v.x, TAIL > 1u ? v.y : 0.0, TAIL > 2u ? v.z : 0.0, 0.0);
        }
        [[unroll]] for (uint lane = 0u; lane < 4u; ++lane) {
            sum += v[lane] * LOAD(WEIGHT, weights, (c * 4u + lane) * p.output_groups + group);
        }
    }
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
        uint at = row * p.output_groups + group;
        STORE(ACT, y, at, epilogue(sum + LOAD(f32, bias, group), at, row, group, p.immediates));
    }
}
