// Tensors in storage buffers: rows of lanes in groups of four (tflite_vk/shape.py has the layout).
//
// A kernel declares a tensor with its storage type (f32, f16, i32, u32, i16, i8, u8) and reads and
// writes whole groups through LOAD and STORE, so that one source serves every storage type. A group of
// 8-bit lanes is one word, the first lane in its low byte.
#ifndef TENSOR_GLSL
#define TENSOR_GLSL

// Storage of activations; variants set it with -D.
#ifndef ACT
#define ACT f32
#endif

#define STORAGE_f32 vec4
#define STORAGE_f16 uvec2
#define STORAGE_i32 ivec4
#define STORAGE_u32 uvec4
#define STORAGE_i16 uvec2
#define STORAGE_i8 uint
#define STORAGE_u8 uint

#define VALUE_f32 vec4
#define VALUE_f16 vec4
#define VALUE_i32 ivec4
#define VALUE_u32 uvec4
#define VALUE_i16 ivec4
#define VALUE_i8 ivec4
#define VALUE_u8 ivec4

// float16 holds no more than 65504; a larger value saturates instead of becoming infinite, while a
// value that is already infinite or NaN stays what it is.
vec4 saturate_f16(vec4 v) {
    vec4 limited = clamp(v, vec4(-65504.0), vec4(65504.0));
    // By the bits, since a driver may fold v - v to zero (lavapipe does).
    uvec4 exponent = floatBitsToUint(v) & 0x7F800000u;
    return mix(v, limited, lessThan(exponent, uvec4(0x7F800000u)));
}

vec4 unpack_f16(uvec2 v) { return vec4(unpackHalf2x16(v.x), unpackHalf2x16(v.y)); }
uvec2 pack_f16(vec4 v) {
    vec4 s = saturate_f16(v);
    return uvec2(packHalf2x16(s.xy), packHalf2x16(s.zw));
}

ivec4 unpack_i16(uvec2 v) {
    ivec2 s = ivec2(v);
    return ivec4(bitfieldExtract(s.x, 0, 16), s.x >> 16, bitfieldExtract(s.y, 0, 16), s.y >> 16);
}
uvec2 pack_i16(ivec4 v) {
    uvec4 u = uvec4(v) & 0xFFFFu;
    return uvec2(u.x | u.y << 16, u.z | u.w << 16);
}
ivec4 unpack_i8(uint word) {
    int s = int(word);
    return ivec4(bitfieldExtract(s, 0, 8), bitfieldExtract(s, 8, 8), bitfieldExtract(s, 16, 8), s >> 24);
}
ivec4 unpack_u8(uint word) {
    return ivec4(word & 0xFFu, (word >> 8) & 0xFFu, (word >> 16) & 0xFFu, word >> 24);
}
// The low bytes of four values; the caller has clamped them.
uint pack_i8(ivec4 v) {
    uvec4 u = uvec4(v) & 0xFFu;
    return u.x | u.y << 8 | u.z << 16 | u.w << 24;
}

#define UNPACK_f32(v) (v)
#define UNPACK_f16(v) unpack_f16(v)
#define UNPACK_i32(v) (v)
#define UNPACK_u32(v) (v)
#define UNPACK_i16(v) unpack_i16(v)
#define UNPACK_i8(v) unpack_i8(v)
#define UNPACK_u8(v) unpack_u8(v)
#define PACK_f32(v) (v)
#define PACK_f16(v) pack_f16(v)
#define PACK_i32(v) (v)
#define PACK_u32(v) (v)
#define PACK_i16(v) pack_i16(v)
#define PACK_i8(v) pack_i8(v)
#define PACK_u8(v) pack_i8(v)

#define CAT_(a, b) a##b
#define CAT(a, b) CAT_(a, b)
#define STORAGE(type) CAT(STORAGE_, type)
#define VALUE(type) CAT(VALUE_, type)

#define TENSOR_IN(slot, type, name) \
    layout(set = 0, binding = slot, std430) readonly buffer CAT(name, _block) { STORAGE(type) data[]; } name
#define TENSOR_OUT(slot, type, name) \
    layout(set = 0, binding = slot, std430) writeonly buffer CAT(name, _block) { STORAGE(type) data[]; } name
#define LOAD(type, name, i) CAT(UNPACK_, type)(name.data[i])
#define STORE(type, name, i, v) name.data[i] = CAT(PACK_, type)(v)

#endif
