#version 450
#extension GL_GOOGLE_include_directive : require
// The same elements in rows of another length: RESHAPE where the padding moves.

#include "dispatch.glsl"
#include "tensor.glsl"

TENSOR_IN(0, ACT, x);
TENSOR_OUT(1, ACT, y);

layout(push_constant) uniform Push {
    uint num_groups;      // groups of four lanes in y
    uint y_inner;         // innermost sizes
    uint y_groups;        // groups per row
    uint x_inner;
    uint x_groups;
} p;

VALUE(ACT) element_group(uint element, out uint lane) {
    uint row = element / p.x_inner;
    uint column = element - row * p.x_inner;
    lane = column & 3u;
    return LOAD(ACT, x, row * p.x_groups + (column >> 2u));
}

void main() {
    uint i = flat_index();
    if (i >= p.num_groups) return;
    uint row = i / p.y_groups;
    uint column = (i - row * p.y_groups) * 4u;
    uint first = row * p.y_inner + column;
    // Lanes past the row's end repeat its last element: padding may hold anything, but stays in reach.
    uint last = (row + 1u) * p.y_inner - 1u;
    VALUE(ACT) v;
    for (uint k = 0u; k < 4u; ++k) {
        uint lane;
        VALUE(ACT) source = element_group(min(first + k, last), lane);
        v[k] = source[lane];
    }
    STORE(ACT, y, i, v);
}
