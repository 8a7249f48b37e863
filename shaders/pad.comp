#version 450
#extension GL_GOOGLE_include_directive : require
// A tensor with more around it: PAD, PADV2 and MIRROR_PAD, and TILE, which is one repeated.
//
// Each coordinate of y minus what stands before is one of x, or lies outside; outside is filled, or
// folded back inside. The dimensions come merged, as in strided_copy.

#include "dispatch.glsl"
#include "divide.glsl"
#include "lanes.glsl"

layout(constant_id = 3) const uint OUTSIDE = 0u;
const uint FILL = 0u;    // the value of `fill`
const uint MIRROR = 1u;  // reflected at the border
const uint WRAP = 2u;    // repeated
// 1: the innermost dimension is worked out lane by lane; 0: groups of four lie the same way in x and y.
layout(constant_id = 4) const uint LANES = 0u;

LANES_IN(0, x);
LANES_IN(1, fill);
LANES_OUT(2, y);

layout(push_constant) uniform Push {
    uint num_groups;
    uint groups_per_row;   // of y
    uint x_groups;         // groups in a row of x
    uint y_lanes;          // lanes that hold elements in a row of y, and of x
    uint x_lanes;
    uint lanes_before;     // a multiple of 4 where LANES is 0
    uint num_dims;         // in use below, the outermost first
    uint y_dims[5];
    uint x_dims[5];
    uint before[5];
    uint symmetric;        // MIRROR: 1 repeats the border
    uint magic[6];         // of y_dims and groups_per_row
    uint shifts;
} p;

// Where a coordinate comes from; x_dim or more where it is outside.
uint source(uint coordinate, uint before, uint x_dim) {
    if (OUTSIDE == FILL) return coordinate - before;
    if (OUTSIDE == WRAP) return coordinate - coordinate / x_dim * x_dim;
    int at = int(coordinate) - int(before);
    if (at < 0) at = -at - int(p.symmetric);
    return uint(at < int(x_dim) ? at : 2 * int(x_dim) - 2 + int(p.symmetric) - at);
}

void main() {
    uint i = flat_index();
    if (i >= p.num_groups) return;
    uint rest = divide(i, p.magic[5], p.shifts, 5u);
    uint group = i - rest * p.groups_per_row;
    uint row = 0u;
    uint step = 1u;
    bool inside = true;
    for (uint d = p.num_dims; d-- > 0u;) {
        uint quotient = d == 0u ? 0u : divide(rest, p.magic[d], p.shifts, d);
        uint at = source(rest - quotient * p.y_dims[d], p.before[d], p.x_dims[d]);
        inside = inside && at < p.x_dims[d];
        row += at * step;
        step *= p.x_dims[d];
        rest = quotient;
    }
    QUAD v = same_lanes(lane_of_word(0u));
    if (OUTSIDE == FILL) v = same_lanes(LOAD_LANE(fill, 0u));
    if (LANES == 0u) {
        uint at = source(group, p.lanes_before >> 2, p.x_groups);
        if (inside && at < p.x_groups) {
            QUAD found = LOAD_LANES(x, row * p.x_groups + at);
            // The row's last group may hold padding where y has something to fill.
            uvec4 lane = at * 4u + uvec4(0u, 1u, 2u, 3u);
            v = OUTSIDE == FILL ? choose_lanes(v, found, lessThan(lane, uvec4(p.x_lanes))) : found;
        }
    } else {
        uint at = source(group * 4u, p.lanes_before, p.x_lanes);
        for (uint k = 0u; k < 4u; ++k) {
            if (inside && at < p.x_lanes) v[k] = LOAD_LANE(x, row * p.x_groups * 4u + at);
            // Lanes past the row's end repeat its last element.
            if (OUTSIDE == MIRROR) at = source(min(group * 4u + k + 1u, p.y_lanes - 1u), p.lanes_before, p.x_lanes);
            else at = OUTSIDE == WRAP && at + 1u == p.x_lanes ? 0u : at + 1u;
        }
    }
    STORE_LANES(y, i, v);
}
