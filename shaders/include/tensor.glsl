// Tensors in storage buffers: rows of lanes in groups of four (tflite_vk/shape.py has the layout).
//
// A kernel declares a tensor with its storage type (f32, f16, i32, u32) and reads and writes whole
// groups through LOAD and STORE, so that one source serves every storage type.
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

#define VALUE_f32 vec4
#define VALUE_f16 vec4
#define VALUE_i32 ivec4
#define VALUE_u32 uvec4

// float16 holds no more than 65504; a larger value saturates instead of becoming infinite, while a
// value that is already infinite or NaN stays what it is.
vec4 saturate_f16(vec4 v) {
    vec4 limited = clamp(v, vec4(-65504.0), vec4(65504.0));
    return mix(limited, v, notEqual(v - v, vec4(0.0)));
}

vec4 unpack_f16(uvec2 v) { return vec4(unpackHalf2x16(v.x), unpackHalf2x16(v.y)); }
uvec2 pack_f16(vec4 v) {
    vec4 s = saturate_f16(v);
    return uvec2(packHalf2x16(s.xy), packHalf2x16(s.zw));
}

#define UNPACK_f32(v) (v)
#define UNPACK_f16(v) unpack_f16(v)
#define UNPACK_i32(v) (v)
#define UNPACK_u32(v) (v)
#define PACK_f32(v) (v)
#define PACK_f16(v) pack_f16(v)
#define PACK_i32(v) (v)
#define PACK_u32(v) (v)

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
