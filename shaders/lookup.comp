#version 450
#extension GL_GOOGLE_include_directive : require
// Any function of one 8-bit value: 256 results, by the bits of the argument.

#include "dispatch.glsl"
#include "tensor.glsl"

TENSOR_IN(0, u8, x);
layout(set = 0, binding = 1, std430) readonly buffer table_block { uint data[256]; } table;
TENSOR_OUT(2, u8, y);

layout(push_constant) uniform Push { uint num_groups; } p;

void main() {
    uint i = flat_index();
    if (i >= p.num_groups) return;
    uint word = x.data[i];
    y.data[i] = table.data[word & 0xFFu] | table.data[(word >> 8) & 0xFFu] << 8 |
                table.data[(word >> 16) & 0xFFu] << 16 | table.data[word >> 24] << 24;
}
