#version 450
#extension GL_GOOGLE_include_directive : require
// TRANSPOSE where the innermost dimension changes: one workgroup turns a tile through shared memory,
// so that both sides are read and written in whole groups.
//
// Columns are the innermost dimension of x, rows the one that is innermost in y; the others are
// counted through. Strides are in groups of four lanes.

#include "dispatch.glsl"
#include "lanes.glsl"

// Elements of a tile along both; multiples of 4.
layout(constant_id = 3) const uint TILE_ROWS = 32u;
layout(constant_id = 4) const uint TILE_COLUMNS = 32u;

const uint PITCH = TILE_COLUMNS + 1u;  // a column then lies in as many banks as a row

LANES_IN(0, x);
LANES_OUT(1, y);

layout(push_constant) uniform Push {
    uint num_tiles;
    uint row_tiles;       // tiles along the rows, then along the columns
    uint column_tiles;
    uint rows;
    uint columns;
    uint x_row;           // from row to row of x
    uint y_column;        // from column to column of y
    uint num_dims;        // in use below, the outermost first
    uint dims[4];
    uint x_strides[4];
    uint y_strides[4];
} p;

shared uint tile[TILE_ROWS * PITCH];

void main() {
    uint rest = flat_group();
    if (rest >= p.num_tiles) return;  // the same for the whole workgroup
    uint quotient = rest / p.row_tiles;
    uint row0 = (rest - quotient * p.row_tiles) * TILE_ROWS;
    rest = quotient / p.column_tiles;
    uint column0 = (quotient - rest * p.column_tiles) * TILE_COLUMNS;
    uint from = row0 * p.x_row + column0 / 4u;
    uint to = column0 * p.y_column + row0 / 4u;
    for (uint d = p.num_dims; d-- > 0u;) {
        quotient = d == 0u ? 0u : rest / p.dims[d];
        uint coordinate = rest - quotient * p.dims[d];
        from += coordinate * p.x_strides[d];
        to += coordinate * p.y_strides[d];
        rest = quotient;
    }
    const uint row_groups = TILE_COLUMNS / 4u;
    for (uint i = gl_LocalInvocationID.x; i < TILE_ROWS * row_groups; i += gl_WorkGroupSize.x) {
        uint row = i / row_groups;
        uint group = i - row * row_groups;
        if (row0 + row < p.rows && column0 + group * 4u < p.columns) {
            uvec4 v = LOAD_LANES(x, from + row * p.x_row + group);
            for (uint k = 0u; k < 4u; ++k) tile[row * PITCH + group * 4u + k] = v[k];
        }
    }
    barrier();
    const uint column_groups = TILE_ROWS / 4u;
    for (uint i = gl_LocalInvocationID.x; i < TILE_COLUMNS * column_groups; i += gl_WorkGroupSize.x) {
        uint column = i / column_groups;
        uint group = i - column * column_groups;
        if (column0 + column < p.columns && row0 + group * 4u < p.rows) {
            uvec4 v;
            for (uint k = 0u; k < 4u; ++k) v[k] = tile[(group * 4u + k) * PITCH + column];
            STORE_LANES(y, to + column * p.y_column + group, v);
        }
    }
}
