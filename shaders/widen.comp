#version 450
#extension GL_GOOGLE_include_directive : require
// float16 to float32, for kernels that want an operand in full whatever the activations are.

#include "dispatch.glsl"
#include "tensor.glsl"

TENSOR_IN(0, f16, x);
TENSOR_OUT(1, f32, y);

layout(push_constant) uniform Push { uint num_groups; } p;

void main() {
    uint i = flat_index();
    if (i < p.num_groups) STORE(f32, y, i, LOAD(f16, x, i));
}
