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

VEC fetch(uint at, uint position) {
    VEC v = LOAD(ACT, x, at);
    if (IS_INNER != 0u) {
        if (position + 1u == p.size) {
            v = VEC(v.x, p.tail > 1u ? v.y : VEC(0).y, p.tail > 2u ? v.z : VEC(0).z, p.tail > 3u ? v.w : VEC(0).w);
        }
        if (IS_REVERSE != 0u) v = v.wzyx;
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

    VEC sum = VEC(0);
    if (sharers > 1u) {
        for (uint r = begin; r < end; ++r) {
            uint position = IS_REVERSE != 0u ? p.size - 1u - r : r;
            sum += fetch(base + position * p.step, position);
        }
        if (is_inner) sum = VEC(sum.x + sum.y + sum.z + sum.w);
        stretches[gl_LocalInvocationIndex] = sum;
        barrier();
        uint first = gl_LocalInvocationIndex - (is_inner ? share : share * gl_WorkGroupSize.x);
        sum = VEC(0);
        for (uint s = 0u; s < share; ++s) sum += stretches[first + (is_inner ? s : s * gl_WorkGroupSize.x)];
    }

    for (uint r = begin; r < end; ++r) {
        uint position = IS_REVERSE != 0u ? p.size - 1u - r : r;
        uint at = base + position * p.step;
        VEC v = fetch(at, position);
        VEC before = sum;
        if (is_inner) {
            before += VEC(VEC(0).x, v.x, v.x + v.y, v.x + v.y + v.z);
            sum = VEC(before.w + v.w);
        } else {
            sum += v;
        }
        VEC result = IS_EXCLUSIVE != 0u ? before : is_inner ? before + v : sum;
        if (is_inner && IS_REVERSE != 0u) result = result.wzyx;
#ifdef INTEGER
        STORE(ACT, y, at, result);
#else
        uint row = at / p.groups_per_row;
        STORE(ACT, y, at, epilogue(result, at, row, at - row * p.groups_per_row, p.immediates));
#endif
    }
}
