// Unsigned numbers that compare as the elements do, for searches and sorts that need a total order.
#ifndef KEYS_GLSL
#define KEYS_GLSL

// -0 equals 0; each NaN becomes `nan_key`.
uvec4 order_keys(vec4 v, uint nan_key) {
    uvec4 bits = floatBitsToUint(v);
    bvec4 is_nan = greaterThan(bits & 0x7FFFFFFFu, uvec4(0x7F800000u));
    bits = mix(bits, uvec4(0u), equal(bits, uvec4(0x80000000u)));
    uvec4 key = mix(bits | 0x80000000u, ~bits, greaterThanEqual(bits, uvec4(0x80000000u)));
    return mix(key, uvec4(nan_key), is_nan);
}

uvec4 order_keys(ivec4 v, uint nan_key) { return uvec4(v) ^ 0x80000000u; }

#endif
