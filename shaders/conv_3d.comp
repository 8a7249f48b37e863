#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
// CONV_3D: each invocation makes TILE neighbours along the width, four channels each, and loads
// every weight once for all of them.
//
// Weights as TFLite stores them, [depth][row][column][input][output]: a row is vec4 over outputs.

#define EPILOGUE_BINDING 4
#include "dispatch.glsl"
#include "epilogue.glsl"

layout(constant_id = 11) const uint TILE = 4u;
// Input channels modulo 4: the last group's padding lanes are not used.
layout(constant_id = 12) const uint TAIL = 0u;

TENSOR_IN(0, ACT, x);
TENSOR_IN(1, ACT, weights);
TENSOR_IN(2, f32, bias);
TENSOR_OUT(3, ACT, y);

layout(push_constant) uniform Push {
    EPILOGUE_PUSH;
    uint num_tiles;
    uint output_groups;
    uint input_groups;
    uint input_channels;
    uint y_size[3];       // depth, height, width
    int x_size[3];
    uint kernel[3];
    int stride[3];
    int dilation[3];
    int pad[3];
} p;

vec4 sums[TILE];

void add_tap(uint tap, uint line, int column, uint group) {
    for (uint c = 0u; c < p.input_groups; ++c) {
        vec4 values[TILE];
        [[unroll]] for (uint i = 0u; i < TILE; ++i) {
            int ix = column + int(i) * p.stride[2];
            values[i] = vec4(0.0);
            if (ix >= 0 && ix < p.x_size[2]) values[i] = LOAD(ACT, x, (line + uint(ix)) * p.input_groups + c);
        }
        uint first = tap * p.input_channels + c * 4u;
        uint lanes = TAIL != 0u && c == p.input_groups - 1u ? TAIL : 4u;
        [[unroll]] for (uint lane = 0u; lane < 4u; ++lane) {
            if (lane < lanes) {
                vec4 w = LOAD(ACT, weights, (first + lane) * p.output_groups + group);
                [[unroll]] for (uint i = 0u; i < TILE; ++i) sums[i] += values[i][lane] * w;
            }
        }
    }
}

void main() {
    uint index = flat_index();
    if (index >= p.num_tiles) return;
    uint rest = index / p.output_groups;
    uint group = index - rest * p.output_groups;
    uint tiles = (p.y_size[2] + TILE - 1u) / TILE;
    uint row = rest / tiles;
    uint first = (rest - row * tiles) * TILE;
    uint plane = row / p.y_size[1];
    uint image = plane / p.y_size[0];
    int top = int(row - plane * p.y_size[1]) * p.stride[1] - p.pad[1];
    int front = int(plane - image * p.y_size[0]) * p.stride[0] - p.pad[0];
    int left = int(first) * p.stride[2] - p.pad[2];

    vec4 b = LOAD(f32, bias, group);
    [[unroll]] for (uint i = 0u; i < TILE; ++i) sums[i] = b;
    for (uint kz = 0u; kz < p.kernel[0]; ++kz) {
        int iz = front + int(kz) * p.dilation[0];
        if (iz < 0 || iz >= p.x_size[0]) continue;
        for (uint ky = 0u; ky < p.kernel[1]; ++ky) {
            int iy = top + int(ky) * p.dilation[1];
            if (iy < 0 || iy >= p.x_size[1]) continue;
            uint line = ((image * uint(p.x_size[0]) + uint(iz)) * uint(p.x_size[1]) + uint(iy)) * uint(p.x_size[2]);
            uint tap = (kz * p.kernel[1] + ky) * p.kernel[2];
            for (uint kx = 0u; kx < p.kernel[2]; ++kx) {
                add_tap(tap + kx, line, left + int(kx) * p.dilation[2], group);
            }
        }
    }

    [[unroll]] for (uint i = 0u; i < TILE; ++i) {
        if (first + i < p.y_size[2]) {
            uint pixel = row * p.y_size[2] + first + i;
            uint at = pixel * p.output_groups + group;
            STORE(ACT, y, at, epilogue(sums[i], at, pixel, group, p.immediates));
        }
    }
}
