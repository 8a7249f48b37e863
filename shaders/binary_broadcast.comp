#version 450
#extension GL_GOOGLE_include_directive : require
// A binary operator on two tensors that broadcast in any way: rank up to 6, either operand smaller.
//
// Each invocation makes four lanes of one output row. An operand is found through its own row
// stride per dimension, zero where it broadcasts; an innermost dimension of 1 repeats lane 0,
// never a padding lane.

#define EPILOGUE_BINDING 3
#include "dispatch.glsl"
#include "epilogue.glsl"

layout(constant_id = 11) const uint BINARY_OP = 0u;

TENSOR_IN(0, ACT, a);
TENSOR_IN(1, ACT, b);
TENSOR_OUT(2, ACT, y);

layout(push_constant) uniform Push {
    EPILOGUE_PUSH;
    uint num_groups;
    uint groups_per_row;
    uint dims[5];        // output dimensions 0..4 of six, the outermost first; dims[0] is not read
    uint a_strides[5];   // groups to step in `a`; 0 where it broadcasts
    uint b_strides[5];
    uint splat;          // bit 0: a's innermost dimension is 1; bit 1: b's
} p;

void main() {
    uint i = flat_index();
    if (i >= p.num_groups) return;
    uint row = i / p.groups_per_row;
    uint group = i - row * p.groups_per_row;
    uint a_group = 0u;
    uint b_group = 0u;
    uint rest = row;
    for (int d = 4; d >= 0; --d) {
        uint quotient = d == 0 ? 0u : rest / p.dims[d];
        uint coordinate = rest - quotient * p.dims[d];
        a_group += coordinate * p.a_strides[d];
        b_group += coordinate * p.b_strides[d];
        rest = quotient;
    }
    vec4 av = (p.splat & 1u) != 0u ? LOAD(ACT, a, a_group).xxxx : LOAD(ACT, a, a_group + group);
    vec4 bv = (p.splat & 2u) != 0u ? LOAD(ACT, b, b_group).xxxx : LOAD(ACT, b, b_group + group);
    STORE(ACT, y, i, epilogue(binary(BINARY_OP, av, bv), i, row, group, p.immediates));
}
