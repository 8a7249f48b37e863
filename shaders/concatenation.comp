#version 450
#extension GL_GOOGLE_include_directive : require
// Up to four inputs side by side in the rows of y: CONCATENATION, and PACK.
//
// A "row" is all that one step of the dimensions before the axis holds. Where every input's piece of
// a row is whole groups the kernel moves groups, otherwise lanes: then inputs meet inside a group,
// and a dispatch for other inputs of the same node may own its other lanes.

#include "dispatch.glsl"
#include "divide.glsl"
#include "lanes.glsl"

// 1: offsets and strides below count lanes; 0: groups of four.
layout(constant_id = 3) const uint LANES = 0u;
layout(constant_id = 4) const uint INPUTS = 4u;  // those in use

LANES_IN(0, a);
LANES_IN(1, b);
LANES_IN(2, c);
LANES_IN(3, d);
LANES_PART(4, y);

layout(push_constant) uniform Push {
    uint num_groups;       // groups of y that this dispatch touches
    uint groups_per_row;   // of those in each row
    uint first_group;      // where they begin in each row
    uint y_groups;         // groups in a whole row of y
    uint starts[5];        // where each input begins in a row, and where the last one ends
    uint end;              // lanes from here on are not written; past starts[4] they are padding
    uint strides[4];       // from row to row of each input
    uint row_inner;        // PACK behind the last axis: rows of y per row of an input, otherwise 1
    uint magic[2];         // of groups_per_row and row_inner
    uint shifts;
} p;

LANE lane_of(uint at, uint outer, uint inner) {
    if (INPUTS == 1u || at < p.starts[1]) return LOAD_LANE(a, outer * p.strides[0] + inner + at - p.starts[0]);
    if (INPUTS == 2u || at < p.starts[2]) return LOAD_LANE(b, outer * p.strides[1] + inner + at - p.starts[1]);
    if (INPUTS == 3u || at < p.starts[3]) return LOAD_LANE(c, outer * p.strides[2] + inner + at - p.starts[2]);
    return LOAD_LANE(d, outer * p.strides[3] + inner + at - p.starts[3]);
}

GROUP group_of(uint at, uint row) {
    if (INPUTS == 1u || at < p.starts[1]) return a.data[row * p.strides[0] + at - p.starts[0]];
    if (INPUTS == 2u || at < p.starts[2]) return b.data[row * p.strides[1] + at - p.starts[1]];
    if (INPUTS == 3u || at < p.starts[3]) return c.data[row * p.strides[2] + at - p.starts[2]];
    return d.data[row * p.strides[3] + at - p.starts[3]];
}

void main() {
    uint i = flat_index();
    if (i >= p.num_groups) return;
    uint row = divide(i, p.magic[0], p.shifts, 0u);
    uint group = i - row * p.groups_per_row + p.first_group;
    uint target = row * p.y_groups + group;
    if (LANES == 0u) {
        y.data[target] = group_of(group, row);
        return;
    }
    uint lane = group * 4u;
    uint outer = divide(row, p.magic[1], p.shifts, 1u);
    uint inner = row - outer * p.row_inner;
    QUAD v;
    for (uint k = 0u; k < 4u; ++k) {
        v[k] = lane_of(clamp(lane + k, p.starts[0], p.starts[4] - 1u), outer, inner);
    }
    if (lane >= p.starts[0] && lane + 4u <= p.end) {
        STORE_LANES(y, target, v);
        return;
    }
    for (uint k = 0u; k < 4u; ++k) {
        if (lane + k >= p.starts[0] && lane + k < p.end) { STORE_LANE(y, target, k, v[k]); }
    }
}
