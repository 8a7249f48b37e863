#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
// DEPTHWISE_CONV_2D as depthwise_conv_2d, without dilation of rows, for drivers that are bound by
// loads: each invocation goes down TILE_W neighbouring columns, four channels each. It keeps the
// filter, loads each input row once, and adds it to all output rows that reach it: with 3x3 taps and
// four columns 1.5 loads for each output, where one row at a time takes seven.
//
// x: groups of four channels; y, z: blocks of columns and some rows, along the rows first.
// Weights and output lie in the plain tensor layout.

#define EPILOGUE_BINDING 4
#include "dispatch.glsl"
#include "epilogue.glsl"

layout(constant_id = 11) const uint TILE_W = 4u;
layout(constant_id = 12) const uint KERNEL_H = 3u;
layout(constant_id = 13) const uint STRIDE_H = 1u;
layout(constant_id = 14) const uint KERNEL_W = 3u;
layout(constant_id = 15) const uint STRIDE_W = 1u;
layout(constant_id = 16) const uint DILATION_W = 1u;

TENSOR_IN(0, ACT, x);
TENSOR_IN(1, WEIGHT, weights);
TENSOR_IN(2, f32, bias);
TENSOR_OUT(3, ACT, y);

layout(push_constant) uniform Push {
    EPILOGUE_PUSH;
    uint num_blocks;        // batch * blocks per column * blocks per row
    uint blocks_per_row;
    uint blocks_per_column; // of one image
    uint rows;              // output rows of a block
    uint groups;
    uint output_height;
    uint output_width;
    uint input_height;
    uint input_width;
    int pad_top;
    int pad_left;
} p;

const uint TAPS = KERNEL_H * KERNEL_W;
const uint SPAN = (TILE_W - 1u) * STRIDE_W + (KERNEL_W - 1u) * DILATION_W + 1u;
// Output rows under way at a time: a step loads STRIDE_H input rows, begins one and ends one.
const uint LIVE = (KERNEL_H + STRIDE_H - 1u) / STRIDE_H;

// Of the row that is `j` steps old: [j][column].
vec4 sums[LIVE * TILE_W];

void main() {
    uint group = gl_GlobalInvocationID.x;
    uint block = gl_GlobalInvocationID.y + gl_GlobalInvocationID.z * gl_NumWorkGroups.y * gl_WorkGroupSize.y;
    if (group >= p.groups || block >= p.num_blocks) return;
    uint band = block / p.blocks_per_row;   // rows of blocks, over all images
    uint image = band / p.blocks_per_column;
    uint first_row = (band - image * p.blocks_per_column) * p.rows;
    uint first_column = (block - band * p.blocks_per_row) * TILE_W;
    int top = int(first_row * STRIDE_H) - p.pad_top;
    int left = int(first_column * STRIDE_W) - p.pad_left;

    vec4 w[TAPS];
    [[unroll]] for (uint k = 0u; k < TAPS; ++k) w[k] = LOAD(WEIGHT, weights, k * p.groups + group);
    vec4 b = LOAD(f32, bias, group);
    [[unroll]] for (uint i = 0u; i < LIVE * TILE_W; ++i) sums[i] = vec4(0.0);

    [[dont_unroll]] for (uint step = 0u; step < p.rows + LIVE - 1u; ++step) {
        [[unroll]] for (uint s = 0u; s < STRIDE_H; ++s) {
            // No branch around a row outside the image: a software driver would keep every sum in memory.
            int row = top + int(step * STRIDE_H + s);
            bool is_row = row >= 0 && row < int(p.input_height);
            uint base = (image * p.input_height + uint(is_row ? row : 0)) * p.input_width;
            vec4 span[SPAN];
            [[unroll]] for (uint i = 0u; i < SPAN; ++i) {
                int column = left + int(i);
                bool is_inside = is_row && column >= 0 && column < int(p.input_width);
                vec4 v = LOAD(ACT, x, (base + uint(is_inside ? column : 0)) * p.groups + group);
                span[i] = is_inside ? v : vec4(0.0);
            }
            [[unroll]] for (uint j = 0u; j < LIVE; ++j) {
                uint ky = j * STRIDE_H + s;
                if (ky < KERNEL_H) {
                    [[unroll]] for (uint kx = 0u; kx < KERNEL_W; ++kx) {
                        [[unroll]] for (uint i = 0u; i < TILE_W; ++i) {
                            sums[j * TILE_W + i] += span[i * STRIDE_W + kx * DILATION_W] * w[ky * KERNEL_W + kx];
                        }
                    }
                }
            }
        }
        // The oldest row is complete; what stands there before was never begun.
        uint done = step - (LIVE - 1u);
        uint row = first_row + done;
        [[unroll]] for (uint i = 0u; i < TILE_W; ++i) {
            uint column = first_column + i;
            if (step >= LIVE - 1u && row < p.output_height && column < p.output_width) {
                uint pixel = (image * p.output_height + row) * p.output_width + column;
                uint at = pixel * p.groups + group;
                // The bias last, as TFLite's reference kernel adds it: the same rounding.
                vec4 sum = sums[(LIVE - 1u) * TILE_W + i] + b;
                STORE(ACT, y, at, epilogue(sum, at, pixel, group, p.immediates));
            }
        }
        [[unroll]] for (uint k = 1u; k < LIVE; ++k) {
            [[unroll]] for (uint i = 0u; i < TILE_W; ++i) sums[(LIVE - k) * TILE_W + i] = sums[(LIVE - k - 1u) * TILE_W + i];
        }
        [[unroll]] for (uint i = 0u; i < TILE_W; ++i) sums[i] = vec4(0.0);
    }
}
