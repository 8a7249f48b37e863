#version 450
#extension GL_GOOGLE_include_directive : require
// REVERSE_SEQUENCE: along one dimension, the first elements in reverse order; how many depends on
// the coordinate along another.
//
// x and y are the same shape. The two dimensions are found through their strides, in groups where
// neither is the innermost, in elements of the padded layout otherwise.

#include "dispatch.glsl"
#include "lanes.glsl"

layout(constant_id = 3) const uint LANES = 0u;  // 1: one of the two is the innermost dimension

LANES_IN(0, x);
layout(set = 0, binding = 1, std430) readonly buffer lengths_block { int data[]; } lengths;
LANES_OUT(2, y);

layout(push_constant) uniform Push {
    uint num_groups;
    uint seq_length;    // longest a sequence may be
    uint seq_size;      // the same, or with padding where it is the innermost dimension
    uint seq_stride;
    uint batch_size;
    uint batch_stride;
    uint y_lanes;       // elements in a row, and its groups
    uint y_groups;
} p;

uint source(uint at) {
    uint batch = at / p.batch_stride % p.batch_size;
    int position = int(at / p.seq_stride % p.seq_size);
    int mirrored = min(lengths.data[batch], int(p.seq_length)) - 1 - position;
    return mirrored < 0 ? at : at + uint(mirrored - position) * p.seq_stride;
}

void main() {
    uint i = flat_index();
    if (i >= p.num_groups) return;
    if (LANES == 0u) {
        y.data[i] = x.data[source(i)];
        return;
    }
    uint first = i % p.y_groups * 4u;
    QUAD v;
    for (uint k = 0u; k < 4u; ++k) {
        uint lane = min(first + k, p.y_lanes - 1u);
        v[k] = LOAD_LANE(x, source(i * 4u + lane - first));
    }
    STORE_LANES(y, i, v);
}
