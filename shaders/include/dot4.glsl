// The dot product of four signed bytes with four others, in one place: a variant may take the device's
// own instruction (SPV_KHR_integer_dot_product).
#ifndef DOT4_GLSL
#define DOT4_GLSL

#include "tensor.glsl"

int dot4(uint a, uint b) {
    ivec4 p = unpack_i8(a) * unpack_i8(b);
    return (p.x + p.y) + (p.z + p.w);
}

// Four wider values with four signed bytes.
int dot4(ivec4 a, uint b) {
    ivec4 p = a * unpack_i8(b);
    return (p.x + p.y) + (p.z + p.w);
}
ivec4 dot4(ivec4 a, uvec4 b) { return ivec4(dot4(a, b.x), dot4(a, b.y), dot4(a, b.z), dot4(a, b.w)); }

// One word of inputs with one word for each of four outputs.
ivec4 dot4(uint a, uvec4 b) { return ivec4(dot4(a, b.x), dot4(a, b.y), dot4(a, b.z), dot4(a, b.w)); }

#endif
