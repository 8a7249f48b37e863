#version 450
#extension GL_GOOGLE_include_directive : require
// DEPTHWISE_CONV_2D of int8 or uint8 with any multiplier and any kernel, as depthwise_conv_2d_general:
// output channel o reads input channel o / multiplier.

#define CHANNELS_BINDING 2
#define TABLE_BINDING 4
#define TABLE_ID 3
#include "dispatch.glsl"

const uint AS_DOUBLE = 0u;
#include "channels.glsl"

TENSOR_IN(0, i8, x);
TENSOR_IN(1, i8, weights);
TENSOR_OUT(3, RESULT, y);

layout(push_constant) uniform Push {
    uint num_groups;       // groups of four lanes in the output
    uint output_groups;    // per pixel
    uint input_groups;     // per pixel
    uint input_channels;
    uint multiplier;
    uint output_height;
    uint output_width;
    uint input_height;
    uint input_width;
    uint kernel_height;
    uint kernel_width;
    uint stride_h;
    uint stride_w;
    uint dilation_h;
    uint dilation_w;
    int pad_top;
    int pad_left;
    uint flip_in;
    int input_zero;
    int weight_zero;
    CHANNELS_PUSH;
} p;

int lane_of(uint at, uint lane) {
    return bitfieldExtract(int(x.data[at] ^ p.flip_in), int(lane << 3), 8);
}

void main() {
    uint at = flat_index();
    if (at >= p.num_groups) return;
    uint pixel = at / p.output_groups;
    uint group = at - pixel * p.output_groups;
    uint row = pixel / p.output_width;
    uint image = row / p.output_height;
    int top = int((row - image * p.output_height) * p.stride_h) - p.pad_top;
    int left = int((pixel - row * p.output_width) * p.stride_w) - p.pad_left;
    // Lanes past the last channel repeat it: their results are padding.
    uvec4 channel = min((group * 4u + uvec4(0u, 1u, 2u, 3u)) / p.multiplier, uvec4(p.input_channels - 1u));
    uvec4 input_group = channel >> 2u;
    uvec4 lane = channel & 3u;
    int zero = input_zero(p.input_zero, image);

    ivec4 sum = channel_bias(group);
    for (uint ky = 0u; ky < p.kernel_height; ++ky) {
        int input_row = top + int(ky * p.dilation_h);
        if (input_row < 0 || input_row >= int(p.input_height)) continue;
        for (uint kx = 0u; kx < p.kernel_width; ++kx) {
            int column = left + int(kx * p.dilation_w);
            if (column < 0 || column >= int(p.input_width)) continue;
            uint base = ((image * p.input_height + uint(input_row)) * p.input_width + uint(column)) * p.input_groups;
            ivec4 v = ivec4(
                lane_of(base + input_group.x, lane.x),
                lane_of(base + input_group.y, lane.y),
                lane_of(base + input_group.z, lane.z),
                lane_of(base + input_group.w, lane.w));
            sum += (v - zero) * (LOAD(i8, weights, (ky * p.kernel_width + kx) * p.output_groups + group) - p.weight_zero);
        }
    }
    y.data[at] = requantize(sum, group, p.output_zero, p.lowest, p.highest, p.flip_out);
}
