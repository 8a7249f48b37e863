#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
// BATCH_MATMUL: each invocation makes TILE rows of four columns of one product. The invocations of a
// workgroup along y share the sum over the inner dimension and meet in shared memory.
//
// Either matrix may be stored transposed; four by four blocks are turned in registers.

#define EPILOGUE_BINDING 3
#include "dispatch.glsl"
#include "epilogue.glsl"

#ifndef DST
#define DST ACT
#endif

layout(constant_id = 11) const uint TILE = 4u;      // 1, or a multiple of 4
layout(constant_id = 12) const uint IS_A_TURNED = 0u;
layout(constant_id = 13) const uint IS_B_TURNED = 0u;

TENSOR_IN(0, ACT, a);
TENSOR_IN(1, ACT, b);
TENSOR_OUT(2, DST, y);

layout(push_constant) uniform Push {
    EPILOGUE_PUSH;
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
} p;

shared vec4 partial[gl_WorkGroupSize.x * gl_WorkGroupSize.y * TILE];

vec4 sums[TILE];

void add_block(uint a_first, uint b_first, uint row, uint group, uint k_group) {
    uint k = k_group * 4u;
    uint last = p.inner - 1u;
    vec4 left[TILE];  // over the inner dimension
    if (IS_A_TURNED == 0u) {
        [[unroll]] for (uint i = 0u; i < TILE; ++i) {
            left[i] = LOAD(ACT, a, a_first + min(row + i, p.rows - 1u) * p.a_groups + k_group);
        }
    } else {
        [[unroll]] for (uint lane = 0u; lane < 4u; ++lane) {
            uint at = a_first + min(k + lane, last) * p.a_groups + (row >> 2u);
            if (TILE == 1u) {
                left[0][lane] = LOAD(ACT, a, at)[row & 3u];
            } else {
                [[unroll]] for (uint i = 0u; i < TILE; i += 4u) {
                    vec4 v = LOAD(ACT, a, min(at + (i >> 2u), a_first + p.inner * p.a_groups - 1u));
                    [[unroll]] for (uint j = 0u; j < 4u; ++j) left[i + j][lane] = v[j];
                }
            }
        }
    }
    mat4 right;  // column i: four outputs for inner index k + i
    if (IS_B_TURNED == 0u) {
        [[unroll]] for (uint lane = 0u; lane < 4u; ++lane) {
            right[lane] = LOAD(ACT, b, b_first + min(k + lane, last) * p.b_groups + group);
        }
    } else {
        mat4 turned;
        [[unroll]] for (uint lane = 0u; lane < 4u; ++lane) {
            uint column = min(group * 4u + lane, p.columns - 1u);
            turned[lane] = LOAD(ACT, b, b_first + column * p.b_groups + k_group);
        }
        right = transpose(turned);
    }
    uint live = p.inner - k;
    if (live < 4u) {
        // Padding lanes may hold NaN, which a zero on the other side would not silence.
        bvec4 is_live = lessThan(uvec4(0u, 1u, 2u, 3u), uvec4(live));
        [[unroll]] for (uint i = 0u; i < TILE; ++i) left[i] = mix(vec4(0.0), left[i], is_live);
        [[unroll]] for (uint lane = 1u; lane < 4u; ++lane) {
            if (lane >= live) right[lane] = vec4(0.0);
        }
    }
    [[unroll]] for (uint i = 0u; i < TILE; ++i) sums[i] += right * left[i];
}

// Finish and store a sum of the tile, unless it lies below the last row.
void store_result(vec4 sum, uint batch, uint row, uint group) {
    if (row >= p.rows) return;
    uint out_row = batch * p.rows + row;
    uint at = out_row * p.column_groups + group;
    STORE(DST, y, at, epilogue(sum, at, out_row, group, p.immediates));
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

    [[unroll]] for (uint i = 0u; i < TILE; ++i) sums[i] = vec4(0.0);
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
    if (TILE <= 4u) {
        [[unroll]] for (uint i = 0u; i < TILE; ++i) store_result(sums[i], batch, row + i, group);
        return;
    }
    // A large tile has one copy of this code, and the sums move up: drivers compile it faster.
    [[dont_unroll]] for (uint i = 0u; i < TILE; ++i) {
        store_result(sums[0], batch, row + i, group);
        [[unroll]] for (uint k = 1u; k < TILE; ++k) sums[k - 1u] = sums[k];
    }
}
