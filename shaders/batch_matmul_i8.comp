#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
// BATCH_MATMUL of int8, as batch_matmul: each invocation makes TILE rows of four columns of one
// product. The invocations of a workgroup along y share the sum over the inner dimension.

#define TABLE_BINDING 3
#define TABLE_ID 6
#include "dispatch.glsl"
#include "quantize.glsl"
#include "table.glsl"

layout(constant_id = 3) const uint TILE = 4u;      // 1, or a multiple of 4
layout(constant_id = 4) const uint IS_A_TURNED = 0u;
layout(constant_id = 5) const uint IS_B_TURNED = 0u;

TENSOR_IN(0, i8, a);
TENSOR_IN(1, i8, b);
TENSOR_OUT(2, i8, y);

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
    int a_zero;
    int b_zero;
    int y_zero;
    int multiplier;
    int shift;
} p;

shared ivec4 partial[gl_WorkGroupSize.x * gl_WorkGroupSize.y * TILE];

ivec4 sums[TILE];

void add_block(uint a_first, uint b_first, uint row, uint group, uint k_group) {
    uint k = k_group * 4u;
    uint last = p.inner - 1u;
    ivec4 left[TILE];  // over the inner dimension
    if (IS_A_TURNED == 0u) {
        [[unroll]] for (uint i = 0u; i < TILE; ++i) {
            left[i] = LOAD(i8, a, a_first + min(row + i, p.rows - 1u) * p.a_groups + k_group);
        }
    } else {
        [[unroll]] for (uint lane = 0u; lane < 4u; ++lane) {
            uint at = a_first + min(k + lane, last) * p.a_groups + (row >> 2u);
            if (TILE == 1u) {
                left[0][lane] = LOAD(i8, a, at)[row & 3u];
            } else {
                [[unroll]] for (uint i = 0u; i < TILE; i += 4u) {
                    ivec4 v = LOAD(i8, a, min(at + (i >> 2u), a_first + p.inner * p.a_groups - 1u));
                    [[unroll]] for (uint j = 0u; j < 4u; ++j) left[i + j][lane] = v[j];
                }
            }
        }
    }
    ivec4 right[4];  // four outputs for inner index k + i
    [[unroll]] for (uint lane = 0u; lane < 4u; ++lane) {
        if (IS_B_TURNED == 0u) {
            right[lane] = LOAD(i8, b, b_first + min(k + lane, last) * p.b_groups + group);
        } else {
            uint column = min(group * 4u + lane, p.columns - 1u);
            ivec4 v = LOAD(i8, b, b_first + column * p.b_groups + k_group);
            [[unroll]] for (uint j = 0u; j < 4u; ++j) right[j][lane] = v[j];
        }
    }
    [[unroll]] for (uint j = 0u; j < 4u; ++j) right[j] = k + j < p.inner ? right[j] - p.b_zero : ivec4(0);
    [[unroll]] for (uint i = 0u; i < TILE; ++i) {
        ivec4 v = left[i] - p.a_zero;
        sums[i] += (right[0] * v.x + right[1] * v.y) + (right[2] * v.z + right[3] * v.w);
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

    [[unroll]] for (uint i = 0u; i < TILE; ++i) sums[i] = ivec4(0);
    if (is_tile) {
        uint k_groups = (p.inner + 3u) / 4u;
        for (uint k = gl_LocalInvocationID.y; k < k_groups; k += gl_WorkGroupSize.y) {
            add_block(a_first, b_first, row, group, k);
        }
    }
    if (gl_WorkGroupSize.y > 1u) {
        uint mine = gl_LocalInvocationIndex * TILE;
        [[unroll]] for (uint i = 0u; i < TILE; ++i) partial[mine + i] = sums[i];
        for (uint live = gl_WorkGroupSize.y / 2u; live > 0u; live /= 2u) {
            barrier();
            if (gl_LocalInvocationID.y < live) {
                uint other = mine + live * gl_WorkGroupSize.x * TILE;
                [[unroll]] for (uint i = 0u; i < TILE; ++i) {
                    sums[i] += partial[other + i];
                    partial[mine + i] = sums[i];
                }
            }
        }
    }
    if (!is_tile || gl_LocalInvocationID.y != 0u) return;
    // One copy of the code for all results, which then move up (conv_2d_i8).
    [[dont_unroll]] for (uint i = 0u; i < TILE; ++i) {
        if (row + i < p.rows) {
            ivec4 v = multiply_by_quantized(sums[0], ivec4(p.multiplier), ivec4(p.shift)) + p.y_zero;
            y.data[(batch * p.rows + row + i) * p.column_groups + group] =
                through_table(pack_i8(clamp(v, -128, 127)));
        }
        [[unroll]] for (uint j = 1u; j < TILE; ++j) sums[j - 1u] = sums[j];
    }
}
