#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
// SUM, MEAN, REDUCE_PROD, REDUCE_MAX, REDUCE_MIN, REDUCE_ANY, REDUCE_ALL over any axes; also pools
// whose window is the whole image.
//
// Neighbouring dimensions that are all kept or all reduced count as one, so at most three of each
// are left. A workgroup makes several groups of four outputs; the invocations of its other axis
// share each reduction and meet in a tree. z: slices of a reduction that a second dispatch joins.

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

#ifndef SRC
#define SRC ACT
#endif
#ifndef DST
#define DST ACT
#endif
#define VEC VALUE(ACT)

#ifdef LONG
#include "long.glsl"
#define VALUE_OF(v) long_of(v)
#else
#define VALUE_OF(v) (v)
VEC choose(VEC a, VEC b, bvec4 is_b) { return mix(a, b, is_b); }
VEC crossed(VEC v) { return v.zwxy; }
VEC swapped(VEC v) { return v.yxwz; }
#endif

layout(constant_id = FIRST_ID) const uint OP = 0u;
// 1: the innermost dimension is reduced. Then x runs along the reduction, else along the outputs.
layout(constant_id = FIRST_ID + 1) const uint IS_INNER = 0u;
// Elements of the last group of a row, where the innermost dimension is reduced; 0 means 4.
layout(constant_id = FIRST_ID + 2) const uint TAIL = 0u;

const uint OP_SUM_ = 0u;
const uint OP_PROD_ = 1u;
const uint OP_MAX_ = 2u;
const uint OP_MIN_ = 3u;

TENSOR_IN(0, SRC, x);
TENSOR_OUT(1, DST, y);

layout(push_constant) uniform Push {
#ifndef INTEGER
    EPILOGUE_PUSH;
#endif
    uint num_groups;          // groups of four outputs
    uint groups_per_row;      // of the output
    uint inner;               // logical innermost size of the output
    uint first;               // group of x where the reduced box begins
    uint kept_dims[2];        // the second and the third kept dimension
    uint kept_strides[3];     // groups of x to step
    uint reduced_dims[2];     // the second and the third reduced dimension
    uint reduced_strides[3];
    uint row_groups;          // groups of x in a row, where the innermost dimension is reduced; else 1
    uint count;               // groups of x that make up one reduction
    uint slice;               // of those, how many this dispatch takes per slice
#ifdef LONG
    uint divisor;             // of the result
#else
    float scale;              // of the result
#endif
} p;

shared VEC tree[gl_WorkGroupSize.x * gl_WorkGroupSize.y];

VEC identity() {
#ifdef LONG
    switch (OP) {
    case OP_PROD_: return long_of(1);
    case OP_MAX_: return Long4(uvec4(0u), uvec4(0x80000000u));
    case OP_MIN_: return Long4(uvec4(0xFFFFFFFFu), uvec4(0x7FFFFFFFu));
    }
    return long_of(0);
#elif defined INTEGER
    switch (OP) {
    case OP_PROD_: return VEC(1);
    case OP_MAX_: return VEC(LOWEST);
    case OP_MIN_: return VEC(HIGHEST);
    }
    return VEC(0);
#else
    switch (OP) {
    case OP_PROD_: return vec4(1.0);
    case OP_MAX_: return vec4(-3.402823466e38);  // TFLite's start: a row of -inf gives this
    case OP_MIN_: return vec4(3.402823466e38);
    }
    return vec4(0.0);
#endif
}

// Comparisons that a NaN never wins, as TFLite's reducers.
VEC combine(VEC a, VEC b) {
#ifdef LONG
    switch (OP) {
    case OP_PROD_: return multiply(a, b);
    case OP_MAX_: return choose(a, b, is_less(a, b));
    case OP_MIN_: return choose(a, b, is_less(b, a));
    }
    return add(a, b);
#else
    switch (OP) {
    case OP_PROD_: return a * b;
    case OP_MAX_: return mix(a, b, greaterThan(b, a));
    case OP_MIN_: return mix(a, b, lessThan(b, a));
    }
    return a + b;
#endif
}

