#version 450
#extension GL_GOOGLE_include_directive : require
// Float activations to int8, with a scale and a zero point for each row (hybrid.glsl). A row is what
// TFLite quantizes at once: a row of FULLY_CONNECTED, an image of a convolution.
//
// x: parts of a row; y, continued along z: rows. A workgroup quantizes a part of a row. It finds the
// range of the whole row, or joins the ranges that hybrid_range found. With -D RANGE_ONLY it is
// hybrid_range: it finds the range of its part.

#include "dispatch.glsl"
#include "hybrid.glsl"
#include "tensor.glsl"

// Ranges to join; 0 where there is no hybrid_range in front.
layout(constant_id = 3) const uint RANGES = 0u;
layout(constant_id = 4) const uint IS_ASYMMETRIC = 0u;
// Elements of a line's last group, 0 for four.
layout(constant_id = 5) const uint TAIL = 0u;

TENSOR_IN(0, ACT, x);
#ifdef RANGE_ONLY
TENSOR_OUT(1, f32, ranges);
#else
TENSOR_IN(1, f32, ranges);
TENSOR_OUT(2, i8, y);
TENSOR_OUT(3, i32, found);  // for each row: bits of the scale, zero point, zero point in all bytes
#endif

layout(push_constant) uniform Push {
    uint num_rows;
    uint row_groups;      // groups of four lanes in a row
    uint line_groups;     // of which so many share the innermost dimension
    uint part_groups;     // of a part
} p;

const uint INVOCATIONS = gl_WorkGroupSize.x;
shared vec2 partial[INVOCATIONS];

vec4 load(uint row, uint group) {
    vec4 v = LOAD(ACT, x, row * p.row_groups + group);
    if (TAIL != 0u && group % p.line_groups == p.line_groups - 1u) {
        v = mix(v.xxxx, v, lessThan(uvec4(0u, 1u, 2u, 3u), uvec4(TAIL)));
    }
    return v;
}

// Lowest and highest value of groups first to end - 1, 0 included.
vec2 range_of(uint row, uint first, uint end) {
    vec4 low = vec4(0.0);
    vec4 high = vec4(0.0);
    for (uint g = first + gl_LocalInvocationID.x; g < end; g += INVOCATIONS) {
        vec4 v = load(row, g);
        low = min(low, v);
        high = max(high, v);
    }
    vec2 mine = vec2(min(min(low.x, low.y), min(low.z, low.w)), max(max(high.x, high.y), max(high.z, high.w)));
    partial[gl_LocalInvocationID.x] = mine;
    for (uint live = INVOCATIONS / 2u; live > 0u; live /= 2u) {
        barrier();
        if (gl_LocalInvocationID.x < live) {
            vec2 other = partial[gl_LocalInvocationID.x + live];
            mine = vec2(min(mine.x, other.x), max(mine.y, other.y));
            partial[gl_LocalInvocationID.x] = mine;
        }
    }
    barrier();
    return partial[0];
}

void main() {
    uint row = gl_WorkGroupID.y + gl_WorkGroupID.z * gl_NumWorkGroups.y;
    if (row >= p.num_rows) return;
    uint first = gl_WorkGroupID.x * p.part_groups;
    uint end = min(first + p.part_groups, p.row_groups);
#ifdef RANGE_ONLY
    vec2 part = range_of(row, first, end);
    if (gl_LocalInvocationID.x == 0u) ranges.data[row * gl_NumWorkGroups.x + gl_WorkGroupID.x] = vec4(part, 0.0, 0.0);
#else
    vec2 range = vec2(0.0);
    if (RANGES == 0u) range = range_of(row, 0u, p.row_groups);
    for (uint i = 0u; i < RANGES; ++i) {
        vec2 other = ranges.data[row * RANGES + i].xy;
        range = vec2(min(range.x, other.x), max(range.y, other.y));
    }

    float scale = 1.0;
    float steps = 0.0;  // of the scale in a real 1
    int zero = 0;
    precise float size = IS_ASYMMETRIC != 0u ? range.y - range.x : max(range.y, -range.x);
    if (size >= uintBitsToFloat(0x800000u)) {
        if (IS_ASYMMETRIC != 0u) {
            scale = divide_by(size, 255u);
            steps = divide_whole(1u, scale);
            zero = zero_point_of(-range.x, range.y);
        } else {
            scale = divide_by(size, 127u);
            steps = divide_whole(127u, size);
        }
    }
    float lowest = IS_ASYMMETRIC != 0u ? -128.0 : -127.0;
    for (uint g = first + gl_LocalInvocationID.x; g < end; g += INVOCATIONS) {
        vec4 v = round_away(LOAD(ACT, x, row * p.row_groups + g) * steps) + float(zero);
        y.data[row * p.row_groups + g] = pack_i8(ivec4(clamp(v, lowest, 127.0)));
    }
    if (gl_WorkGroupID.x == 0u && gl_LocalInvocationID.x == 0u) {
        int bytes = int((uint(zero) & 0xFFu) * 0x01010101u);
        found.data[row] = ivec4(floatBitsToInt(scale), zero, bytes, 0);
    }
#endif
}
