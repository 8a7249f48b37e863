#version 450
#extension GL_GOOGLE_include_directive : require
// RESIZE_BILINEAR and RESIZE_NEAREST_NEIGHBOR of quantized values, by the arithmetic of TFLite's
// reference kernels: int8 and int16 interpolate in 10-bit fixed point, uint8 in float32.

#include "dispatch.glsl"
#include "quantize.glsl"

layout(constant_id = 3) const uint METHOD = 0u;
const uint NEAREST = 0u;
const uint FIXED = 1u;
const uint FLOAT = 2u;
layout(constant_id = 4) const uint IS_ALIGN_CORNERS = 0u;
layout(constant_id = 5) const uint IS_HALF_PIXEL = 0u;

TENSOR_IN(0, ACT, x);
TENSOR_OUT(1, ACT, y);

layout(push_constant) uniform Push {
    uint num_groups;
    uint groups_per_row;
    uvec2 y_size;          // width, height
    ivec2 x_size;
    vec2 scale;            // x per y
    ivec2 fixed_scale;     // the same times 1024
    uint flip;
    int offset;            // brings values back to those of uint8
} p;

ivec4 fetch(uint image, ivec2 at, uint group) {
    uint pixel = (image * uint(p.x_size.y) + uint(at.y)) * uint(p.x_size.x) + uint(at.x);
    return LOAD_Q(ACT, x, pixel * p.groups_per_row + group, p.flip) + p.offset;
}

ivec4 nearest(uint image, ivec2 at, uint group) {
    precise vec2 scaled = (vec2(at) + (IS_HALF_PIXEL != 0u ? 0.5 : 0.0)) * p.scale;
    vec2 whole = floor(scaled);
    // TFLite rounds halves away from zero; GLSL's round() may not.
    if (IS_ALIGN_CORNERS != 0u) whole += step(vec2(0.5), scaled - whole);
    return fetch(image, clamp(ivec2(whole), ivec2(0), p.x_size - 1), group);
}

ivec4 in_fixed_point(uint image, ivec2 at, uint group) {
    ivec2 scaled = at * p.fixed_scale;
    if (IS_HALF_PIXEL != 0u) scaled += p.fixed_scale / 2 - 512;
    ivec2 low = clamp(max(scaled, 0) >> 10, ivec2(0), p.x_size - 1);
    ivec2 high = min((scaled + 1023) >> 10, p.x_size - 1);
    ivec2 f = scaled - (low << 10);
    ivec4 top = fetch(image, low, group) * (1024 - f.x) + fetch(image, ivec2(high.x, low.y), group) * f.x;
    ivec4 bottom = fetch(image, ivec2(low.x, high.y), group) * (1024 - f.x) + fetch(image, high, group) * f.x;
    // The sum has 20 fractional bits and up to 36 bits in all: its upper part and its lower 10 bits.
    ivec4 upper = (top >> 10) * (1024 - f.y) + (bottom >> 10) * f.y;
    ivec4 lower = (top & 1023) * (1024 - f.y) + (bottom & 1023) * f.y;
    upper += lower >> 10;
    // To nearest, ties away from zero: the magnitude of a negative sum in its upper part.
    ivec4 magnitude = -upper - min(lower & 1023, 1);
    return mix((upper + 512) >> 10, -((magnitude + 512) >> 10), lessThan(upper, ivec4(0)));
}

ivec4 in_float(uint image, ivec2 at, uint group) {
    precise vec2 scaled = vec2(at) * p.scale;
    if (IS_HALF_PIXEL != 0u) {
        precise vec2 centre = (vec2(at) + 0.5) * p.scale;
        scaled = centre - 0.5;
    }
    ivec2 low = clamp(ivec2(floor(scaled)), ivec2(0), p.x_size - 1);
    ivec2 high = min(ivec2(ceil(scaled)), p.x_size - 1);
    precise vec2 f = scaled - vec2(low);
    precise vec2 g = 1.0 - f;
    precise vec4 v = vec4(fetch(image, low, group)) * g.y * g.x;
    v += vec4(fetch(image, ivec2(low.x, high.y), group)) * f.y * g.x;
    v += vec4(fetch(image, ivec2(high.x, low.y), group)) * g.y * f.x;
    v += vec4(fetch(image, high, group)) * f.y * f.x;
    v += 0.5;
    return ivec4(v);
}

void main() {
    uint i = flat_index();
    if (i >= p.num_groups) return;
    uint pixel = i / p.groups_per_row;
    uint group = i - pixel * p.groups_per_row;
    uint row = pixel / p.y_size.x;
    uint image = row / p.y_size.y;
    ivec2 at = ivec2(pixel - row * p.y_size.x, row - image * p.y_size.y);
    ivec4 v;
    if (METHOD == NEAREST) v = nearest(image, at, group);
    else if (METHOD == FIXED) v = in_fixed_point(image, at, group);
    else v = in_float(image, at, group);
    STORE_Q(ACT, y, i, v - p.offset, p.flip);
}
