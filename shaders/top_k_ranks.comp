#version 450
#extension GL_GOOGLE_include_directive : require
// TOPK_V2, first half: an element's rank is the number of elements of its row that come before it,
// and the index of each element that ranks below k is written there. No two ranks are equal.

#include "dispatch.glsl"
#include "tensor.glsl"

TENSOR_IN(0, ACT, x);
layout(set = 0, binding = 1, std430) writeonly buffer indices_block { uint data[]; } indices;

layout(push_constant) uniform Push {
    uint num_groups;         // of x
    uint groups_per_row;
    uint size;               // elements of a row
    uint k;
    uint indices_per_row;    // with padding
} p;

// Numbers that compare as the elements do; -0 equals 0, and a NaN is larger than all else.
uvec4 keys(VALUE(ACT) v, uint group) {
#ifdef INTEGER
    uvec4 key = uvec4(v) ^ 0x80000000u;
#else
    uvec4 bits = floatBitsToUint(v);
    bvec4 is_nan = greaterThan(bits & 0x7FFFFFFFu, uvec4(0x7F800000u));
    bits = mix(bits, uvec4(0u), equal(bits, uvec4(0x80000000u)));
    uvec4 key = mix(bits | 0x80000000u, ~bits, greaterThanEqual(bits, uvec4(0x80000000u)));
    key = mix(key, uvec4(0xFFFFFFFFu), is_nan);
#endif
    return key;
}

void main() {
    uint i = flat_index();
    if (i >= p.num_groups) return;
    uint row = i / p.groups_per_row;
    uint group = i - row * p.groups_per_row;
    uvec4 mine = keys(LOAD(ACT, x, i), group);
    uvec4 position = group * 4u + uvec4(0u, 1u, 2u, 3u);
    uvec4 rank = uvec4(0u);
    for (uint g = 0u; g < p.groups_per_row; ++g) {
        uvec4 others = keys(LOAD(ACT, x, row * p.groups_per_row + g), g);
        for (uint lane = 0u; lane < 4u; ++lane) {
            uint at = g * 4u + lane;
            uvec4 other = uvec4(others[lane]);
            uvec4 is_larger = uvec4(greaterThan(other, mine));
            uvec4 is_earlier_tie = uvec4(equal(other, mine)) & uvec4(lessThan(uvec4(at), position));
            if (at < p.size) rank += is_larger | is_earlier_tie;
        }
    }
    for (uint lane = 0u; lane < 4u; ++lane) {
        if (position[lane] < p.size && rank[lane] < p.k) {
            indices.data[row * p.indices_per_row + rank[lane]] = position[lane];
        }
    }
}
