#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
// DEPTHWISE_CONV_2D of int8 or uint8 with one output per input channel, as depthwise_conv_2d: each
// invocation makes TILE_P neighbouring pixels of an output row, four channels each.
//
// x: groups of four channels; y, z: tiles along the rows. Weights lie in the plain tensor layout.

#define CHANNELS_BINDING 2
#define TABLE_BINDING 4
#define TABLE_ID 7
#include "dispatch.glsl"

layout(constant_id = 3) const uint TILE_P = 4u;
layout(constant_id = 4) const uint KERNEL_W = 3u;
layout(constant_id = 5) const uint STRIDE_W = 1u;
layout(constant_id = 6) const uint DILATION_W = 1u;

const uint AS_DOUBLE = 0u;
#include "channels.glsl"

TENSOR_IN(0, i8, x);
TENSOR_IN(1, i8, weights);
TENSOR_OUT(3, RESULT, y);

layout(push_constant) uniform Push {
    uint num_tiles;       // batch * output height * tiles per row
    uint tiles_per_row;
    uint groups;
    uint output_height;
    uint output_width;
    uint input_height;
    uint input_width;
    uint kernel_height;
    uint stride_h;
    uint dilation_h;
    int pad_top;
    int pad_left;
    uint flip_in;
    int input_zero;
    int weight_zero;
    CHANNELS_PUSH;
} p;

const uint SPAN = (TILE_P - 1u) * STRIDE_W + (KERNEL_W - 1u) * DILATION_W + 1u;

void main() {
    uint group = gl_GlobalInvocationID.x;
    uint tile = gl_GlobalInvocationID.y + gl_GlobalInvocationID.z * gl_NumWorkGroups.y * gl_WorkGroupSize.y;
    if (group >= p.groups || tile >= p.num_tiles) return;
    uint row = tile / p.tiles_per_row;   // over all images
    uint first = (tile - row * p.tiles_per_row) * TILE_P;
    uint image = row / p.output_height;
    int top = int((row - image * p.output_height) * p.stride_h) - p.pad_top;
    int left = int(first * STRIDE_W) - p.pad_left;
    int zero = input_zero(p.input_zero, image);

    ivec4 sums[TILE_P];
    ivec4 b = channel_bias(group);
    [[unroll]] for (uint i = 0u; i < TILE_P; ++i) sums[i] = b;

    for (uint ky = 0u; ky < p.kernel_height; ++ky) {
        int input_row = top + int(ky * p.dilation_h);
        if (input_row < 0 || input_row >= int(p.input_height)) continue;
        uint base = (image * p.input_height + uint(input_row)) * p.input_width;
        ivec4 span[SPAN];
        [[unroll]] for (uint i = 0u; i < SPAN; ++i) {
            int column = left + int(i);
            bool is_inside = column >= 0 && column < int(p.input_width);
            uint word = x.data[(base + uint(is_inside ? column : 0)) * p.groups + group];
            span[i] = is_inside ? unpack_i8(word ^ p.flip_in) - zero : ivec4(0);
        }
        [[unroll]] for (uint kx = 0u; kx < KERNEL_W; ++kx) {
            ivec4 w = LOAD(i8, weights, (ky * KERNEL_W + kx) * p.groups + group) - p.weight_zero;
            [[unroll]] for (uint i = 0u; i < TILE_P; ++i) sums[i] += span[i * STRIDE_W + kx * DILATION_W] * w;
        }
    }

    // One copy of the code for all results, which then move up (conv_2d_i8).
    [[dont_unroll]] for (uint i = 0u; i < TILE_P; ++i) {
        uint column = first + i;
        if (column < p.output_width) {
            y.data[(row * p.output_width + column) * p.groups + group] =
                requantize(sums[0], group, p.output_zero, p.lowest, p.highest, p.flip_out);
        }
        [[unroll]] for (uint k = 1u; k < TILE_P; ++k) sums[k - 1u] = sums[k];
    }
}
