#version 450
#extension GL_GOOGLE_include_directive : require
// TOPK_V2, second half: the elements that the indices name.

#include "dispatch.glsl"
#include "tensor.glsl"

TENSOR_IN(0, ACT, x);
TENSOR_IN(1, u32, indices);
TENSOR_OUT(2, ACT, y);

layout(push_constant) uniform Push {
    uint num_groups;         // of y
    uint groups_per_row;
    uint x_groups_per_row;
    uint k;
} p;

void main() {
    uint i = flat_index();
    if (i >= p.num_groups) return;
    uint row = i / p.groups_per_row;
    uint column = (i - row * p.groups_per_row) * 4u;
    uvec4 index = LOAD(u32, indices, i);
    VALUE(ACT) v = VALUE(ACT)(0);
    for (uint lane = 0u; lane < 4u; ++lane) {
        if (column + lane < p.k) {
            v[lane] = LOAD(ACT, x, row * p.x_groups_per_row + (index[lane] >> 2u))[index[lane] & 3u];
        }
    }
    STORE(ACT, y, i, v);
}
