#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
// CONV_2D as a matrix product with register tiles: each invocation makes TILE_P output pixels times
// TILE_C groups of four output channels. Also FULLY_CONNECTED on many rows, as a 1x1 convolution.
//
// x: output channels (neighbouring invocations read neighbouring weights); y: tiles of pixels, which
// continue along workgroups of z. Local size z splits the sum over the input channels: where there
// are few outputs, a GPU has invocations to spare. The parts meet in shared memory.

#define EPILOGUE_BINDING 4
#include "dispatch.glsl"
#include "conv_product.glsl"

layout(constant_id = 11) const uint TILE_P = 4u;
layout(constant_id = 12) const uint TILE_C = 1u;
// Input channels modulo 4: the last group's padding lanes are masked.
layout(constant_id = 13) const uint TAIL = 0u;
// 1x1, stride 1, no padding: a pixel's input is where its output is.
layout(constant_id = 14) const uint IS_POINTWISE = 0u;
layout(constant_id = 15) const uint IS_GROUPED = 0u;
// Steps along the input channels taken together, so that the loads of one needn't wait for another's.
layout(constant_id = 16) const uint DEPTH = 1u;

vec4 accumulators[TILE_P * TILE_C];

void multiply(uint tap, uint channel, const uint positions[TILE_P], const bool is_inside[TILE_P], uint group) {
    vec4 values[TILE_P];
    // A padding lane may hold NaN, which a zero weight would not silence.
    bvec4 is_live = greaterThan(uvec4(TAIL), uvec4(0u, 1u, 2u, 3u));
    if (TAIL == 0u || channel != p.input_groups - 1u) is_live = bvec4(true);
    [[unroll]] for (uint i = 0u; i < TILE_P; ++i) {
        vec4 v = LOAD(ACT, x, positions[i] + channel);
        if (TAIL != 0u) v = mix(vec4(0.0), v, is_live);
        values[i] = IS_POINTWISE != 0u || is_inside[i] ? v : vec4(0.0);
    }
    uint first_weight = (tap * p.input_groups + channel) * 4u;
    [[unroll]] for (uint lane = 0u; lane < 4u; ++lane) {
        [[unroll]] for (uint j = 0u; j < TILE_C; ++j) {
            uint g = min(group + j * gl_WorkGroupSize.x, p.output_groups - 1u);
            vec4 w = LOAD(WEIGHT, weights, (first_weight + lane) * p.output_groups + g);
            [[unroll]] for (uint i = 0u; i < TILE_P; ++i) {
                accumulators[i * TILE_C + j] += values[i][lane] * w;
            }
        }
    }
}

// Partial sums of all but the first part, by [pixel and group of the tile][invocation].
const uint INVOCATIONS = gl_WorkGroupSize.x * gl_WorkGroupSize.y * gl_WorkGroupSize.z;
shared vec4 partial[gl_WorkGroupSize.z > 1u ? TILE_P * TILE_C * INVOCATIONS : 1u];

// Add the parts of the sum; true for the invocations that then hold results.
bool gather_parts() {
    if (gl_WorkGroupSize.z == 1u) return true;
    uint mine = gl_LocalInvocationIndex;
    [[unroll]] for (uint i = 0u; i < TILE_P * TILE_C; ++i) partial[i * INVOCATIONS + mine] = accumulators[i];
    barrier();
    if (gl_LocalInvocationID.z != 0u) return false;
    for (uint part = 1u; part < gl_WorkGroupSize.z; ++part) {
        uint other = mine + part * gl_WorkGroupSize.x * gl_WorkGroupSize.y;
        [[unroll]] for (uint i = 0u; i < TILE_P * TILE_C; ++i) accumulators[i] += partial[i * INVOCATIONS + other];
    }
    return true;
}

void main() {
    uint group = gl_WorkGroupID.x * gl_WorkGroupSize.x * TILE_C + gl_LocalInvocationID.x;
    uint tile = (gl_WorkGroupID.y + gl_WorkGroupID.z * gl_NumWorkGroups.y) * gl_WorkGroupSize.y + gl_LocalInvocationID.y;
    uint first = tile * TILE_P;
    // With parts to gather every invocation has to reach the barrier; loads are clamped.
    if (gl_WorkGroupSize.z == 1u && (group >= p.output_groups || first >= p.num_pixels)) return;
    uint part = gl_LocalInvocationID.z;

    [[unroll]] for (uint i = 0u; i < TILE_P * TILE_C; ++i) accumulators[i] = vec4(0.0);

    uint first_channel = IS_GROUPED != 0u ? group / p.outputs_per_group * p.input_groups : 0u;
    uint positions[TILE_P];
    bool is_inside[TILE_P];
    int tops[TILE_P];
    int lefts[TILE_P];
    uint images[TILE_P];
    [[unroll]] for (uint i = 0u; i < TILE_P; ++i) {
        uint pixel = min(first + i, p.num_pixels - 1u);
        if (IS_POINTWISE != 0u) {
            positions[i] = pixel * p.input_stride + first_channel;
        } else {
            uint row = pixel / p.output_width;
            uint image = row / p.output_height;
            tops[i] = int((row - image * p.output_height) * p.stride_h) - p.pad_top;
            lefts[i] = int((pixel - row * p.output_width) * p.stride_w) - p.pad_left;
            images[i] = image * p.input_height;
        }
    }
    uint taps = IS_POINTWISE != 0u ? 1u : p.kernel_height * p.kernel_width;
    const uint step = gl_WorkGroupSize.z;
    for (uint tap = 0u; tap < taps; ++tap) {
        if (IS_POINTWISE == 0u) {
            uint ky = tap / p.kernel_width;
            uint kx = tap - ky * p.kernel_width;
            [[unroll]] for (uint i = 0u; i < TILE_P; ++i) {
                int row = tops[i] + int(ky * p.dilation_h);
                int column = lefts[i] + int(kx * p.dilation_w);
                is_inside[i] = row >= 0 && row < int(p.input_height) && column >= 0 && column < int(p.input_width);
                uint position = is_inside[i] ? (images[i] + uint(row)) * p.input_width + uint(column) : 0u;
                positions[i] = position * p.input_stride + first_channel;
            }
        }
        uint c = part;
        for (; c + (DEPTH - 1u) * step < p.input_groups; c += DEPTH * step) {
            [[unroll]] for (uint d = 0u; d < DEPTH; ++d) multiply(tap, c + d * step, positions, is_inside, group);
        }
        if (DEPTH > 1u) {
            for (; c < p.input_groups; c += step) multiply(tap, c, positions, is_inside, group);
        }
    }

    if (!gather_parts()) return;
    if (TILE_P * TILE_C <= 4u) {
        [[unroll]] for (uint i = 0u; i < TILE_P * TILE_C; ++i) {
            store_result(accumulators[i], first + i / TILE_C, group + i % TILE_C * gl_WorkGroupSize.x);
        }
        return;
    }
    // A large tile has one copy of this code for each group, and the sums move up from pixel to pixel:
    // a copy for each result was most of what a software driver compiled.
    [[dont_unroll]] for (uint i = 0u; i < TILE_P; ++i) {
        [[unroll]] for (uint j = 0u; j < TILE_C; ++j) {
            store_result(accumulators[j], first + i, group + j * gl_WorkGroupSize.x);
        }
        [[unroll]] for (uint k = TILE_C; k < TILE_P * TILE_C; ++k) accumulators[k - TILE_C] = accumulators[k];
    }
}
