#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
// CONV_2D of int16 activations and an int8 filter, as conv_2d_i8: each invocation makes TILE_P output
// pixels of four channels. Also FULLY_CONNECTED.
//
// x: output channels; y, z: tiles of pixels. Weights as conv_2d_i8. Zero points are 0.

#define CHANNELS_BINDING 2
#include "dispatch.glsl"
#include "dot4.glsl"

layout(constant_id = 3) const uint TILE_P = 4u;
// 1x1, stride 1, no padding: a pixel's input is where its output is.
layout(constant_id = 4) const uint IS_POINTWISE = 0u;
layout(constant_id = 5) const uint IS_GROUPED = 0u;
// Sums may need more than 32 bits: they are moved to wider ones every SAFE groups, 2^30 at the most.
layout(constant_id = 6) const uint SPILLS = 0u;
const uint SAFE = 64u;
layout(constant_id = 7) const uint SCALING = 0u;

#include "wide.glsl"

TENSOR_IN(0, i16, x);
TENSOR_IN(1, u32, weights);
TENSOR_OUT(3, i16, y);

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
    int lowest;
    int highest;
} p;

ivec4 sums[TILE_P];
uvec4 lows[TILE_P];   // what was moved out of the sums, in two words
ivec4 highs[TILE_P];

void spill() {
    [[unroll]] for (uint i = 0u; i < TILE_P; ++i) {
        Wide total = Wide(lows[i], highs[i]);
        add(total, sums[i]);
        lows[i] = total.low;
        highs[i] = total.high;
        sums[i] = ivec4(0);
    }
}

void main() {
    uint group = gl_GlobalInvocationID.x;
    uint tile = gl_GlobalInvocationID.y + gl_GlobalInvocationID.z * gl_NumWorkGroups.y * gl_WorkGroupSize.y;
    uint first = tile * TILE_P;
    if (group >= p.output_groups || first >= p.num_pixels) return;

    [[unroll]] for (uint i = 0u; i < TILE_P; ++i) {
        sums[i] = ivec4(0);
        lows[i] = uvec4(0u);
        highs[i] = ivec4(0);
    }
    uint first_channel = IS_GROUPED != 0u ? group / p.outputs_per_group * p.input_groups : 0u;
    uint positions[TILE_P];
    bool is_inside[TILE_P];
    int tops[TILE_P];
    int lefts[TILE_P];
    uint images[TILE_P];
    [[unroll]] for (uint i = 0u; i < TILE_P; ++i) {
        uint pixel = min(first + i, p.num_pixels - 1u);
        is_inside[i] = true;
        positions[i] = pixel * p.input_stride + first_channel;
        if (IS_POINTWISE == 0u) {
            uint row = pixel / p.output_width;
            uint image = row / p.output_height;
            tops[i] = int((row - image * p.output_height) * p.stride_h) - p.pad_top;
            lefts[i] = int((pixel - row * p.output_width) * p.stride_w) - p.pad_left;
            images[i] = image * p.input_height;
        }
    }
    for (uint ky = 0u; ky < p.kernel_height; ++ky) {
        for (uint kx = 0u; kx < p.kernel_width; ++kx) {
            if (IS_POINTWISE == 0u) {
                [[unroll]] for (uint i = 0u; i < TILE_P; ++i) {
                    int row = tops[i] + int(ky * p.dilation_h);
                    int column = lefts[i] + int(kx * p.dilation_w);
                    is_inside[i] = row >= 0 && row < int(p.input_height) && column >= 0 && column < int(p.input_width);
                    uint position = is_inside[i] ? (images[i] + uint(row)) * p.input_width + uint(column) : 0u;
                    positions[i] = position * p.input_stride + first_channel;
                }
            }
            uint tap = ky * p.kernel_width + kx;
            for (uint c = 0u; c < p.input_groups; ++c) {
                uvec4 w = weights.data[(tap * p.input_groups + c) * p.output_groups + group];
                [[unroll]] for (uint i = 0u; i < TILE_P; ++i) {
                    ivec4 v = LOAD(i16, x, positions[i] + c);
                    sums[i] += dot4(is_inside[i] ? v : ivec4(0), w);
                }
                if (SPILLS != 0u && c % SAFE == SAFE - 1u) spill();
            }
            if (SPILLS != 0u) spill();
        }
    }
    if (SPILLS == 0u) spill();

    // One copy of the code for all results, which then move up (conv_2d_i8).
    [[dont_unroll]] for (uint i = 0u; i < TILE_P; ++i) {
        if (first + i < p.num_pixels) {
            y.data[(first + i) * p.output_groups + group] =
                requantize(Wide(lows[0], highs[0]), group, p.lowest, p.highest);
        }
        [[unroll]] for (uint k = 1u; k < TILE_P; ++k) {
            lows[k - 1u] = lows[k];
            highs[k - 1u] = highs[k];
        }
    }
}
