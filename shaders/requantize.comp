#version 450
#extension GL_GOOGLE_include_directive : require
// QUANTIZE of integers to integers of another scale or width.

#include "dispatch.glsl"
#include "quantize.glsl"

#define LOAD_Q_u8(name, i, flip) unpack_u8(name.data[i])
#define LOAD_Q_i32(name, i, flip) name.data[i]
#define STORE_Q_i32(name, i, v, flip) name.data[i] = v

TENSOR_IN(0, IN, x);
TENSOR_OUT(1, OUT, y);

layout(push_constant) uniform Push {
    uint num_groups;
    int x_zero;
    int multiplier;
    int shift;
    int y_zero;
    int lowest;
    int highest;
} p;

void main() {
    uint i = flat_index();
    if (i >= p.num_groups) return;
    ivec4 v = LOAD_Q(IN, x, i, 0u) - p.x_zero;
    v = multiply_by_quantized(v, ivec4(p.multiplier), ivec4(p.shift)) + p.y_zero;
    STORE_Q(OUT, y, i, clamp(v, p.lowest, p.highest), 0u);
}
