#version 450
#extension GL_GOOGLE_include_directive : require
// ARG_MAX and ARG_MIN along one axis: the first position of the largest or smallest element.
//
// The invocations of one workgroup axis share each search and meet in a tree, as in reduce.comp:
// x where the axis is the innermost, else y.

#include "dispatch.glsl"
#include "keys.glsl"
#include "tensor.glsl"

layout(constant_id = 3) const uint IS_MIN = 0u;
layout(constant_id = 4) const uint IS_INNER = 0u;

TENSOR_IN(0, ACT, x);
TENSOR_OUT(1, u32, y);

layout(push_constant) uniform Push {
    uint num_groups;       // groups of four outputs
    uint groups_per_row;   // of the output
    uint inner;            // logical innermost size of the output
    uint size;             // groups of x along the axis
    uint step;             // groups of x from one to the next
    uint tail;             // elements of a row's last group, where the axis is the innermost
} p;

shared uvec4 best_keys[gl_WorkGroupSize.x * gl_WorkGroupSize.y];
shared uvec4 best_positions[gl_WorkGroupSize.x * gl_WorkGroupSize.y];

// The largest key so far and its first position; begins below every key, behind every position.
struct Best {
    uvec4 key;
    uvec4 position;
};
const Best NONE = Best(uvec4(0u), uvec4(0xFFFFFFFFu));

void take(inout Best best, uvec4 key, uvec4 position) {
    bvec4 is_larger = greaterThan(key, best.key);
    uvec4 is_earlier_tie = uvec4(equal(key, best.key)) & uvec4(lessThan(position, best.position));
    bvec4 is_better = notEqual(uvec4(is_larger) | is_earlier_tie, uvec4(0u));
    best.key = mix(best.key, key, is_better);
    best.position = mix(best.position, position, is_better);
}

// TFLite ranks a NaN below everything, in both searches: its key is 0.
uvec4 ranked(uint at) {
    VALUE(ACT) v = LOAD(ACT, x, at);
    return IS_MIN != 0u ? ~order_keys(v, 0xFFFFFFFFu) : order_keys(v, 0u);
}

Best search(uint base, uint begin, uint sharers) {
    Best best = NONE;
    for (uint r = begin; r < p.size; r += sharers) {
        uvec4 key = ranked(base + r * p.step);
        if (IS_INNER != 0u) {
            uvec4 position = r * 4u + uvec4(0u, 1u, 2u, 3u);
            if (r + 1u == p.size) {
                bvec4 is_padding = greaterThanEqual(uvec4(0u, 1u, 2u, 3u), uvec4(p.tail));
                key = mix(key, uvec4(0u), is_padding);
                position = mix(position, NONE.position, is_padding);
            }
            take(best, key, position);
        } else {
            take(best, key, uvec4(r));
        }
    }
    return best;
}

// The best of four lanes, in lane 0.
Best across(Best best) {
    take(best, best.key.zwxy, best.position.zwxy);
    take(best, best.key.yxwz, best.position.yxwz);
    return best;
}

void main() {
    bool is_inner = IS_INNER != 0u;
    uint sharers = is_inner ? gl_WorkGroupSize.x : gl_WorkGroupSize.y;
    uint share = is_inner ? gl_LocalInvocationID.x : gl_LocalInvocationID.y;
    uint stride = is_inner ? 1u : gl_WorkGroupSize.x;
    uint mine = is_inner ? gl_LocalInvocationID.y : gl_LocalInvocationID.x;
    uint i = flat_group() * (is_inner ? gl_WorkGroupSize.y : gl_WorkGroupSize.x) + mine;

    Best best = NONE;
    if (i < p.num_groups) {
        if (is_inner) {
            uint row = i / p.groups_per_row;
            uint column = (i - row * p.groups_per_row) * 4u;
            for (uint lane = 0u; lane < min(p.inner - column, 4u); ++lane) {
                Best one = across(search((row * p.inner + column + lane) * p.size, share, sharers));
                best.key[lane] = one.key.x;
                best.position[lane] = one.position.x;
            }
        } else {
            uint outer = i / p.step;
            best = search(outer * p.size * p.step + i - outer * p.step, share, sharers);
        }
    }
    if (sharers > 1u) {
        best_keys[gl_LocalInvocationIndex] = best.key;
        best_positions[gl_LocalInvocationIndex] = best.position;
        for (uint live = sharers / 2u; live > 0u; live /= 2u) {
            barrier();
            if (share < live) {
                uint other = gl_LocalInvocationIndex + live * stride;
                take(best, best_keys[other], best_positions[other]);
                best_keys[gl_LocalInvocationIndex] = best.key;
                best_positions[gl_LocalInvocationIndex] = best.position;
            }
        }
    }
    if (share == 0u && i < p.num_groups) STORE(u32, y, i, best.position);
}
