#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
// TRANSPOSE_CONV of int8 or uint8 as a gather, as transpose_conv: pixels a stride apart use the same
// taps, so each invocation makes TILE of those, four channels each.
//
// Weights as conv_2d_i8. How many taps meet an input depends on the pixel, so what the inputs' zero
// point adds is taken off tap by tap; inputs outside the image read as it.

#define CHANNELS_BINDING 2
#define TABLE_BINDING 5
#define TABLE_ID 6
#include "dispatch.glsl"
#include "dot4.glsl"

layout(constant_id = 3) const uint TILE = 4u;
// Weights have a zero point: inputs are summed up as well, their padding lanes left out.
layout(constant_id = 4) const uint HAS_WEIGHT_ZERO = 0u;
layout(constant_id = 5) const uint TAIL = 0u;

const uint AS_DOUBLE = 0u;
#include "channels.glsl"

TENSOR_IN(0, i8, x);
TENSOR_IN(1, u32, weights);
TENSOR_IN(3, i32, tap_sums);  // [tap][output group]: the weights less their zero point, summed up
TENSOR_OUT(4, RESULT, y);

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
    uint flip_in;
    int input_zero;
    int weight_zero;
    CHANNELS_PUSH;
} p;

ivec4 sums[TILE];

void add_tap(uint tap, uint line, uint column, uint group, int zero) {
    uint zeros = (uint(zero) & 0xFFu) * 0x01010101u;
    ivec4 fixed_part = zero * tap_sums.data[tap * p.output_groups + group];
    [[unroll]] for (uint i = 0u; i < TILE; ++i) sums[i] -= fixed_part;
    for (uint c = 0u; c < p.input_groups; ++c) {
        uvec4 w = weights.data[(tap * p.input_groups + c) * p.output_groups + group];
        bool is_tail = TAIL != 0u && c == p.input_groups - 1u;
        uint ones = is_tail ? 0x01010101u >> (8u * (4u - TAIL)) : 0x01010101u;
        [[unroll]] for (uint i = 0u; i < TILE; ++i) {
            // Column wraps to a huge number left of the image.
            uint ix = column + i;
            bool is_inside = ix < p.x_size.x;
            uint v = is_inside ? x.data[(line + ix) * p.input_groups + c] ^ p.flip_in : zeros;
            sums[i] += dot4(v, w);
            if (HAS_WEIGHT_ZERO != 0u) sums[i] -= p.weight_zero * dot4(v, ones);
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

    int zero = input_zero(p.input_zero, image);
    ivec4 b = channel_bias(group);
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
            add_tap(ky * p.kernel.x + kx, line, ix, group, zero);
        }
    }

    // One copy of the code for all results, which then move up (conv_2d_i8).
    [[dont_unroll]] for (uint i = 0u; i < TILE; ++i) {
        uint ox = phase + (first + i) * p.stride.x;
        if (ox < p.y_size.x) {
            y.data[(row * p.y_size.x + ox) * p.output_groups + group] =
                requantize(sums[0], group, p.output_zero, p.lowest, p.highest, p.flip_out);
        }
        [[unroll]] for (uint k = 1u; k < TILE; ++k) sums[k - 1u] = sums[k];
    }
}
