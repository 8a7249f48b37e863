#version 450
#extension GL_GOOGLE_include_directive : require
// CAST between element types that the device stores differently.

#include "dispatch.glsl"
#include "long.glsl"
#include "tensor.glsl"

layout(constant_id = 3) const uint MODE = 0u;
const uint TO_BOOL = 1u;   // 0 or 1 by whether the element is zero
const uint SATURATE = 2u;  // 64 bits that don't fit 32 become the nearest that do, instead of wrapping

TENSOR_IN(0, IN, x);
TENSOR_OUT(1, OUT, y);

layout(push_constant) uniform Push {
    uint num_groups;
} p;

vec4 to_float(vec4 v) { return v; }
vec4 to_float(ivec4 v) { return vec4(v); }
// SwiftShader rounds large unsigned numbers twice. Both halves are exact, and their sum rounds once.
vec4 to_float(uvec4 v) { return vec4(v >> 16) * 65536.0 + vec4(v & 0xFFFFu); }
vec4 to_float(Long4 v) {
    bvec4 negative = is_negative(v);
    Long4 magnitude = absolute(v);
    // The 32 bits from the highest set one on, the last of them standing for all that follow: float32
    // has 24, so the conversion rounds once.
    ivec4 shift = 31 - findMSB(magnitude.high | uvec4(equal(magnitude.high, uvec4(0u))));
    uvec4 top = (magnitude.high << shift) | mix(magnitude.low >> (32 - shift), uvec4(0u), equal(shift, ivec4(0)));
    top |= uvec4(notEqual(magnitude.low << shift, uvec4(0u)));
    vec4 high = to_float(top) * uintBitsToFloat(uvec4(127 + 32 - shift) << 23);
    vec4 value = mix(high, to_float(magnitude.low), equal(magnitude.high, uvec4(0u)));
    return mix(value, -value, negative);
}

ivec4 to_int(vec4 v) { return ivec4(v); }
ivec4 to_int(ivec4 v) { return v; }
ivec4 to_int(uvec4 v) { return ivec4(v); }
ivec4 to_int(Long4 v) {
    if (MODE != SATURATE) return ivec4(v.low);
    bvec4 fits = equal(v.high, uvec4(ivec4(v.low) >> 31));
    return mix(ivec4(v.high) >> 31 ^ 0x7FFFFFFF, ivec4(v.low), fits);
}

uvec4 to_uint(vec4 v) { return uvec4(v); }
uvec4 to_uint(ivec4 v) { return uvec4(v); }
uvec4 to_uint(uvec4 v) { return v; }
uvec4 to_uint(Long4 v) { return v.low; }

Long4 to_long(vec4 v) {
    // Both words are exact: float32 has 24 bits, and these are powers of two.
    vec4 magnitude = trunc(abs(v));
    uvec4 high = uvec4(magnitude * 2.3283064365386963e-10);
    Long4 result = Long4(uvec4(magnitude - vec4(high) * 4294967296.0), high);
    return choose(result, negated(result), lessThan(v, vec4(0.0)));
}
Long4 to_long(ivec4 v) { return Long4(uvec4(v), uvec4(v >> 31)); }
Long4 to_long(uvec4 v) { return Long4(v, uvec4(0u)); }

#define TO_vec4(v) to_float(v)
#define TO_ivec4(v) to_int(v)
#define TO_uvec4(v) to_uint(v)
#define TO_Long4(v) to_long(v)

bvec4 is_set(vec4 v) { return notEqual(v, vec4(0.0)); }
bvec4 is_set(ivec4 v) { return notEqual(v, ivec4(0)); }
bvec4 is_set(uvec4 v) { return notEqual(v, uvec4(0u)); }
bvec4 is_set(Long4 v) { return is_set(v.low | v.high); }

void main() {
    uint i = flat_index();
    if (i >= p.num_groups) return;
    VALUE(IN) v = LOAD(IN, x, i);
#ifdef LOWEST
    // Floats saturate in narrow integers, and a NaN becomes the highest.
    v = mix(clamp(v, LOWEST, HIGHEST), vec4(HIGHEST), isnan(v));
#endif
    if (MODE == TO_BOOL) {
        STORE(OUT, y, i, CAT(TO_, VALUE(OUT))(uvec4(is_set(v))));
    } else {
        STORE(OUT, y, i, CAT(TO_, VALUE(OUT))(v));
    }
}
