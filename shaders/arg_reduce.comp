#version 450
#extension GL_GOOGLE_include_directive : require
// ARG_MAX and ARG_MIN along one axis: the first position of the largest or smallest element.
//
// The invocations of one workgroup axis share each search and meet in a tree, as in reduce.comp:
// x where the axis is the innermost, else y.

#include "dispatch.glsl"
#include "tensor.glsl"

#define VEC VALUE(ACT)

layout(constant_id = 3) const uint IS_MIN = 0u;
layout(constant_id = 4) const uint IS_INNER = 0u;
// Elements of a row's last group, where the axis is the innermost; 0 means 4.
layout(constant_id = 5) const uint TAIL = 0u;

TENSOR_IN(0, ACT, x);
TENSOR_OUT(1, u32, y);

layout(push_constant) uniform Push {
    uint num_groups;       // groups of four outputs
    uint groups_per_row;   // of the output
    uint inner;            // logical innermost size of the output
    uint size;             // groups of x along the axis
    uint step;             // groups of x from one to the next
} p;

shared VEC best_values[gl_WorkGroupSize.x * gl_WorkGroupSize.y];
shared uvec4 best_positions[gl_WorkGroupSize.x * gl_WorkGroupSize.y];

struct Best {
    VEC value;
    uvec4 position;
};

const uint NOWHERE = 0xFFFFFFFFu;

// A value as the search ranks it: the larger the better. TFLite begins with element 0 and moves on
// where a comparison holds: a NaN there is never left, one elsewhere never taken.
VEC ranked(VEC v, uvec4 position) {
#ifdef INTEGER
    return IS_MIN != 0u ? ~v : v;
#else
    if (IS_MIN != 0u) v = -v;
    bvec4 is_nan = greaterThan(floatBitsToUint(v) & 0x7FFFFFFFu, uvec4(0x7F800000u));
    vec4 instead = mix(vec4(uintBitsToFloat(0xFF800000u)), vec4(uintBitsToFloat(0x7F800000u)), equal(position, uvec4(0u)));
    return mix(v, instead, is_nan);
#endif
}

void take(inout Best best, VEC value, uvec4 position) {
    bvec4 is_first = lessThan(position, best.position);
    bvec4 is_tie = equal(value, best.value);
    bvec4 is_better = greaterThan(value, best.value);
    for (uint i = 0u; i < 4u; ++i) {
        if (best.position[i] == NOWHERE || is_better[i] || (is_tie[i] && is_first[i])) {
            best.value[i] = value[i];
            best.position[i] = position[i];
        }
    }
}

Best search(uint base, uint begin, uint sharers) {
    Best best = Best(VEC(0), uvec4(NOWHERE));
    for (uint r = begin; r < p.size; r += sharers) {
        VEC v = LOAD(ACT, x, base + r * p.step);
        uvec4 position = IS_INNER != 0u ? r * 4u + uvec4(0u, 1u, 2u, 3u) : uvec4(r);
        v = ranked(v, position);
        if (IS_INNER != 0u && TAIL != 0u && r + 1u == p.size) {
            // Padding lanes repeat lane 0, which wins the tie.
            v = VEC(v.x, TAIL > 1u ? v.y : v.x, TAIL > 2u ? v.z : v.x, v.x);
        }
        take(best, v, position);
    }
    return best;
}

// The best of four lanes, in lane 0.
Best across(Best best) {
    for (uint i = 1u; i < 4u; ++i) {
        if (best.position[i] != NOWHERE) take(best, VEC(best.value[i]), uvec4(best.position[i]));
    }
    return best;
}

void main() {
    bool is_inner = IS_INNER != 0u;
    uint sharers = is_inner ? gl_WorkGroupSize.x : gl_WorkGroupSize.y;
    uint share = is_inner ? gl_LocalInvocationID.x : gl_LocalInvocationID.y;
    uint stride = is_inner ? 1u : gl_WorkGroupSize.x;
    uint mine = is_inner ? gl_LocalInvocationID.y : gl_LocalInvocationID.x;
    uint i = flat_group() * (is_inner ? gl_WorkGroupSize.y : gl_WorkGroupSize.x) + mine;

    Best best = Best(VEC(0), uvec4(NOWHERE));
    if (i < p.num_groups) {
        if (is_inner) {
            uint row = i / p.groups_per_row;
            uint column = (i - row * p.groups_per_row) * 4u;
            for (uint lane = 0u; lane < min(p.inner - column, 4u); ++lane) {
                Best one = across(search((row * p.inner + column + lane) * p.size, share, sharers));
                best.value[lane] = one.value.x;
                best.position[lane] = one.position.x;
            }
        } else {
            uint outer = i / p.step;
            best = search(outer * p.size * p.step + i - outer * p.step, share, sharers);
        }
    }
    if (sharers > 1u) {
        best_values[gl_LocalInvocationIndex] = best.value;
        best_positions[gl_LocalInvocationIndex] = best.position;
        for (uint live = sharers / 2u; live > 0u; live /= 2u) {
            barrier();
            if (share < live) {
                uint other = gl_LocalInvocationIndex + live * stride;
                VEC value = best_values[other];
                uvec4 position = best_positions[other];
                for (uint lane = 0u; lane < 4u; ++lane) {
                    if (position[lane] == NOWHERE) {
                        value[lane] = best.value[lane];
                        position[lane] = best.position[lane];
                    }
                }
                take(best, value, position);
                best_values[gl_LocalInvocationIndex] = best.value;
                best_positions[gl_LocalInvocationIndex] = best.position;
            }
        }
    }
    if (share == 0u && i < p.num_groups) STORE(u32, y, i, best.position);
}
