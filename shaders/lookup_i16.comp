#version 450
#extension GL_GOOGLE_include_directive : require
// Any function of one 16-bit value: 65,536 results, two in a word, by the bits of the argument.

#include "dispatch.glsl"
#include "tensor.glsl"

TENSOR_IN(0, i16, x);
layout(set = 0, binding = 1, std430) readonly buffer table_block { uint data[]; } table;
TENSOR_OUT(2, i16, y);

layout(push_constant) uniform Push { uint num_groups; } p;

uint result_of(uint value) { return bitfieldExtract(table.data[value >> 1], int(value & 1u) << 4, 16); }

void main() {
    uint i = flat_index();
    if (i >= p.num_groups) return;
    uvec2 v = x.data[i];
    y.data[i] = uvec2(
        result_of(v.x & 0xFFFFu) | result_of(v.x >> 16) << 16,
        result_of(v.y & 0xFFFFu) | result_of(v.y >> 16) << 16);
}
