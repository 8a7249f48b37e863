#version 450
#extension GL_GOOGLE_include_directive : require
// What repack.comp does, between float32 and float16: inputs and outputs of a graph in fp16 mode, whose
// rows have no padding on the host.

#include "dispatch.glsl"
#include "divide.glsl"
#include "tensor.glsl"

TENSOR_IN(0, SRC, x);
TENSOR_OUT(1, DST, y);

layout(push_constant) uniform Push {
    uint num_groups;   // groups of four lanes in y
    uint y_lanes;      // elements in a row of y, and its groups
    uint y_groups;
    uint x_lanes;      // elements in a row of x, and what it takes with padding
    uint x_stride;
    uint magic[2];     // of y_groups and x_lanes
    uint shifts;
} p;

#define LANE_f32(i) x.data[(i) >> 2][(i) & 3u]
#define LANE_f16(i) unpackHalf2x16(x.data[(i) >> 2][((i) >> 1) & 1u])[(i) & 1u]

void main() {
    uint i = flat_index();
    if (i >= p.num_groups) return;
    uint row = divide(i, p.magic[0], p.shifts, 0u);
    uint lane = (i - row * p.y_groups) * 4u;
    uint element = row * p.y_lanes + lane;
    uint x_row = divide(element, p.magic[1], p.shifts, 1u);
    uint column = element - x_row * p.x_lanes;
    uint at = x_row * p.x_stride + column;
    vec4 v;
    for (uint k = 0u; k < 4u; ++k) {
        v[k] = CAT(LANE_, SRC)(at);
        // Lanes past the row's end repeat its last element: padding may hold anything, but x ends.
        if (lane + k + 1u < p.y_lanes) {
            ++at;
            if (++column == p.x_lanes) {
                column = 0u;
                at += p.x_stride - p.x_lanes;
            }
        }
    }
    STORE(DST, y, i, v);
}
