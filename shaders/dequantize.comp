#version 450
#extension GL_GOOGLE_include_directive : require
// DEQUANTIZE: the difference from the zero point times the scale, one rounding.

#define EPILOGUE_BINDING 2
#include "dispatch.glsl"
#include "epilogue.glsl"
#include "quantize.glsl"

TENSOR_IN(0, IN, x);
TENSOR_OUT(1, ACT, y);

layout(push_constant) uniform Push {
    EPILOGUE_PUSH;
    uint num_groups;      // groups of four lanes in the tensor
    uint groups_per_row;
    uint flip;
    int zero;
    float scale;
} p;

void main() {
    uint i = flat_index();
    if (i >= p.num_groups) return;
    uint row = i / p.groups_per_row;
    precise vec4 v = vec4(LOAD_Q(IN, x, i, p.flip) - p.zero) * p.scale;
    STORE(ACT, y, i, epilogue(v, i, row, i - row * p.groups_per_row, p.immediates));
}
