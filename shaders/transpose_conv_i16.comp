#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
// TRANSPOSE_CONV of int16 activations and an int8 filter as a gather, as transpose_conv: pixels a stride
// apart use the same taps, so each invocation makes TILE of those, four channels each.
//
// Weights as conv_2d_i8. Zero points are 0.

#define CHANNELS_BINDING 2
#include "dispatch.glsl"
#include "dot4.glsl"

layout(constant_id = 3) const uint TILE = 4u;
// Sums may need more than 32 bits: they are moved to wider ones every SAFE groups, 2^30 at the most.
layout(constant_id = 4) const uint SPILLS = 0u;
const uint SAFE = 64u;
layout(constant_id = 5) const uint SCALING = 0u;

#include "wide.glsl"

TENSOR_IN(0, i16, x);
TENSOR_IN(1, u32, weights);
TENSOR_OUT(3, i16, y);

layout(push_constant) uniform Push {
    uint num_tiles;          // invocations in all
    uint output_groups;
    uint input_groups;
    uint tiles_per_phase;    // tiles of one output row that begin at the same column modulo stride
    uvec2 y_size;            // width, height
    uvec2 x_size;
    uvec2 kernel;
    uvec2 stride;
    uvec2 pad;
    int lowest;
    int highest;
} p;

ivec4 sums[TILE];
uvec4 lows[TILE];   // what was moved out of the sums, in two words
ivec4 highs[TILE];

void spill() {
    [[unroll]] for (uint i = 0u; i < TILE; ++i) {
        Wide total = Wide(lows[i], highs[i]);
        add(total, sums[i]);
        lows[i] = total.low;
        highs[i] = total.high;
        sums[i] = ivec4(0);
    }
}

void add_tap(uint tap, uint line, uint column, uint group) {
    for (uint c = 0u; c < p.input_groups; ++c) {
        uvec4 w = weights.data[(tap * p.input_groups + c) * p.output_groups + group];
        [[unroll]] for (uint i = 0u; i < TILE; ++i) {
            // Column wraps to a huge number left of the image.
            uint ix = column + i;
            bool is_inside = ix < p.x_size.x;
            ivec4 v = LOAD(i16, x, (line + (is_inside ? ix : 0u)) * p.input_groups + c);
            sums[i] += dot4(is_inside ? v : ivec4(0), w);
        }
        if (SPILLS != 0u && c % SAFE == SAFE - 1u) spill();
    }
    if (SPILLS != 0u) spill();
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

    [[unroll]] for (uint i = 0u; i < TILE; ++i) {
        sums[i] = ivec4(0);
        lows[i] = uvec4(0u);
        highs[i] = ivec4(0);
    }

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
    if (SPILLS == 0u) spill();

    // One copy of the code for all results, which then move up (conv_2d_i8).
    [[dont_unroll]] for (uint i = 0u; i < TILE; ++i) {
        uint ox = phase + (first + i) * p.stride.x;
        if (ox < p.y_size.x) {
            y.data[(row * p.y_size.x + ox) * p.output_groups + group] =
                requantize(Wide(lows[0], highs[0]), group, p.lowest, p.highest);
        }
        [[unroll]] for (uint k = 1u; k < TILE; ++k) {
            lows[k - 1u] = lows[k];
            highs[k - 1u] = highs[k];
        }
    }
}
