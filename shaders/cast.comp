#version 450
#extension GL_GOOGLE_include_directive : require
// CAST between element types that the device stores differently.

#include "dispatch.glsl"
#include "tensor.glsl"

layout(constant_id = 3) const uint TO_BOOL = 0u;  // 1: 0 or 1 by whether the element is zero

TENSOR_IN(0, IN, x);
TENSOR_OUT(1, OUT, y);

layout(push_constant) uniform Push {
    uint num_groups;
} p;

vec4 to_float(vec4 v) { return v; }
vec4 to_float(ivec4 v) { return vec4(v); }
// SwiftShader rounds large unsigned numbers twice. Both halves are exact, and their sum rounds once.
vec4 to_float(uvec4 v) { return vec4(v >> 16) * 65536.0 + vec4(v & 0xFFFFu); }

#define TO_vec4(v) to_float(v)
#define TO_ivec4(v) ivec4(v)
#define TO_uvec4(v) uvec4(v)

void main() {
    uint i = flat_index();
    if (i >= p.num_groups) return;
    VALUE(IN) v = LOAD(IN, x, i);
#ifdef LOWEST
    // Floats saturate in narrow integers, and a NaN becomes the highest.
    v = mix(clamp(v, LOWEST, HIGHEST), vec4(HIGHEST), isnan(v));
#endif
    if (TO_BOOL != 0u) {
        STORE(OUT, y, i, VALUE(OUT)(notEqual(v, VALUE(IN)(0))));
    } else {
        STORE(OUT, y, i, CAT(TO_, VALUE(OUT))(v));
    }
}
