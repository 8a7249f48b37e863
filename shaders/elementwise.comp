#version 450
#extension GL_GOOGLE_include_directive : require
// A chain of elementwise operators with no producer to join: load, epilogue, store.

#define EPILOGUE_BINDING 2
#include "dispatch.glsl"
#include "epilogue.glsl"

#ifndef DST
#define DST ACT
#endif

TENSOR_IN(0, ACT, x);
TENSOR_OUT(1, DST, y);

layout(push_constant) uniform Push {
    EPILOGUE_PUSH;
    uint num_groups;      // groups of four lanes in the tensor
    uint groups_per_row;
} p;

void main() {
    uint i = flat_index();
    if (i >= p.num_groups) return;
    uint row = i / p.groups_per_row;
    STORE(DST, y, i, epilogue(LOAD(ACT, x, i), i, row, i - row * p.groups_per_row, p.immediates));
}
