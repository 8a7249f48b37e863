#version 450
#extension GL_GOOGLE_include_directive : require
// The same elements in rows of another length: RESHAPE where the padding moves.

#include "dispatch.glsl"
#include "divide.glsl"
#include "lanes.glsl"

LANES_IN(0, x);
LANES_OUT(1, y);

layout(push_constant) uniform Push {
    uint num_groups;   // groups of four lanes in y
    uint y_lanes;      // elements in a row of y, and its groups
    uint y_groups;
    uint x_lanes;      // elements in a row of x, and what it takes with padding
    uint x_stride;
    uint magic[2];     // of y_groups and x_lanes
    uint shifts;
} p;

void main() {
    uint i = flat_index();
    if (i >= p.num_groups) return;
    uint row = divide(i, p.magic[0], p.shifts, 0u);
    uint lane = (i - row * p.y_groups) * 4u;
    uint element = row * p.y_lanes + lane;
    uint x_row = divide(element, p.magic[1], p.shifts, 1u);
    uint column = element - x_row * p.x_lanes;
    uint at = x_row * p.x_stride + column;
    QUAD v;
    for (uint k = 0u; k < 4u; ++k) {
        v[k] = LOAD_LANE(x, at);
        // Lanes past the row's end repeat its last element: padding may hold anything, but x ends.
        if (lane + k + 1u < p.y_lanes) {
            ++at;
            if (++column == p.x_lanes) {
                column = 0u;
                at += p.x_stride - p.x_lanes;
            }
        }
    }
    STORE_LANES(y, i, v);
}
