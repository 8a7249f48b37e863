#version 450
#extension GL_GOOGLE_include_directive : require
// GATHER and EMBEDDING_LOOKUP: slices of x along one axis, chosen by indices. An index outside the
// axis gives zeros and reads nothing.
//
// x is [batch, outer, axis, inner], the indices [batch, chosen], y [batch, outer, chosen, inner].

#include "dispatch.glsl"
#include "lanes.glsl"

// 0: slices are whole rows of x, and inner counts groups; 1: element by element, inner counts elements.
layout(constant_id = 3) const uint LANES = 0u;

LANES_IN(0, x);
layout(set = 0, binding = 1, std430) readonly buffer indices_block { int data[]; } indices;
LANES_OUT(2, y);

layout(push_constant) uniform Push {
    uint num_groups;
    uint inner;
    uint chosen;
    uint outer;
    uint axis_size;
    uint index_lanes;   // elements in a row of the indices, and what it takes with padding
    uint index_stride;
    uint x_lanes;       // the same of x; only where LANES is 1
    uint x_stride;
    uint y_lanes;       // elements in a row of y
    uint y_groups;      // groups in a row of y
} p;

// Where element or group `at` of y comes from in x, counted without padding; false: from nowhere.
bool source(uint at, out uint from) {
    uint slice = at / p.inner;
    uint row = slice / p.chosen;
    uint position = slice - row * p.chosen + row / p.outer * p.chosen;
    uint index_row = position / p.index_lanes;
    uint index = uint(indices.data[index_row * p.index_stride + position - index_row * p.index_lanes]);
    from = (row * p.axis_size + index) * p.inner + at - slice * p.inner;
    return index < p.axis_size;
}

void main() {
    uint i = flat_index();
    if (i >= p.num_groups) return;
    uint from;
    if (LANES == 0u) {
        uvec4 v = uvec4(0u);
        if (source(i, from)) v = LOAD_LANES(x, from);
        STORE_LANES(y, i, v);
        return;
    }
    uint row = i / p.y_groups;
    uint lane = (i - row * p.y_groups) * 4u;
    uvec4 v = uvec4(0u);
    for (uint k = 0u; k < 4u; ++k) {
        if (source(row * p.y_lanes + min(lane + k, p.y_lanes - 1u), from)) {
            uint x_row = from / p.x_lanes;
            v[k] = LOAD_LANE(x, x_row * p.x_stride + from - x_row * p.x_lanes);
        }
    }
    STORE_LANES(y, i, v);
}
