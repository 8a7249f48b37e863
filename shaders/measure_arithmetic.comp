#version 450
#extension GL_GOOGLE_include_directive : require
// The ceiling of arithmetic: chains of multiply-adds in registers (tflite_vk/analysis/ceilings.py).
// Eight chains of four lanes hide the latency of one; the factor comes from memory, so that the
// driver can't work the loop out.

#include "dispatch.glsl"
#include "tensor.glsl"

const uint CHAINS = 8u;

TENSOR_IN(0, f32, x);
TENSOR_OUT(1, f32, y);

layout(push_constant) uniform Push {
    uint rounds;
} p;

void main() {
    uint i = flat_index();
    vec4 factor = LOAD(f32, x, 0u);
    vec4 term = LOAD(f32, x, 1u) + float(i);
    vec4 chain[CHAINS];
    for (uint c = 0u; c < CHAINS; c++) chain[c] = term + float(c);
    for (uint round = 0u; round < p.rounds; round++) {
        for (uint c = 0u; c < CHAINS; c++) chain[c] = chain[c] * factor + term;
    }
    vec4 sum = vec4(0.0);
    for (uint c = 0u; c < CHAINS; c++) sum += chain[c];
    STORE(f32, y, i, sum);
}
