#version 450
#extension GL_GOOGLE_include_directive : require
// AVERAGE_POOL_2D and MAX_POOL_2D of quantized values: a window over the elements inside the image.

#include "dispatch.glsl"
#include "quantize.glsl"

layout(constant_id = 3) const uint IS_AVERAGE = 0u;

TENSOR_IN(0, ACT, x);
TENSOR_OUT(1, ACT, y);

layout(push_constant) uniform Push {
    uint num_groups;
    uint groups;        // per pixel
    uint output_height;
    uint output_width;
    uint input_height;
    uint input_width;
    int filter_height;
    int filter_width;
    uint stride_h;
    uint stride_w;
    int pad_top;
    int pad_left;
    uint flip;
    int offset;         // brings values back to those of the type: uint8 averages round as unsigned
    int lowest;
    int highest;
} p;

void main() {
    uint i = flat_index();
    if (i >= p.num_groups) return;
    uint pixel = i / p.groups;
    uint group = i - pixel * p.groups;
    uint row = pixel / p.output_width;
    uint image = row / p.output_height;
    int top = int((row - image * p.output_height) * p.stride_h) - p.pad_top;
    int left = int((pixel - row * p.output_width) * p.stride_w) - p.pad_left;
    int y_end = min(top + p.filter_height, int(p.input_height));
    int x_end = min(left + p.filter_width, int(p.input_width));

    ivec4 sum = ivec4(IS_AVERAGE != 0u ? 0 : -32768);
    int count = 0;
    for (int r = max(top, 0); r < y_end; ++r) {
        for (int c = max(left, 0); c < x_end; ++c) {
            uint at = (image * p.input_height + uint(r)) * p.input_width + uint(c);
            ivec4 v = LOAD_Q(ACT, x, at * p.groups + group, p.flip) + p.offset;
            sum = IS_AVERAGE != 0u ? sum + v : max(sum, v);
            ++count;
        }
    }
    if (IS_AVERAGE != 0u) {
        // To nearest, ties away from zero. GLSL leaves division of negative numbers to the driver.
        ivec4 magnitude = (abs(sum) + count / 2) / max(count, 1);
        sum = mix(magnitude, -magnitude, lessThan(sum, ivec4(0)));
    }
    STORE_Q(ACT, y, i, clamp(sum, p.lowest, p.highest) - p.offset, p.flip);
}
