#version 450
#extension GL_GOOGLE_include_directive : require
// SELECT and SELECT_V2: an element of `a` where the condition holds, of `b` elsewhere; all three
// broadcast.

#include "dispatch.glsl"
#include "divide.glsl"
#include "lanes.glsl"

layout(set = 0, binding = 0, std430) readonly buffer condition_block { uvec4 data[]; } condition;
LANES_IN(1, a);
LANES_IN(2, b);
LANES_OUT(3, y);

layout(push_constant) uniform Push {
    uint num_groups;
    uint groups_per_row;
    uint num_dims;      // in use below, the outermost first
    uint dims[5];
    uint c_strides[5];  // in elements
    uint a_strides[5];
    uint b_strides[5];
    uint splat;         // bit 0: the condition has one element for a row of y; bits 1 and 2: a and b
    uint magic[6];      // of dims and groups_per_row
    uint shifts;
} p;

void main() {
    uint i = flat_index();
    if (i >= p.num_groups) return;
    uint rest = divide(i, p.magic[5], p.shifts, 5u);
    uint group = i - rest * p.groups_per_row;
    uvec3 at = uvec3(0u);
    for (uint d = p.num_dims; d-- > 0u;) {
        uint quotient = d == 0u ? 0u : divide(rest, p.magic[d], p.shifts, d);
        at += (rest - quotient * p.dims[d]) * uvec3(p.c_strides[d], p.a_strides[d], p.b_strides[d]);
        rest = quotient;
    }
    uvec4 c = (p.splat & 1u) != 0u ? uvec4(condition.data[at.x >> 2][at.x & 3u]) : condition.data[(at.x >> 2) + group];
    QUAD av = (p.splat & 2u) != 0u ? same_lanes(LOAD_LANE(a, at.y)) : LOAD_LANES(a, (at.y >> 2) + group);
    QUAD bv = (p.splat & 4u) != 0u ? same_lanes(LOAD_LANE(b, at.z)) : LOAD_LANES(b, (at.z >> 2) + group);
    QUAD v = choose_lanes(bv, av, notEqual(c, uvec4(0u)));
    STORE_LANES(y, i, v);
}
