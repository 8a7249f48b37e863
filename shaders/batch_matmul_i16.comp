#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
// BATCH_MATMUL of int16 with int16 or int8, as batch_matmul: each invocation makes TILE rows of four columns of one product.
// The invocations of a workgroup along y share the sum over the inner dimension. Zero points are 0.
// RIGHT, set by -D: storage of the right matrices.
//
// A product has 31 bits, so the left factor is taken apart into bytes: sums of either byte's products
// stay within 32 bits for SAFE groups.

#include "dispatch.glsl"
#include "wide.glsl"

layout(constant_id = 3) const uint TILE = 4u;      // 1, or a multiple of 4
layout(constant_id = 4) const uint IS_A_TURNED = 0u;
layout(constant_id = 5) const uint IS_B_TURNED = 0u;
const uint SAFE = 32u;

TENSOR_IN(0, i16, a);
TENSOR_IN(1, RIGHT, b);
TENSOR_OUT(2, i16, y);

layout(push_constant) uniform Push {
    uint num_tiles;
    uint column_groups;
    uint row_tiles;
    uint rows;
    uint columns;
    uint inner;
    uint a_groups;       // groups in a stored row of a
    uint b_groups;
    uint dims[3];        // of the output's batches, without the outermost
    uint a_strides[4];   // groups from matrix to matrix; 0 where one is broadcast
    uint b_strides[4];
    uint multiplier;
    int shift;
} p;

const uint SHARED = gl_WorkGroupSize.x * gl_WorkGroupSize.y * TILE;
shared uvec4 partial_low[SHARED];
shared ivec4 partial_high[SHARED];

ivec4 lower[TILE];   // sums of products of the left factor's low bytes
ivec4 upper[TILE];
uvec4 lows[TILE];    // sums of both, in two words
ivec4 highs[TILE];

void spill() {
    [[unroll]] for (uint i = 0u; i < TILE; ++i) {
        Wide total = Wide(lows[i], highs[i]);
        add(total, lower[i]);
        add_shifted(total, upper[i], 8);
        lows[i] = total.low;
        highs[i] = total.high;
        lower[i] = ivec4(0);
        upper[i] = ivec4(0);
    }
}

void add_block(uint a_first, uint b_first, uint row, uint group, uint k_group) {
    uint k = k_group * 4u;
    uint last = p.inner - 1u;
    ivec4 left[TILE];  // over the inner dimension
    if (IS_A_TURNED == 0u) {
        [[unroll]] for (uint i = 0u; i < TILE; ++i) {
            left[i] = LOAD(i16, a, a_first + min(row + i, p.rows - 1u) * p.a_groups + k_group);
        }
    } else {
        [[unroll]] for (uint lane = 0u; lane < 4u; ++lane) {
            uint at = a_first + min(k + lane, last) * p.a_groups + (row >> 2u);
            if (TILE == 1u) {
                left[0][lane] = LOAD(i16, a, at)[row & 3u];
            } else {
                [[unroll]] for (uint i = 0u; i < TILE; i += 4u) {
                    ivec4 v = LOAD(i16, a, min(at + (i >> 2u), a_first + p.inner * p.a_groups - 1u));
                    [[unroll]] for (uint j = 0u; j < 4u; ++j) left[i + j][lane] = v[j];
                }
            }
        }
    }
    ivec4 right[4];  // four outputs for inner index k + i
    [[unroll]] for (uint lane = 0u; lane < 4u; ++lane) {
        if (IS_B_TURNED == 0u) {
            right[lane] = LOAD(RIGHT, b, b_first + min(k + lane, last) * p.b_groups + group);
        } else {
            uint column = min(group * 4u + lane, p.columns - 1u);
            ivec4 v = LOAD(RIGHT, b, b_first + column * p.b_groups + k_group);
            [[unroll]] for (uint j = 0u; j < 4u; ++j) right[j][lane] = v[j];
        }
    }
    [[unroll]] for (uint j = 0u; j < 4u; ++j) right[j] = k + j < p.inner ? right[j] : ivec4(0);
    [[unroll]] for (uint i = 0u; i < TILE; ++i) {
        ivec4 v = left[i] & 0xFF;
        lower[i] += (right[0] * v.x + right[1] * v.y) + (right[2] * v.z + right[3] * v.w);
        v = left[i] >> 8;
        upper[i] += (right[0] * v.x + right[1] * v.y) + (right[2] * v.z + right[3] * v.w);
    }
}

void main() {
    uint index = flat_group() * gl_WorkGroupSize.x + gl_LocalInvocationID.x;
    bool is_tile = index < p.num_tiles;
    uint rest = index / p.column_groups;
    uint group = index - rest * p.column_groups;
    uint batch = rest / p.row_tiles;
    uint row = (rest - batch * p.row_tiles) * TILE;

    uint a_first = 0u;
    uint b_first = 0u;
    uint outer = batch;
    for (int d = 3; d >= 0; --d) {
        uint quotient = d == 0 ? 0u : outer / p.dims[d - 1];
        uint coordinate = d == 0 ? outer : outer - quotient * p.dims[d - 1];
        a_first += coordinate * p.a_strides[d];
        b_first += coordinate * p.b_strides[d];
        outer = quotient;
    }

    [[unroll]] for (uint i = 0u; i < TILE; ++i) {
        lower[i] = ivec4(0);
        upper[i] = ivec4(0);
        lows[i] = uvec4(0u);
        highs[i] = ivec4(0);
    }
    if (is_tile) {
        uint k_groups = (p.inner + 3u) / 4u;
        uint done = 0u;
        for (uint k = gl_LocalInvocationID.y; k < k_groups; k += gl_WorkGroupSize.y) {
            add_block(a_first, b_first, row, group, k);
            if (++done % SAFE == 0u) spill();
        }
        spill();
    }
    if (gl_WorkGroupSize.y > 1u) {
        uint mine = gl_LocalInvocationIndex * TILE;
        [[unroll]] for (uint i = 0u; i < TILE; ++i) {
            partial_low[mine + i] = lows[i];
            partial_high[mine + i] = highs[i];
        }
        for (uint live = gl_WorkGroupSize.y / 2u; live > 0u; live /= 2u) {
            barrier();
            if (gl_LocalInvocationID.y < live) {
                uint other = mine + live * gl_WorkGroupSize.x * TILE;
                [[unroll]] for (uint i = 0u; i < TILE; ++i) {
                    Wide total = Wide(lows[i], highs[i]);
                    add(total, partial_low[other + i], partial_high[other + i]);
                    lows[i] = total.low;
                    highs[i] = total.high;
                    partial_low[mine + i] = total.low;
                    partial_high[mine + i] = total.high;
                }
            }
        }
    }
    if (!is_tile || gl_LocalInvocationID.y != 0u) return;
    // One copy of the code for all results, which then move up (conv_2d_i8).
    [[dont_unroll]] for (uint i = 0u; i < TILE; ++i) {
        if (row + i < p.rows) {
            ivec4 v;
            for (int k = 0; k < 4; ++k) v[k] = scale_reduced(lows[0][k], highs[0][k], p.multiplier, p.shift);
            y.data[(batch * p.rows + row + i) * p.column_groups + group] = pack_i16(clamp(v, -32768, 32767));
        }
        [[unroll]] for (uint j = 1u; j < TILE; ++j) {
            lows[j - 1u] = lows[j];
            highs[j - 1u] = highs[j];
        }
    }
}
