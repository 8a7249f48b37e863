#version 450
#extension GL_GOOGLE_include_directive : require
// AVERAGE_POOL_2D, MAX_POOL_2D, L2_POOL_2D; with ARGMAX, MediaPipe's MaxPoolingWithArgmax2D.
//
// One invocation makes four channels of one output pixel. Padding is never read nor counted.

#ifdef ARGMAX
#define Y_BINDING 2
#else
#define Y_BINDING 1
#endif
#define EPILOGUE_BINDING Y_BINDING + 1
#include "dispatch.glsl"
#include "epilogue.glsl"

layout(constant_id = 11) const uint OP = 0u;
const uint OP_AVERAGE = 0u;
const uint OP_MAX = 1u;

TENSOR_IN(0, ACT, x);
#ifdef ARGMAX
TENSOR_OUT(1, ACT, indices);
#endif
TENSOR_OUT(Y_BINDING, ACT, y);

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
    ivec2 origin = ivec2(pixel - row * p.y_size.x, row - image * p.y_size.y) * p.stride - p.pad;
    ivec2 begin = max(origin, ivec2(0));
    ivec2 end = min(origin + p.window, p.x_size);

    vec4 total = vec4(OP == OP_MAX ? -3.402823466e38 : 0.0);  // TFLite's start: -inf never wins
    vec4 best = vec4(0.0);
    for (int iy = begin.y; iy < end.y; ++iy) {
        uint line = (image * uint(p.x_size.y) + uint(iy)) * uint(p.x_size.x);
        for (int ix = begin.x; ix < end.x; ++ix) {
            vec4 v = LOAD(ACT, x, (line + uint(ix)) * p.groups_per_row + group);
            if (OP == OP_AVERAGE) total += v;
            else if (OP == OP_MAX) {
                bvec4 is_larger = greaterThan(v, total);
                total = mix(total, v, is_larger);
                int tap = (iy - origin.y) * p.window.x + ix - origin.x;
                best = mix(best, vec4(float(tap)), is_larger);
            } else total += v * v;
        }
    }
    float taps = float((end.x - begin.x) * (end.y - begin.y));
    if (OP == OP_AVERAGE) total /= taps;
    else if (OP != OP_MAX) total = sqrt(total / taps);
#ifdef ARGMAX
    // MediaPipe adds 0.1 so that a cast to int can't land one below.
    STORE(ACT, indices, i, best + 0.1);
#endif
    STORE(ACT, y, i, epilogue(total, i, pixel, group, p.immediates));
}
