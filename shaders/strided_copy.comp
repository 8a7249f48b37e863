#version 450
#extension GL_GOOGLE_include_directive : require
// Every element of y from a place in x that is linear in its coordinates: SLICE, SPLIT, TRANSPOSE,
// REVERSE_V2, BROADCAST_TO and the like (tflite_vk/ops/strided_copy.py makes the numbers).
//
// Strides count groups of four lanes in mode GROUPS, elements otherwise; they may be negative or
// zero. The dimensions of y are merged as far as its strides allow, so most copies have one or two.

#include "dispatch.glsl"
#include "divide.glsl"
#include "lanes.glsl"

layout(constant_id = 3) const uint MODE = 0u;
const uint GROUPS = 0u;  // whole groups: lanes lie the same way on both sides
const uint LANES = 1u;   // lane by lane
const uint SPLAT = 2u;   // one element for all lanes of a row
const uint BLOCKS = 3u;  // lane by lane, a row of y holding blocks of blocks: SPACE_TO_DEPTH

LANES_IN(0, x);
LANES_OUT(1, y);

layout(push_constant) uniform Push {
    uint num_groups;
    uint groups_per_row;
    uint lanes_per_row;  // those that hold elements
    uint num_dims;       // of dims and strides in use, the outermost first
    uint dims[5];        // BLOCKS: the fourth is the lanes of a block, the fifth the blocks that such
    int strides[5];      // blocks stand in; there strides are from block to block
    int base;
    int lane_stride;
    uint magic[6];       // of dims and groups_per_row
    uint shifts;
} p;

int lane_offset(uint lane) {
    if (MODE != BLOCKS) return int(lane) * p.lane_stride;
    uint block = divide(lane, p.magic[3], p.shifts, 3u);
    uint outer = divide(block, p.magic[4], p.shifts, 4u);
    return int(lane - block * p.dims[3]) * p.lane_stride + int(block - outer * p.dims[4]) * p.strides[3] +
           int(outer) * p.strides[4];
}

void main() {
    uint i = flat_index();
    if (i >= p.num_groups) return;
    uint rest = divide(i, p.magic[5], p.shifts, 5u);
    uint group = i - rest * p.groups_per_row;
    int offset = p.base;
    for (uint d = p.num_dims; d-- > 1u;) {
        uint quotient = divide(rest, p.magic[d], p.shifts, d);
        offset += int(rest - quotient * p.dims[d]) * p.strides[d];
        rest = quotient;
    }
    offset += int(rest) * p.strides[0];
    if (MODE == GROUPS) {
        y.data[i] = x.data[offset + int(group)];
    } else if (MODE == SPLAT) {
        QUAD v = same_lanes(LOAD_LANE(x, uint(offset)));
        STORE_LANES(y, i, v);
    } else {
        QUAD v;
        for (uint k = 0u; k < 4u; ++k) {
            // Lanes past the row's end repeat its last element.
            uint lane = min(group * 4u + k, p.lanes_per_row - 1u);
            v[k] = LOAD_LANE(x, uint(offset + lane_offset(lane)));
        }
        STORE_LANES(y, i, v);
    }
}
