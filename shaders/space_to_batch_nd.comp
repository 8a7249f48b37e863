#version 450
#extension GL_GOOGLE_include_directive : require
// SPACE_TO_BATCH_ND and BATCH_TO_SPACE_ND for one or two spatial dimensions. Pixels move whole.

#include "dispatch.glsl"
#include "divide.glsl"
#include "lanes.glsl"

layout(constant_id = 3) const uint TO_BATCH = 1u;  // 0: back to space

LANES_IN(0, x);
LANES_OUT(1, y);

layout(push_constant) uniform Push {
    uint num_groups;
    uint groups_per_row;  // of x and of y
    uint y_height;
    uint y_width;
    uint x_batch;
    uint x_height;
    uint x_width;
    uint y_batch;
    uint block_height;
    uint block_width;
    uint top;             // rows and columns of padding, or of what is cropped, before the first
    uint left;
    uint padding;         // what surrounds x, as the bits of one lane
    uint magic[6];        // of groups_per_row, y_width, y_height, x_batch, block_height, block_width
    uint shifts;
} p;

void main() {
    uint i = flat_index();
    if (i >= p.num_groups) return;
    uint rest = divide(i, p.magic[0], p.shifts, 0u);
    uint group = i - rest * p.groups_per_row;
    uint quotient = divide(rest, p.magic[1], p.shifts, 1u);
    uint w = rest - quotient * p.y_width;
    uint n = divide(quotient, p.magic[2], p.shifts, 2u);
    uint h = quotient - n * p.y_height;
    if (TO_BATCH != 0u) {
        // Batch of y = (row in the block, column in the block, batch of x).
        uint phase = divide(n, p.magic[3], p.shifts, 3u);
        n -= phase * p.x_batch;
        uint row = divide(phase, p.magic[5], p.shifts, 5u);
        h = h * p.block_height + row - p.top;
        w = w * p.block_width + (phase - row * p.block_width) - p.left;
    } else {
        uint row = h + p.top;
        uint column = w + p.left;
        h = divide(row, p.magic[4], p.shifts, 4u);
        w = divide(column, p.magic[5], p.shifts, 5u);
        n += ((row - h * p.block_height) * p.block_width + column - w * p.block_width) * p.y_batch;
    }
    QUAD v = same_lanes(lane_of_word(p.padding));
    if (h < p.x_height && w < p.x_width) {
        v = LOAD_LANES(x, ((n * p.x_height + h) * p.x_width + w) * p.groups_per_row + group);
    }
    STORE_LANES(y, i, v);
}
