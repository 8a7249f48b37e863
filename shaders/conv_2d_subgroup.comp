#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_ballot : require
// CONV_2D as conv_2d, for software drivers, which load lane by lane: that is most of their time. The
// eight invocations of a subgroup lie along x, the output channels, and read the same inputs, so each
// loads every eighth pixel's and they pass them on. The sum is never split; grouped convolutions, whose
// channels read different inputs, are conv_2d's.
//
// x: output channels; y: tiles of pixels, which continue along workgroups of z.

#define EPILOGUE_BINDING 4
#include "dispatch.glsl"
#include "conv_product.glsl"

layout(constant_id = 11) const uint TILE_P = 8u;  // a multiple of eight
layout(constant_id = 12) const uint TILE_C = 1u;
// Input channels modulo 4: the last group's padding lanes are masked.
layout(constant_id = 13) const uint TAIL = 0u;
// 1x1, stride 1, no padding: a pixel's input is where its output is.
layout(constant_id = 14) const uint IS_POINTWISE = 0u;

// Pixels that an invocation loads, of the TILE_P that it needs.
const uint OWN = TILE_P / 8u;
const uint WEIGHTS = 4u * TILE_C;  // of a step along the input channels

vec4 accumulators[TILE_P * TILE_C];
vec4 w[WEIGHTS];

void add_products(uint i, vec4 value) {
    [[unroll]] for (uint j = 0u; j < TILE_C; ++j) {
        vec4 sum = accumulators[i * TILE_C + j];
        sum += value.x * w[j];
        sum += value.y * w[TILE_C + j];
        sum += value.z * w[2u * TILE_C + j];
        sum += value.w * w[3u * TILE_C + j];
        accumulators[i * TILE_C + j] = sum;
    }
}

void main() {
    uint group = gl_WorkGroupID.x * gl_WorkGroupSize.x * TILE_C + gl_LocalInvocationID.x;
    uint tile = (gl_WorkGroupID.y + gl_WorkGroupID.z * gl_NumWorkGroups.y) * gl_WorkGroupSize.y + gl_LocalInvocationID.y;
    uint first = tile * TILE_P;
    // No invocation leaves before the end, whatever lies beyond the output: others need what it loads.

    [[unroll]] for (uint i = 0u; i < TILE_P * TILE_C; ++i) accumulators[i] = vec4(0.0);

    uint positions[OWN];
    bool is_inside[OWN];
    int tops[OWN];
    int lefts[OWN];
    uint images[OWN];
    [[unroll]] for (uint i = 0u; i < OWN; ++i) {
        uint pixel = min(first + i * 8u + gl_SubgroupInvocationID, p.num_pixels - 1u);
        if (IS_POINTWISE != 0u) {
            positions[i] = pixel * p.input_stride;
        } else {
            uint row = pixel / p.output_width;
            uint image = row / p.output_height;
            tops[i] = int((row - image * p.output_height) * p.stride_h) - p.pad_top;
            lefts[i] = int((pixel - row * p.output_width) * p.stride_w) - p.pad_left;
            images[i] = image * p.input_height;
        }
    }
    uint taps = IS_POINTWISE != 0u ? 1u : p.kernel_height * p.kernel_width;
    uint weights_at = 0u;
    for (uint tap = 0u; tap < taps; ++tap) {
        if (IS_POINTWISE == 0u) {
            uint ky = tap / p.kernel_width;
            uint kx = tap - ky * p.kernel_width;
            [[unroll]] for (uint i = 0u; i < OWN; ++i) {
                int row = tops[i] + int(ky * p.dilation_h);
                int column = lefts[i] + int(kx * p.dilation_w);
                is_inside[i] = row >= 0 && row < int(p.input_height) && column >= 0 && column < int(p.input_width);
                uint position = is_inside[i] ? (images[i] + uint(row)) * p.input_width + uint(column) : 0u;
                positions[i] = position * p.input_stride;
            }
        }
        for (uint channel = 0u; channel < p.input_groups; ++channel) {
            vec4 own[OWN];
            // A padding lane may hold NaN, which a zero weight would not silence.
            bvec4 is_live = greaterThan(uvec4(TAIL), uvec4(0u, 1u, 2u, 3u));
            if (TAIL == 0u || channel != p.input_groups - 1u) is_live = bvec4(true);
            [[unroll]] for (uint i = 0u; i < OWN; ++i) {
                vec4 v = LOAD(ACT, x, positions[i] + channel);
                if (TAIL != 0u) v = mix(vec4(0.0), v, is_live);
                own[i] = IS_POINTWISE != 0u || is_inside[i] ? v : vec4(0.0);
            }
            // All weights first: each sum is then read and written once, as most of them are not in registers.
            [[unroll]] for (uint k = 0u; k < WEIGHTS; ++k) {
                uint g = min(group + k % TILE_C * gl_WorkGroupSize.x, p.output_groups - 1u);
                w[k] = LOAD(WEIGHT, weights, weights_at + k / TILE_C * p.output_groups + g);
            }
            weights_at += 4u * p.output_groups;
            [[unroll]] for (uint i = 0u; i < OWN; ++i) {
                // The subgroup's invocation has to be a constant.
                add_products(i * 8u, subgroupBroadcast(own[i], 0u));
                add_products(i * 8u + 1u, subgroupBroadcast(own[i], 1u));
                add_products(i * 8u + 2u, subgroupBroadcast(own[i], 2u));
                add_products(i * 8u + 3u, subgroupBroadcast(own[i], 3u));
                add_products(i * 8u + 4u, subgroupBroadcast(own[i], 4u));
                add_products(i * 8u + 5u, subgroupBroadcast(own[i], 5u));
                add_products(i * 8u + 6u, subgroupBroadcast(own[i], 6u));
                add_products(i * 8u + 7u, subgroupBroadcast(own[i], 7u));
            }
        }
    }

    // One copy of this code for each group, and the sums move up from pixel to pixel; see conv_2d.comp.
    [[dont_unroll]] for (uint i = 0u; i < TILE_P; ++i) {
        [[unroll]] for (uint j = 0u; j < TILE_C; ++j) {
            store_result(accumulators[j], first + i, group + j * gl_WorkGroupSize.x);
        }
        [[unroll]] for (uint k = TILE_C; k < TILE_P * TILE_C; ++k) accumulators[k - TILE_C] = accumulators[k];
    }
}
