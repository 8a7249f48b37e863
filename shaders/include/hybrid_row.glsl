// A row of float values between the steps of a recurrent kernel, quantized as hybrid_quantize does.
//
// A kernel has `scratch`, a buffer of vec4, and the specialization constant IS_ASYMMETRIC, and defines
// WORDS_BINDING.
#ifndef HYBRID_ROW_GLSL
#define HYBRID_ROW_GLSL

#include "hybrid.glsl"
#include "tensor.glsl"

layout(set = 0, binding = WORDS_BINDING, std430) coherent buffer words_block { uint data[]; } words;

shared vec2 range_of[gl_WorkGroupSize.x];
float row_scale;   // of what is in there
int row_zero;

// Quantizes `groups` groups of scratch, of which `size` lanes count, into words from `words_at` on. The
// invocations of the workgroup have met before, and meet behind it.
void quantize_row(uint first, uint groups, uint size, uint words_at) {
    uint me = gl_LocalInvocationID.x;
    vec2 mine = vec2(0.0);
    for (uint g = me; g < groups; g += gl_WorkGroupSize.x) {
        bvec4 counts = lessThan(g * 4u + uvec4(0u, 1u, 2u, 3u), uvec4(size));
        vec4 v = mix(vec4(0.0), scratch.data[first + g], counts);
        mine = vec2(
            min(mine.x, min(min(v.x, v.y), min(v.z, v.w))), max(mine.y, max(max(v.x, v.y), max(v.z, v.w))));
    }
    range_of[me] = mine;
    for (uint live = gl_WorkGroupSize.x / 2u; live > 0u; live /= 2u) {
        barrier();
        if (me < live) {
            vec2 other = range_of[me + live];
            range_of[me] = vec2(min(range_of[me].x, other.x), max(range_of[me].y, other.y));
        }
    }
    barrier();
    vec2 range = range_of[0];
    barrier();
    row_scale = 1.0;
    row_zero = 0;
    float steps = 0.0;  // of the scale in a real 1
    precise float span = IS_ASYMMETRIC != 0u ? range.y - range.x : max(range.y, -range.x);
    if (span >= uintBitsToFloat(0x800000u)) {
        row_scale = divide_by(span, IS_ASYMMETRIC != 0u ? 255u : 127u);
        steps = IS_ASYMMETRIC != 0u ? divide_whole(1u, row_scale) : divide_whole(127u, span);
        if (IS_ASYMMETRIC != 0u) row_zero = zero_point_of(-range.x, range.y);
    }
    float lowest = IS_ASYMMETRIC != 0u ? -128.0 : -127.0;
    for (uint g = me; g < groups; g += gl_WorkGroupSize.x) {
        vec4 v = round_away(scratch.data[first + g] * steps) + float(row_zero);
        words.data[words_at + g] = pack_i8(ivec4(clamp(v, lowest, 127.0)));
    }
    memoryBarrierBuffer();
    barrier();
}

#endif
