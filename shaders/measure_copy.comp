#version 450
#extension GL_GOOGLE_include_directive : require
// The ceiling of memory bandwidth: a copy and nothing else (tflite_vk/analysis/ceilings.py).
// Each invocation copies a few groups, a whole grid apart, so that several loads are in flight.

#include "dispatch.glsl"
#include "tensor.glsl"

TENSOR_IN(0, f32, x);
TENSOR_OUT(1, f32, y);

layout(push_constant) uniform Push {
    uint num_groups;  // groups of four lanes
    uint step;        // invocations of the grid
} p;

void main() {
    for (uint i = flat_index(); i < p.num_groups; i += p.step) STORE(f32, y, i, LOAD(f32, x, i));
}
