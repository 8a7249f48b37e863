#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
// CONV_2D of int8 or uint8, as conv_2d: each invocation makes TILE_P output pixels times TILE_C groups
// of four output channels. Also FULLY_CONNECTED on many rows.
//
// x: output channels; y, z: tiles of pixels.
// Weights: [kernel row][kernel column][input group][output group] of uvec4; component o holds four
// input lanes of output o. The inputs' zero point is in the bias; taps outside the image read as it.
//
// SUBGROUP, set by -D: the eight invocations of a subgroup lie along x and read the same inputs, so
// each loads every eighth pixel's and they pass them on. A software driver loads lane by lane, which is
// most of its time; a GPU needs none of it. RAW: channels.glsl.

#define CHANNELS_BINDING 2
#define TABLE_BINDING 4
#define TABLE_ID 10
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
TENSOR_OUT(3, RESULT, y);

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

#ifdef SUBGROUP
#extension GL_KHR_shader_subgroup_ballot : require
// Pixels that an invocation loads, of the TILE_P that it needs.
const uint OWN = TILE_P / 8u;
uint own_pixel(uint i) { return i * 8u + gl_SubgroupInvocationID; }

uint input_word(const uint own[OWN], uint i) {
    uint v = own[i >> 3];
    switch (i & 7u) {
    case 0u: return subgroupBroadcast(v, 0u);
    case 1u: return subgroupBroadcast(v, 1u);
    case 2u: return subgroupBroadcast(v, 2u);
    case 3u: return subgroupBroadcast(v, 3u);
    case 4u: return subgroupBroadcast(v, 4u);
    case 5u: return subgroupBroadcast(v, 5u);
    case 6u: return subgroupBroadcast(v, 6u);
    }
    return subgroupBroadcast(v, 7u);
}
#else
const uint OWN = TILE_P;
uint own_pixel(uint i) { return i; }
uint input_word(const uint own[OWN], uint i) { return own[i]; }
#endif

ivec4 sums[TILE_P * TILE_C];
int inputs[TILE_P];  // sum of the inputs of each pixel
uint zeros[OWN];     // what taps outside each pixel's image read

void multiply(uint tap, uint channel, const uint positions[OWN], const bool is_inside[OWN], uint group) {
    uint own[OWN];
    [[unroll]] for (uint i = 0u; i < OWN; ++i) {
        uint v = x.data[positions[i] + channel] ^ p.flip_in;
        own[i] = IS_POINTWISE != 0u || is_inside[i] ? v : zeros[i];
    }
    uvec4 w[TILE_C];
    [[unroll]] for (uint j = 0u; j < TILE_C; ++j) {
        uint g = min(group + j * gl_WorkGroupSize.x, p.output_groups - 1u);
        w[j] = weights.data[(tap * p.input_groups + channel) * p.output_groups + g];
    }
    bool is_tail = TAIL != 0u && channel == p.input_groups - 1u;
    uint ones = is_tail ? 0x01010101u >> (8u * (4u - TAIL)) : 0x01010101u;
    [[unroll]] for (uint i = 0u; i < TILE_P; ++i) {
        uint v = input_word(own, i);
        [[unroll]] for (uint j = 0u; j < TILE_C; ++j) sums[i * TILE_C + j] += dot4(v, w[j]);
        if (HAS_WEIGHT_ZERO != 0u) inputs[i] += dot4(v, ones);
    }
}

void main() {
    uint group = gl_WorkGroupID.x * gl_WorkGroupSize.x * TILE_C + gl_LocalInvocationID.x;
    uint tile = gl_GlobalInvocationID.y + gl_GlobalInvocationID.z * gl_NumWorkGroups.y * gl_WorkGroupSize.y;
    uint first = tile * TILE_P;
#ifndef SUBGROUP
    if (group >= p.output_groups || first >= p.num_pixels) return;
#endif

    [[unroll]] for (uint j = 0u; j < TILE_C; ++j) {
        ivec4 b = channel_bias(min(group + j * gl_WorkGroupSize.x, p.output_groups - 1u));
        [[unroll]] for (uint i = 0u; i < TILE_P; ++i) sums[i * TILE_C + j] = b;
    }
    [[unroll]] for (uint i = 0u; i < TILE_P; ++i) inputs[i] = 0;

    uint first_channel = IS_GROUPED != 0u ? group / p.outputs_per_group * p.input_groups : 0u;
    uint positions[OWN];
    bool is_inside[OWN];
    int tops[OWN];
    int lefts[OWN];
    uint images[OWN];
    [[unroll]] for (uint i = 0u; i < OWN; ++i) {
        uint pixel = min(first + own_pixel(i), p.num_pixels - 1u);
        if (IS_POINTWISE != 0u) {
            positions[i] = pixel * p.input_stride + first_channel;
        } else {
            uint row = pixel / p.output_width;
            uint image = row / p.output_height;
            tops[i] = int((row - image * p.output_height) * p.stride_h) - p.pad_top;
            lefts[i] = int((pixel - row * p.output_width) * p.stride_w) - p.pad_left;
            images[i] = image * p.input_height;
            zeros[i] = input_zero(p.input_zero, image);
        }
    }
    for (uint ky = 0u; ky < p.kernel_height; ++ky) {
        for (uint kx = 0u; kx < p.kernel_width; ++kx) {
            if (IS_POINTWISE == 0u) {
                [[unroll]] for (uint i = 0u; i < OWN; ++i) {
                    int row = tops[i] + int(ky * p.dilation_h);
                    int column = lefts[i] + int(kx * p.dilation_w);
                    is_inside[i] = row >= 0 && row < int(p.input_height) && column >= 0 && column < int(p.input_width);
                    uint position = is_inside[i] ? (images[i] + uint(row)) * p.input_width + uint(column) : 0u;
                    positions[i] = position * p.input_stride + first_channel;
                }
            }
            uint tap = ky * p.kernel_width + kx;
            for (uint c = 0u; c < p.input_groups; ++c) multiply(tap, c, positions, is_inside, group);
        }
    }

    // One copy of the code for all results, which then move up: drivers compile it much faster than
    // TILE_P * TILE_C copies, and the array needs no index that isn't constant.
    [[dont_unroll]] for (uint i = 0u; i < TILE_P * TILE_C; ++i) {
        uint pixel = first + i / TILE_C;
        uint g = group + i % TILE_C * gl_WorkGroupSize.x;
        if (pixel < p.num_pixels && g < p.output_groups) {
            ivec4 sum = sums[0];
            if (HAS_WEIGHT_ZERO != 0u) sum -= p.weight_zero * inputs[0];
            y.data[pixel * p.output_groups + g] = requantize(sum, g, p.output_zero, p.lowest, p.highest, p.flip_out);
        }
        [[unroll]] for (uint k = 1u; k < TILE_P * TILE_C; ++k) sums[k - 1u] = sums[k];
        if (HAS_WEIGHT_ZERO != 0u && i % TILE_C == TILE_C - 1u) {
            [[unroll]] for (uint k = 1u; k < TILE_P; ++k) inputs[k - 1u] = inputs[k];
        }
    }
}
