#version 450
#extension GL_GOOGLE_include_directive : require
// MediaPipe's MaxUnpooling2D, as a gather: each output pixel looks for the inputs whose window it
// lies in, and takes the last one whose index names it. An index is a tap of its own window.

#define EPILOGUE_BINDING 3
#include "dispatch.glsl"
#include "epilogue.glsl"

TENSOR_IN(0, ACT, x);
TENSOR_IN(1, ACT, indices);
TENSOR_OUT(2, ACT, y);

layout(push_constant) uniform Push {
    EPILOGUE_PUSH;
    uint num_groups;
    uint groups_per_row;
    uvec2 y_size;          // width, height
    ivec2 x_size;
    ivec2 stride;
    ivec2 window;
    ivec2 pad;
} p;

void main() {
    uint i = flat_index();
    if (i >= p.num_groups) return;
    uint pixel = i / p.groups_per_row;
    uint group = i - pixel * p.groups_per_row;
    uint row = pixel / p.y_size.x;
    uint image = row / p.y_size.y;
    ivec2 at = ivec2(pixel - row * p.y_size.x, row - image * p.y_size.y) + p.pad;
    // Inputs whose window holds the pixel: at - window < input * stride <= at.
    ivec2 begin = max((at - p.window + p.stride) / p.stride, ivec2(0));
    if (at.x < p.window.x) begin.x = 0;  // GLSL leaves the rounding of a negative quotient open
    if (at.y < p.window.y) begin.y = 0;
    ivec2 end = min(at / p.stride + 1, p.x_size);

    vec4 found = vec4(0.0);
    for (int iy = begin.y; iy < end.y; ++iy) {
        for (int ix = begin.x; ix < end.x; ++ix) {
            ivec2 tap = at - ivec2(ix, iy) * p.stride;
            uint source = ((image * uint(p.x_size.y) + uint(iy)) * uint(p.x_size.x) + uint(ix)) * p.groups_per_row + group;
            ivec4 index = ivec4(LOAD(ACT, indices, source));
            found = mix(found, LOAD(ACT, x, source), equal(index, ivec4(tap.y * p.window.x + tap.x)));
        }
    }
    STORE(ACT, y, i, epilogue(found, i, pixel, group, p.immediates));
}
