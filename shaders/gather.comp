#version 450
#extension GL_GOOGLE_include_directive : require
// GATHER and EMBEDDING_LOOKUP: slices of x along one axis, chosen by indices. An index outside the
// axis gives zeros and reads nothing.
//
// x is [batch, outer, axis, inner], the indices [batch, chosen], y [batch, outer, chosen, inner].

#include "dispatch.glsl"
#include "divide.glsl"
#include "lanes.glsl"

layout(constant_id = 3) const uint MODE = 0u;
const uint ROWS = 0u;      // slices are whole rows of x, and inner counts groups
const uint COLUMNS = 1u;   // the axis is innermost in x, the indices in y; chosen counts their rows
const uint ELEMENTS = 2u;  // neither; inner counts elements

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
    uint x_lanes;       // the same of x
    uint x_stride;
    uint y_lanes;       // elements in a row of y, and its groups
    uint y_groups;
    uint magic[6];      // of inner, chosen, outer, index_lanes, x_lanes and y_groups
    uint shifts;
} p;

// Where element or group `at` of y comes from in x, counted without padding; false: from nowhere.
bool source(uint at, out uint from) {
    uint slice = divide(at, p.magic[0], p.shifts, 0u);
    uint row = divide(slice, p.magic[1], p.shifts, 1u);
    uint position = slice - row * p.chosen + divide(row, p.magic[2], p.shifts, 2u) * p.chosen;
    uint index_row = divide(position, p.magic[3], p.shifts, 3u);
    uint index = uint(indices.data[index_row * p.index_stride + position - index_row * p.index_lanes]);
    from = (row * p.axis_size + index) * p.inner + at - slice * p.inner;
    return index < p.axis_size;
}

QUAD columns(uint y_row, uint lane) {
    uint row = divide(y_row, p.magic[1], p.shifts, 1u);
    uint batch = divide(row, p.magic[2], p.shifts, 2u);
    uint first = (batch * p.chosen + y_row - row * p.chosen) * p.index_stride;
    QUAD v = same_lanes(lane_of_word(0u));
    for (uint k = 0u; k < 4u; ++k) {
        uint index = uint(indices.data[first + min(lane + k, p.y_lanes - 1u)]);
        if (index < p.axis_size) v[k] = LOAD_LANE(x, row * p.x_stride + index);
    }
    return v;
}

QUAD elements(uint y_row, uint lane) {
    QUAD v = same_lanes(lane_of_word(0u));
    for (uint k = 0u; k < 4u; ++k) {
        uint from;
        if (source(y_row * p.y_lanes + min(lane + k, p.y_lanes - 1u), from)) {
            uint x_row = divide(from, p.magic[4], p.shifts, 4u);
            v[k] = LOAD_LANE(x, x_row * p.x_stride + from - x_row * p.x_lanes);
        }
    }
    return v;
}

void main() {
    uint i = flat_index();
    if (i >= p.num_groups) return;
    if (MODE == ROWS) {
        uint from;
        QUAD v = same_lanes(lane_of_word(0u));
        if (source(i, from)) v = LOAD_LANES(x, from);
        STORE_LANES(y, i, v);
        return;
    }
    uint row = divide(i, p.magic[5], p.shifts, 5u);
    uint lane = (i - row * p.y_groups) * 4u;
    QUAD v = MODE == COLUMNS ? columns(row, lane) : elements(row, lane);
    STORE_LANES(y, i, v);
}
