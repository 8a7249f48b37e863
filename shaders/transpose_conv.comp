#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
// TRANSPOSE_CONV as a gather: an output pixel takes the taps whose input exists. Pixels a stride
// apart use the same taps, so each invocation makes TILE of those, four channels each, and loads
// every weight once for all of them.
//
// Weights: [kernel row][kernel column][input group][input lane][output group] of vec4 over outputs,
// as conv_2d.

#define EPILOGUE_BINDING 4
#include "dispatch.glsl"
#include "epilogue.glsl"

layout(constant_id = 11) const uint TILE = 4u;
// Input channels modulo 4: the last group's padding lanes are masked.
layout(constant_id = 12) const uint TAIL = 0u;

TENSOR_IN(0, ACT, x);
TENSOR_IN(1, WEIGHT, weights);
TENSOR_IN(2, f32, bias);
TENSOR_OUT(3, ACT, y);

layout(push_constant) uniform Push {
    EPILOGUE_PUSH;
    uint num_tiles;          // invocations in all
    uint output_groups;
    uint input_groups;
    uint tiles_per_phase;    // tiles of one output row that begin at the same column modulo stride
    uvec2 y_size;            // width, height
    uvec2 x_size;
    uvec2 kernel;
    uvec2 stride;
    uvec2 pad;
} p;

vec4 sums[TILE];

void add_tap(uint tap, uint line, uint column, uint group) {
    // Column wraps to a huge number left of the image.
    for (uint c = 0u; c < p.input_groups; ++c) {
        vec4 values[TILE];
        [[unroll]] for (uint i = 0u; i < TILE; ++i) {
            uint ix = column + i;
            vec4 v = vec4(0.0);
            if (ix < p.x_size.x) v = LOAD(ACT, x, (line + ix) * p.input_groups + c);
            if (TAIL != 0u && c == p.input_groups - 1u) {
                v = vec4(v.x, TAIL > 1u ? v.y : 0.0, TAIL > 2u ? v.z : 0.0, 0.0);
            }
            values[i] = v;
        }
        uint first = (tap * p.input_groups + c) * 4u;
        [[unroll]] for (uint lane = 0u; lane < 4u; ++lane) {
            vec4 w = LOAD(WEIGHT, weights, (first + lane) * p.output_groups + group);
            [[unroll]] for (uint i = 0u; i < TILE; ++i) sums[i] += values[i][lane] * w;
        }
    }
}

void main() {
    uint index = flat_index();
    if (index >= p.num_tiles) return;
    uint rest = index / p.output_groups;
    uint group = index - rest * p.output_groups;
    uint tiles = p.tiles_per_phase * p.stride.x;
    uint row = rest / tiles;
    uint tile = rest - row * tiles;
    uint phase = tile / p.tiles_per_phase;
    uint first = (tile - phase * p.tiles_per_phase) * TILE;
    uint image = row / p.y_size.y;
    uint oy = row - image * p.y_size.y;
    if (phase + first * p.stride.x >= p.y_size.x) return;

    vec4 b = LOAD(f32, bias, group);
    [[unroll]] for (uint i = 0u; i < TILE; ++i) sums[i] = b;

    // Tap k meets input (o + pad - k) / stride where that is whole: k = remainder, + stride, ...
    uvec2 at = uvec2(phase, oy) + p.pad;
    uvec2 quotient = at / p.stride;
    uvec2 remainder = at - quotient * p.stride;
    uint iy = quotient.y;
    for (uint ky = remainder.y; ky < p.kernel.y; ky += p.stride.y, --iy) {
        if (iy >= p.x_size.y) continue;
        uint line = (image * p.x_size.y + iy) * p.x_size.x;
        uint ix = quotient.x + first;
        for (uint kx = remainder.x; kx < p.kernel.x; kx += p.stride.x, --ix) {
            add_tap(ky * p.kernel.x + kx, line, ix, group);
        }
    }

    [[unroll]] for (uint i = 0u; i < TILE; ++i) {
        uint ox = phase + (first + i) * p.stride.x;
        if (ox < p.y_size.x) {
            uint pixel = row * p.y_size.x + ox;
            uint out_at = pixel * p.output_groups + group;
            STORE(ACT, y, out_at, epilogue(sums[i], out_at, pixel, group, p.immediates));
        }
    }
}
