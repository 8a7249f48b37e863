#version 450
#extension GL_GOOGLE_include_directive : require
// MediaPipe's Resampler: an image read between its pixels, at the point that `warp` names for each
// pixel of the result. Beyond the image all is zero.

#define EPILOGUE_BINDING 3
#include "dispatch.glsl"
#include "epilogue.glsl"

TENSOR_IN(0, ACT, x);
TENSOR_IN(1, ACT, warp);
TENSOR_OUT(2, ACT, y);

layout(push_constant) uniform Push {
    EPILOGUE_PUSH;
    uint num_groups;
    uint groups_per_row;
    uint pixels;           // of one image of the result
    uint warp_groups;      // of one pixel: x and y stand first
    ivec2 x_size;          // width, height
} p;

vec4 fetch(uint image, ivec2 at, uint group) {
    if (any(lessThan(at, ivec2(0))) || any(greaterThanEqual(at, p.x_size))) return vec4(0.0);
    uint pixel = (image * uint(p.x_size.y) + uint(at.y)) * uint(p.x_size.x) + uint(at.x);
    return LOAD(ACT, x, pixel * p.groups_per_row + group);
}

vec4 sampled(uint image, vec2 at, uint group) {
    // Not the other way round: a NaN names no point. What passes also fits an int.
    bool is_near = at.x > -1.0 && at.y > -1.0 && at.x < float(p.x_size.x) && at.y < float(p.x_size.y);
    if (!is_near) return vec4(0.0);
    ivec2 low = ivec2(floor(at));
    ivec2 high = low + 1;
    vec2 near = vec2(high) - at;
    vec2 far = 1.0 - near;
    // The order of the reference kernel's sum.
    return near.x * near.y * fetch(image, low, group) + far.x * far.y * fetch(image, high, group)
        + near.x * far.y * fetch(image, ivec2(low.x, high.y), group)
        + far.x * near.y * fetch(image, ivec2(high.x, low.y), group);
}

void main() {
    uint i = flat_index();
    if (i >= p.num_groups) return;
    uint pixel = i / p.groups_per_row;
    uint group = i - pixel * p.groups_per_row;
    vec2 at = LOAD(ACT, warp, pixel * p.warp_groups).xy;
    vec4 v = sampled(pixel / p.pixels, at, group);
    STORE(ACT, y, i, epilogue(v, i, pixel, group, p.immediates));
}
