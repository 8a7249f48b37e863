#version 450
#extension GL_GOOGLE_include_directive : require
// RESIZE_BILINEAR and RESIZE_NEAREST_NEIGHBOR, by the arithmetic of TFLite's reference kernels.

#define EPILOGUE_BINDING 2
#include "dispatch.glsl"
#include "epilogue.glsl"

layout(constant_id = 11) const uint IS_NEAREST = 0u;
layout(constant_id = 12) const uint IS_ALIGN_CORNERS = 0u;
layout(constant_id = 13) const uint IS_HALF_PIXEL = 0u;

TENSOR_IN(0, ACT, x);
TENSOR_OUT(1, ACT, y);

layout(push_constant) uniform Push {
    EPILOGUE_PUSH;
    uint num_groups;
    uint groups_per_row;
    uvec2 y_size;          // width, height
    ivec2 x_size;
    vec2 scale;            // x per y
} p;

vec4 fetch(uint image, ivec2 at, uint group) {
    uint pixel = (image * uint(p.x_size.y) + uint(at.y)) * uint(p.x_size.x) + uint(at.x);
    return LOAD(ACT, x, pixel * p.groups_per_row + group);
}

vec4 nearest(uint image, vec2 at, uint group) {
    vec2 scaled = (at + (IS_HALF_PIXEL != 0u ? 0.5 : 0.0)) * p.scale;
    vec2 whole = floor(scaled);
    // TFLite rounds halves away from zero; GLSL's round() may not.
    if (IS_ALIGN_CORNERS != 0u) whole += step(vec2(0.5), scaled - whole);
    return fetch(image, clamp(ivec2(whole), ivec2(0), p.x_size - 1), group);
}

vec4 bilinear(uint image, vec2 at, uint group) {
    vec2 scaled = IS_HALF_PIXEL != 0u ? (at + 0.5) * p.scale - 0.5 : at * p.scale;
    ivec2 low = max(ivec2(floor(scaled)), ivec2(0));
    ivec2 high = min(ivec2(ceil(scaled)), p.x_size - 1);
    low = min(low, p.x_size - 1);
    vec2 f = scaled - vec2(low);
    vec4 top = mix(fetch(image, low, group), fetch(image, ivec2(high.x, low.y), group), f.x);
    vec4 bottom = mix(fetch(image, ivec2(low.x, high.y), group), fetch(image, high, group), f.x);
    return mix(top, bottom, f.y);
}

void main() {
    uint i = flat_index();
    if (i >= p.num_groups) return;
    uint pixel = i / p.groups_per_row;
    uint group = i - pixel * p.groups_per_row;
    uint row = pixel / p.y_size.x;
    uint image = row / p.y_size.y;
    vec2 at = vec2(pixel - row * p.y_size.x, row - image * p.y_size.y);
    vec4 v = IS_NEAREST != 0u ? nearest(image, at, group) : bilinear(image, at, group);
    STORE(ACT, y, i, epilogue(v, i, pixel, group, p.immediates));
}
