#version 450
#extension GL_GOOGLE_include_directive : require
// TOPK_V2, first half: an element's rank is the number of elements of its row that come before it,
// and the index of each element that ranks below k is written there. No two ranks are equal.

#include "dispatch.glsl"
#include "keys.glsl"
#include "tensor.glsl"

#ifdef LONG
#include "long.glsl"
#define KEYS Long4
#define KEYS_OF(v) (v)
#else
#define KEYS uvec4
#define KEYS_OF(v) order_keys(v, 0xFFFFFFFFu)
uvec4 all_lanes(uvec4 v, uint lane) { return uvec4(v[lane]); }
bvec4 is_less(uvec4 a, uvec4 b) { return lessThan(a, b); }
bvec4 is_equal(uvec4 a, uvec4 b) { return equal(a, b); }
#endif

TENSOR_IN(0, ACT, x);
layout(set = 0, binding = 1, std430) writeonly buffer indices_block { uint data[]; } indices;

layout(push_constant) uniform Push {
    uint num_groups;         // of x
    uint groups_per_row;
    uint size;               // elements of a row
    uint k;
    uint indices_per_row;    // with padding
} p;

void main() {
    uint i = flat_index();
    if (i >= p.num_groups) return;
    uint row = i / p.groups_per_row;
    uint group = i - row * p.groups_per_row;
    KEYS mine = KEYS_OF(LOAD(ACT, x, i));
    uvec4 position = group * 4u + uvec4(0u, 1u, 2u, 3u);
    uvec4 rank = uvec4(0u);
    for (uint g = 0u; g < p.groups_per_row; ++g) {
        KEYS others = KEYS_OF(LOAD(ACT, x, row * p.groups_per_row + g));
        for (uint lane = 0u; lane < 4u; ++lane) {
            uint at = g * 4u + lane;
            KEYS other = all_lanes(others, lane);
            uvec4 is_larger = uvec4(is_less(mine, other));
            uvec4 is_earlier_tie = uvec4(is_equal(other, mine)) & uvec4(lessThan(uvec4(at), position));
            if (at < p.size) rank += is_larger | is_earlier_tie;
        }
    }
    for (uint lane = 0u; lane < 4u; ++lane) {
        if (position[lane] < p.size && rank[lane] < p.k) {
            indices.data[row * p.indices_per_row + rank[lane]] = position[lane];
        }
    }
}