uint strided(uint i, uint dim1, uint dim2, uint strides[3]) {
    uint at = 0u;
    if (dim2 != 1u) {
        uint q = i / dim2;
        at += (i - q * dim2) * strides[2];
        i = q;
    }
    if (dim1 != 1u) {
        uint q = i / dim1;
        at += (i - q * dim1) * strides[1];
        i = q;
    }
    return at + i * strides[0];
}

uint reduced_at(uint r) {
    uint column = 0u;
    if (IS_INNER != 0u && p.row_groups != 1u) {
        uint q = r / p.row_groups;
        column = r - q * p.row_groups;
        r = q;
    }
    return strided(r, p.reduced_dims[0], p.reduced_dims[1], p.reduced_strides) + column;
}

VEC masked(VEC v, uint r) {
    if (TAIL != 0u && (r + 1u) % p.row_groups == 0u) {
        v = choose(v, identity(), greaterThanEqual(uvec4(0u, 1u, 2u, 3u), uvec4(TAIL)));
    }
    return v;
}

VEC reduce_from(uint base, uint begin, uint end, uint step) {
    VEC total = identity();
    for (uint r = begin; r < end; r += step) {
        VEC v = VALUE_OF(LOAD(SRC, x, base + reduced_at(r)));
        total = combine(total, IS_INNER != 0u ? masked(v, r) : v);
    }
    return total;
}

// One output of four, for a reduction that takes in the lanes.
VEC lanes_from(uint output_index, uint begin, uint end, uint step) {
    uint base = p.first + strided(output_index, p.kept_dims[0], p.kept_dims[1], p.kept_strides);
    VEC total = reduce_from(base, begin, end, step);
    total = combine(total, crossed(total));
    return combine(total, swapped(total));
}

void main() {
    bool is_inner = IS_INNER != 0u;
    uint sharers = is_inner ? gl_WorkGroupSize.x : gl_WorkGroupSize.y;
    uint share = is_inner ? gl_LocalInvocationID.x : gl_LocalInvocationID.y;
    uint stride = is_inner ? 1u : gl_WorkGroupSize.x;
    uint mine = is_inner ? gl_LocalInvocationID.y : gl_LocalInvocationID.x;
    uint i = flat_group() * (is_inner ? gl_WorkGroupSize.y : gl_WorkGroupSize.x) + mine;
    uint row = i / p.groups_per_row;
    uint group = i - row * p.groups_per_row;
    uint begin = gl_WorkGroupID.z * p.slice;
    uint end = min(begin + p.slice, p.count);
    begin += share;

    VEC total = identity();
    if (i < p.num_groups) {
        if (is_inner) {
            uint first = row * p.inner + group * 4u;
            uint lanes = p.inner - group * 4u;
            // A loop, not four copies: a driver reads them all, also for a reduction without lanes.
            [[dont_unroll]] for (uint lane = 0u; lane < min(lanes, 4u); ++lane) {
                VEC result = lanes_from(first + lane, begin, end, sharers);
                total = choose(total, result, equal(uvec4(lane), uvec4(0u, 1u, 2u, 3u)));
            }
        } else {
            uint base = p.first + strided(row, p.kept_dims[0], p.kept_dims[1], p.kept_strides) + group;
            total = reduce_from(base, begin, end, sharers);
        }
    }
    if (sharers > 1u) {
        tree[gl_LocalInvocationIndex] = total;
        for (uint live = sharers / 2u; live > 0u; live /= 2u) {
            barrier();
            if (share < live) {
                total = combine(total, tree[gl_LocalInvocationIndex + live * stride]);
                tree[gl_LocalInvocationIndex] = total;
            }
        }
    }
    if (share != 0u || i >= p.num_groups) return;
    uint at = gl_WorkGroupID.z * p.num_groups + i;
#ifdef LONG
    if (p.divisor > 1u) total = divided(total, p.divisor);
#endif
#ifdef NARROW
    STORE(DST, y, at, ivec4(total.low));
#elif defined INTEGER
    STORE(DST, y, at, total);
#else
    STORE(DST, y, at, epilogue(total * p.scale, i, row, group, p.immediates));
#endif
}
