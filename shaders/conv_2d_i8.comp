#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
// CONV_2D of int8 or uint8, as conv_2d: each invocation makes TILE_P output pixels times TILE_C groups
// of four output channels. Also FULLY_CONNECTED on many rows.
//
// x: output channels; y, z: tiles of pixels.
// Weights: [kernel row][kernel column][input group][output group] of uvec4; component o holds four
// input lanes of output o. The inputs' zero point is in the bias; taps outside the image read as it.

#define CHANNELS_BINDING 2
#include "dispatch.glsl"
#include "dot4.glsl"

layout(constant_id = 3) const uint TILE_P = 4u;
layout(constant_id = 4) const uint TILE_C = 1u;
// 1x1, stride 1, no padding: a pixel's input is where its output is.
layout(constant_id = 5) const uint IS_POINTWISE = 0u;
layout(constant_id = 6) const uint IS_GROUPED = 0u;
// Weights have a zero point: inputs are summed up as well, their padding lanes left out.
layout(constant_id = 7) const uint HAS_WEIGHT_ZERO = 0u;
layout(constant_id = 8) const uint TAIL = 0u;
layout(constant_id = 9) const uint AS_DOUBLE = 0u;

#include "channels.glsl"

TENSOR_IN(0, i8, x);
TENSOR_IN(1, u32, weights);
TENSOR_OUT(3, i8, y);

layout(push_constant) uniform Push {
    uint num_pixels;        // batch * output height * output width
    uint output_groups;
    uint input_groups;      // of one group of a grouped convolution
    uint input_stride;      // groups from pixel to pixel
    uint output_height;
    uint output_width;
    uint input_height;
    uint input_width;
    uint kernel_height;
    uint kernel_width;
    uint stride_h;
    uint stride_w;
    uint dilation_h;
    uint dilation_w;
    int pad_top;
    int pad_left;
    uint outputs_per_group; // output groups that share the same input channels
    uint flip_in;
    uint input_zero;        // the zero point in all four bytes
    int weight_zero;
    CHANNELS_PUSH;
} p;

ivec4 sums[TILE_P * TILE_C];
int inputs[TILE_P];  // sum of the inputs of each pixel

void multiply(uint tap, uint channel, const uint positions[TILE_P], const bool is_inside[TILE_P], uint group) {
    uint values[TILE_P];
    [[unroll]] for (uint i = 0u; i < TILE_P; ++i) {
        uint v = x.data[positions[i] + channel] ^ p.flip_in;
        values[i] = IS_POINTWISE != 0u || is_inside[i] ? v : p.input_zero;
    }
    [[unroll]] for (uint j = 0u; j < TILE_C; ++j) {
        uint g = min(group + j * gl_WorkGroupSize.x, p.output_groups - 1u);
        uvec4 w = weights.data[(tap * p.input_groups + channel) * p.output_groups + g];
        [[unroll]] for (uint i = 0u; i < TILE_P; ++i) sums[i * TILE_C + j] += dot4(values[i], w);
    }
    if (HAS_WEIGHT_ZERO != 0u) {
        bool is_tail = TAIL != 0u && channel == p.input_groups - 1u;
        uint ones = is_tail ? 0x01010101u >> (8u * (4u - TAIL)) : 0x01010101u;
        [[unroll]] for (uint i = 0u; i < TILE_P; ++i) inputs[i] += dot4(values[i], ones);
    }
}

void main() {
    uint group = gl_WorkGroupID.x * gl_WorkGroupSize.x * TILE_C + gl_LocalInvocationID.x;
    uint tile = gl_GlobalInvocationID.y + gl_GlobalInvocationID.z * gl_NumWorkGroups.y * gl_WorkGroupSize.y;
    uint first = tile * TILE_P;
    if (group >= p.output_groups || first >= p.num_pixels) return;

    [[unroll]] for (uint j = 0u; j < TILE_C; ++j) {
        ivec4 b = channel_bias(min(group + j * gl_WorkGroupSize.x, p.output_groups - 1u));
        [[unroll]] for (uint i = 0u; i < TILE_P; ++i) sums[i * TILE_C + j] = b;
    }
    [[unroll]] for (uint i = 0u; i < TILE_P; ++i) inputs[i] = 0;

    uint first_channel = IS_GROUPED != 0u ? group / p.outputs_per_group * p.input_groups : 0u;
    uint positions[TILE_P];
    bool is_inside[TILE_P];

    if (IS_POINTWISE != 0u) {
        [[unroll]] for (uint i = 0u; i < TILE_P; ++i) {
            positions[i] = min(first + i, p.num_pixels - 1u) * p.input_stride + first_channel;
        }
        for (uint c = 0u; c < p.input_groups; ++c) multiply(0u, c, positions, is_inside, group);
    } else {
        int tops[TILE_P];
        int lefts[TILE_P];
        uint images[TILE_P];
        [[unroll]] for (uint i = 0u; i < TILE_P; ++i) {
            uint pixel = min(first + i, p.num_pixels - 1u);
            uint row = pixel / p.output_width;
            uint image = row / p.output_height;
            tops[i] = int((row - image * p.output_height) * p.stride_h) - p.pad_top;
            lefts[i] = int((pixel - row * p.output_width) * p.stride_w) - p.pad_left;
            images[i] = image * p.input_height;
        }
        for (uint ky = 0u; ky < p.kernel_height; ++ky) {
            for (uint kx = 0u; kx < p.kernel_width; ++kx) {
                [[unroll]] for (uint i = 0u; i < TILE_P; ++i) {
                    int row = tops[i] + int(ky * p.dilation_h);
                    int column = lefts[i] + int(kx * p.dilation_w);
                    is_inside[i] = row >= 0 && row < int(p.input_height) && column >= 0 && column < int(p.input_width);
                    uint position = is_inside[i] ? (images[i] + uint(row)) * p.input_width + uint(column) : 0u;
                    positions[i] = position * p.input_stride + first_channel;
                }
                uint tap = ky * p.kernel_width + kx;
                for (uint c = 0u; c < p.input_groups; ++c) multiply(tap, c, positions, is_inside, group);
            }
        }
    }

    [[unroll]] for (uint i = 0u; i < TILE_P; ++i) {
        uint pixel = first + i;
        if (pixel < p.num_pixels) {
            [[unroll]] for (uint j = 0u; j < TILE_C; ++j) {
                uint g = group + j * gl_WorkGroupSize.x;
                if (g < p.output_groups) {
                    ivec4 sum = sums[i * TILE_C + j];
                    if (HAS_WEIGHT_ZERO != 0u) sum -= p.weight_zero * inputs[i];
                    y.data[pixel * p.output_groups + g] =
                        requantize(sum, g, p.output_zero, p.lowest, p.highest, p.flip_out);
                }
            }
        }
    }
}
