#version 450
#extension GL_GOOGLE_include_directive : require
// ONE_HOT: `on` where the coordinate along the axis equals the index, `off` elsewhere.
//
// The indices are [prefix, suffix], y is [prefix, depth, suffix].

#include "dispatch.glsl"
#include "lanes.glsl"

layout(set = 0, binding = 0, std430) readonly buffer indices_block { int data[]; } indices;
LANES_IN(1, on);
LANES_IN(2, off);
LANES_OUT(3, y);

layout(push_constant) uniform Push {
    uint num_groups;
    uint y_lanes;
    uint y_groups;
    uint depth;
    uint suffix;
    uint index_lanes;   // elements in a row of the indices, and what it takes with padding
    uint index_stride;
} p;

void main() {
    uint i = flat_index();
    if (i >= p.num_groups) return;
    uint row = i / p.y_groups;
    uint lane = (i - row * p.y_groups) * 4u;
    QUAD v;
    for (uint k = 0u; k < 4u; ++k) {
        uint at = row * p.y_lanes + min(lane + k, p.y_lanes - 1u);
        uint slice = at / p.suffix;
        uint prefix = slice / p.depth;
        uint position = prefix * p.suffix + at - slice * p.suffix;
        uint index_row = position / p.index_lanes;
        int index = indices.data[index_row * p.index_stride + position - index_row * p.index_lanes];
        bool is_on = index == int(slice - prefix * p.depth);
        v[k] = is_on ? LOAD_LANE(on, 0u) : LOAD_LANE(off, 0u);
    }
    STORE_LANES(y, i, v);
}
