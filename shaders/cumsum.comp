#version 450
#extension GL_GOOGLE_include_directive : require
// CUMSUM along any axis. The invocations that share a line take a stretch of it each: they add up
// their stretches, then write running sums that begin with those of the stretches before.
//
// Lines run along x where the axis is not the innermost (a line is four lanes wide), else along y.

#ifdef INTEGER
#define FIRST_ID 3
#include "dispatch.glsl"
#include "tensor.glsl"
#else
#define FIRST_ID 11
#define EPILOGUE_BINDING 2
#include "dispatch.glsl"
#include "epilogue.glsl"
#endif
#define VEC VALUE(ACT)

#ifdef LONG
#include "long.glsl"
#else
VEC choose(VEC a, VEC b, bvec4 is_b) { return mix(a, b, is_b); }
VEC add(VEC a, VEC b) { return a + b; }
VEC all_lanes(VEC v, uint lane) { return VEC(v[lane]); }
VEC reversed(VEC v) { return v.wzyx; }
#endif

layout(constant_id = FIRST_ID) const uint IS_INNER = 0u;
layout(constant_id = FIRST_ID + 1) const uint IS_EXCLUSIVE = 0u;
layout(constant_id = FIRST_ID + 2) const uint IS_REVERSE = 0u;

TENSOR_IN(0, ACT, x);
TENSOR_OUT(1, ACT, y);

layout(push_constant) uniform Push {
#ifndef INTEGER
    EPILOGUE_PUSH;
#endif
    uint num_lines;
    uint size;             // groups of x along the axis
    uint step;             // groups of x from one to the next
    uint tail;             // elements of a line's last group, where the axis is the innermost
    uint groups_per_row;
} p;

shared VEC stretches[gl_WorkGroupSize.x * gl_WorkGroupSize.y];

// Sums of the lanes before each lane; of all lanes.
#ifdef LONG
const VEC NONE = Long4(uvec4(0u), uvec4(0u));
VEC one_on(VEC v) { return Long4(uvec4(0u, v.low.xyz), uvec4(0u, v.high.xyz)); }
VEC lanes_before(VEC v) {
    VEC pairs = add(v, one_on(v));
    return add(one_on(pairs), one_on(one_on(one_on(v))));
}
VEC all_of(VEC v) { return all_lanes(add(lanes_before(v), v), 3u); }
#else
const VEC NONE = VEC(0);
VEC lanes_before(VEC v) { return VEC(NONE.x, v.x, v.x + v.y, v.x + v.y + v.z); }
VEC all_of(VEC v) { return VEC(v.x + v.y + v.z + v.w); }
#endif

VEC fetch(uint at, uint position) {
    VEC v = LOAD(ACT, x, at);
    if (IS_INNER != 0u) {
        if (position + 1u == p.size) v = choose(v, NONE, greaterThanEqual(uvec4(0u, 1u, 2u, 3u), uvec4(p.tail)));
        if (IS_REVERSE != 0u) v = reversed(v);
    }
    return v;
}

void main() {
    bool is_inner = IS_INNER != 0u;
    uint sharers = is_inner ? gl_WorkGroupSize.x : gl_WorkGroupSize.y;
    uint share = is_inner ? gl_LocalInvocationID.x : gl_LocalInvocationID.y;
    uint mine = is_inner ? gl_LocalInvocationID.y : gl_LocalInvocationID.x;
    uint line = flat_group() * (is_inner ? gl_WorkGroupSize.y : gl_WorkGroupSize.x) + mine;
    bool is_line = line < p.num_lines;
    uint outer = line / p.step;
    uint base = outer * p.size * p.step + line - outer * p.step;
    uint stretch = (p.size + sharers - 1u) / sharers;
    uint begin = share * stretch;
    uint end = is_line ? min(begin + stretch, p.size) : 0u;

    VEC sum = NONE;
    if (sharers > 1u) {
        for (uint r = begin; r < end; ++r) {
            uint position = IS_REVERSE != 0u ? p.size - 1u - r : r;
            sum = add(sum, fetch(base + position * p.step, position));
        }
        if (is_inner) sum = all_of(sum);
        stretches[gl_LocalInvocationIndex] = sum;
        barrier();
        uint first = gl_LocalInvocationIndex - (is_inner ? share : share * gl_WorkGroupSize.x);
        sum = NONE;
        for (uint s = 0u; s < share; ++s) {
            sum = add(sum, stretches[first + (is_inner ? s : s * gl_WorkGroupSize.x)]);
        }
    }

    for (uint r = begin; r < end; ++r) {
        uint position = IS_REVERSE != 0u ? p.size - 1u - r : r;
        uint at = base + position * p.step;
        VEC v = fetch(at, position);
        VEC before = sum;
        if (is_inner) {
            before = add(before, lanes_before(v));
            sum = all_lanes(add(before, v), 3u);
        } else {
            sum = add(sum, v);
        }
        VEC result = before;
        if (IS_EXCLUSIVE == 0u) result = is_inner ? add(before, v) : sum;
        if (is_inner && IS_REVERSE != 0u) result = reversed(result);
#ifdef INTEGER
        STORE(ACT, y, at, result);
#else
        uint row = at / p.groups_per_row;
        STORE(ACT, y, at, epilogue(result, at, row, at - row * p.groups_per_row, p.immediates));
#endif
    }
}
