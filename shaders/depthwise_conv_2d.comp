#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
// DEPTHWISE_CONV_2D with one output per input channel. Each invocation makes TILE_P neighbouring
// pixels of an output row, four channels each, and keeps the input row they share in registers.
//
// x: groups of four channels; y: tiles along the rows; z: unused.
// Weights and output lie in the plain tensor layout.

#define EPILOGUE_BINDING 4
#include "dispatch.glsl"
#include "epilogue.glsl"

layout(constant_id = 11) const uint TILE_P = 4u;
layout(constant_id = 12) const uint KERNEL_W = 3u;
layout(constant_id = 13) const uint STRIDE_W = 1u;
layout(constant_id = 14) const uint DILATION_W = 1u;

TENSOR_IN(0, ACT, x);
TENSOR_IN(1, WEIGHT, weights);
TENSOR_IN(2, f32, bias);
TENSOR_OUT(3, ACT, y);

layout(push_constant) uniform Push {
    EPILOGUE_PUSH;
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

    vec4 sums[TILE_P];
    [[unroll]] for (uint i = 0u; i < TILE_P; ++i) sums[i] = vec4(0.0);

    for (uint ky = 0u; ky < p.kernel_height; ++ky) {
        int input_row = top + int(ky * p.dilation_h);
        if (input_row < 0 || input_row >= int(p.input_height)) continue;
        uint base = (image * p.input_height + uint(input_row)) * p.input_width;
        vec4 span[SPAN];
        [[unroll]] for (uint i = 0u; i < SPAN; ++i) {
            int column = left + int(i);
            bool is_inside = column >= 0 && column < int(p.input_width);
            vec4 v = LOAD(ACT, x, (base + uint(is_inside ? column : 0)) * p.groups + group);
            span[i] = is_inside ? v : vec4(0.0);
        }
        [[unroll]] for (uint kx = 0u; kx < KERNEL_W; ++kx) {
            vec4 w = LOAD(WEIGHT, weights, (ky * KERNEL_W + kx) * p.groups + group);
            [[unroll]] for (uint i = 0u; i < TILE_P; ++i) sums[i] += span[i * STRIDE_W + kx * DILATION_W] * w;
        }
    }

    // The bias last, as TFLite's reference kernel adds it: the same rounding.
    vec4 b = LOAD(f32, bias, group);
    [[unroll]] for (uint i = 0u; i < TILE_P; ++i) {
        uint column = first + i;
        if (column < p.output_width) {
            uint pixel = row * p.output_width + column;
            uint at = pixel * p.groups + group;
            STORE(ACT, y, at, epilogue(sums[i] + b, at, pixel, group, p.immediates));
        }
    }
}
