#version 450
#extension GL_GOOGLE_include_directive : require
// TOPK_V2, second half: the elements that the indices name.

#include "dispatch.glsl"
#include "lanes.glsl"

LANES_IN(0, x);
layout(set = 0, binding = 1, std430) readonly buffer indices_block { uvec4 data[]; } indices;
LANES_OUT(2, y);

layout(push_constant) uniform Push {
    uint num_groups;         // of y
    uint groups_per_row;
    uint x_groups_per_row;
    uint k;
} p;

void main() {
    uint i = flat_index();
    if (i >= p.num_groups) return;
    uint row = i / p.groups_per_row;
    uint column = (i - row * p.groups_per_row) * 4u;
    uvec4 index = indices.data[i];
    QUAD v = same_lanes(lane_of_word(0u));
    for (uint lane = 0u; lane < 4u; ++lane) {
        if (column + lane < p.k) v[lane] = LOAD_LANE(x, row * p.x_groups_per_row * 4u + index[lane]);
    }
    STORE_LANES(y, i, v);
}
