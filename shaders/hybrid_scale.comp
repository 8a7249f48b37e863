#version 450
#extension GL_GOOGLE_include_directive : require
// Sums of products of int8 weights and activations that hybrid_quantize made, as reals: scaled, with the
// bias behind it, in the order of TFLite's roundings.

#define EPILOGUE_BINDING 5
#include "dispatch.glsl"
#include "epilogue.glsl"

// The scales of row and channel are multiplied with each other before they are with the sum.
layout(constant_id = 11) const uint SCALES_FIRST = 0u;

TENSOR_IN(0, i32, sums);
TENSOR_IN(1, i32, found);     // hybrid_quantize
TENSOR_IN(2, i32, channels);  // for each group of channels: bits of the scales, sums of the weights
TENSOR_IN(3, f32, bias);
TENSOR_OUT(4, ACT, y);

layout(push_constant) uniform Push {
    EPILOGUE_PUSH;
    uint num_groups;
    uint line_groups;
    uint row_groups;  // of what was quantized at once
} p;

void main() {
    uint at = flat_index();
    if (at >= p.num_groups) return;
    uint line = at / p.line_groups;
    uint group = at - line * p.line_groups;
    ivec4 row = found.data[at / p.row_groups];
    float scale = intBitsToFloat(row.x);
    vec4 scales = intBitsToFloat(channels.data[group * 2u]);
    vec4 sum = vec4(sums.data[at] - row.y * channels.data[group * 2u + 1u]);
    precise vec4 v = SCALES_FIRST != 0u ? sum * (scales * scale) : (sum * scales) * scale;
    v = v + LOAD(f32, bias, group);
    STORE(ACT, y, at, epilogue(v, at, line, group, p.immediates));
}
