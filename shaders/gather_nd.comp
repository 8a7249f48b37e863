#version 450
#extension GL_GOOGLE_include_directive : require
// GATHER_ND: each row of the indices names an element or a slice of x by its first coordinates. One
// that lies outside gives zeros and reads nothing.

#include "dispatch.glsl"
#include "lanes.glsl"

// 0: slices are whole rows of x, strides and slice count groups; 1: single elements.
layout(constant_id = 3) const uint LANES = 0u;

LANES_IN(0, x);
layout(set = 0, binding = 1, std430) readonly buffer indices_block { int data[]; } indices;
LANES_OUT(2, y);

layout(push_constant) uniform Push {
    uint num_groups;
    uint slice;         // groups in a slice
    uint y_lanes;       // elements in a row of y
    uint y_groups;
    uint depth;         // coordinates in a row of the indices
    uint index_stride;  // from row to row of them
    uint sizes[6];      // of the first dimensions of x, and steps along them
    uint strides[6];
} p;

// Where the slice that row `at` of the indices names begins; false: nowhere.
bool source(uint at, out uint from) {
    from = 0u;
    bool inside = true;
    for (uint d = 0u; d < p.depth; ++d) {
        uint index = uint(indices.data[at * p.index_stride + d]);
        inside = inside && index < p.sizes[d];
        from += index * p.strides[d];
    }
    return inside;
}

void main() {
    uint i = flat_index();
    if (i >= p.num_groups) return;
    uint from;
    QUAD v = same_lanes(lane_of_word(0u));
    if (LANES == 0u) {
        uint at = i / p.slice;
        if (source(at, from)) v = LOAD_LANES(x, from + i - at * p.slice);
    } else {
        uint row = i / p.y_groups;
        uint lane = (i - row * p.y_groups) * 4u;
        for (uint k = 0u; k < 4u; ++k) {
            if (source(row * p.y_lanes + min(lane + k, p.y_lanes - 1u), from)) v[k] = LOAD_LANE(x, from);
        }
    }
    STORE_LANES(y, i, v);
}
