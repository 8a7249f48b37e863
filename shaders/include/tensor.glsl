// Tensors in storage buffers: rows of lanes in groups of four (tflite_vk/shape.py has the layout).
//
// A kernel declares a tensor with its storage type (f32, f16, i32, u32, i64, i16, i8, u8) and reads and
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
#define STORAGE_i64 LongGroup
#define STORAGE_i16 uvec2
#define STORAGE_i8 uint
#define STORAGE_u8 uint

#define VALUE_f32 vec4
#define VALUE_f16 vec4
#define VALUE_i32 ivec4
#define VALUE_u32 uvec4
#define VALUE_i64 Long4
#define VALUE_i16 ivec4
#define VALUE_i8 ivec4
#define VALUE_u8 ivec4

// Four integers of 64 bits, in two's complement: in memory a low and a high word each.
struct Long4 { uvec4 low; uvec4 high; };
struct LongGroup { uvec2 lanes[4]; };
Long4 unpack_i64(LongGroup v) {
    return Long4(uvec4(v.lanes[0].x, v.lanes[1].x, v.lanes[2].x, v.lanes[3].x),
                 uvec4(v.lanes[0].y, v.lanes[1].y, v.lanes[2].y, v.lanes[3].y));
}
LongGroup pack_i64(Long4 v) {
    return LongGroup(uvec2[4](uvec2(v.low.x, v.high.x), uvec2(v.low.y, v.high.y),
                              uvec2(v.low.z, v.high.z), uvec2(v.low.w, v.high.w)));
}

vec4 unpack_f16(uvec2 v) { return vec4(unpackHalf2x16(v.x), unpackHalf2x16(v.y)); }

// The bits of the nearest float16, ties to even, the same on every device: the Vulkan specification
// leaves the rounding of packHalf2x16 open, and drivers that truncate would double the error and turn
// every sum of many values downward. Beyond 65504 it saturates; infinities and NaN stay what they are.
uvec4 half_bits(vec4 v) {
    uvec4 bits = floatBitsToUint(v);
    uvec4 magnitude = bits & 0x7FFFFFFFu;
    uvec4 finite = min(magnitude, uvec4(0x477FE000u));  // 65504
    // Rounded by adding a power of two whose last place is float16's: 2^13 times the value's own, or
    // times 2^-14, below which float16's steps stay the same. Not by packing, which may flush those.
    uvec4 exponent = max(finite & 0x7F800000u, uvec4(0x38800000u));
    uvec4 power = exponent + (13u << 23);
    precise vec4 sum = uintBitsToFloat(finite) + uintBitsToFloat(power);
    // The sum's mantissa counts steps of the value's octave; a carry goes on to the next one.
    uvec4 half_magnitude = (floatBitsToUint(sum) - power) + (exponent >> 13) - (113u << 10);
    uvec4 special = mix(uvec4(0x7C00u), uvec4(0x7E00u), greaterThan(magnitude, uvec4(0x7F800000u)));
    half_magnitude = mix(half_magnitude, special, greaterThanEqual(magnitude, uvec4(0x7F800000u)));
    return half_magnitude | ((bits >> 16) & 0x8000u);
}

uvec2 pack_f16(vec4 v) {
    uvec4 h = half_bits(v);
    return uvec2(h.x | h.y << 16, h.z | h.w << 16);
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
#define UNPACK_i64(v) unpack_i64(v)
#define UNPACK_i16(v) unpack_i16(v)
#define UNPACK_i8(v) unpack_i8(v)
#define UNPACK_u8(v) unpack_u8(v)
#define PACK_f32(v) (v)
#define PACK_f16(v) pack_f16(v)
#define PACK_i32(v) (v)
#define PACK_u32(v) (v)
#define PACK_i64(v) pack_i64(v)
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
