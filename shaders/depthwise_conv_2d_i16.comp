#version 450
#extension GL_GOOGLE_include_directive : require
// DEPTHWISE_CONV_2D of int16 activations and an int8 filter with any multiplier and any kernel: output
// channel o reads input channel o / multiplier. Zero points are 0.

#define CHANNELS_BINDING 2
#include "dispatch.glsl"

// Sums may need more than 32 bits.
layout(constant_id = 3) const uint SPILLS = 0u;
layout(constant_id = 4) const uint SCALING = 0u;

#include "wide.glsl"

TENSOR_IN(0, i16, x);
TENSOR_IN(1, i8, weights);
TENSOR_OUT(3, i16, y);

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
    int lowest;
    int highest;
} p;

int channel_of(uint base, uint channel) {
    uint word = x.data[base + (channel >> 2)][(channel >> 1) & 1u];
    return bitfieldExtract(int(word), int((channel & 1u) << 4), 16);
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

    Wide total = Wide(uvec4(0u), ivec4(0));
    ivec4 sum = ivec4(0);
    for (uint ky = 0u; ky < p.kernel_height; ++ky) {
        int input_row = top + int(ky * p.dilation_h);
        if (input_row < 0 || input_row >= int(p.input_height)) continue;
        for (uint kx = 0u; kx < p.kernel_width; ++kx) {
            int column = left + int(kx * p.dilation_w);
            if (column < 0 || column >= int(p.input_width)) continue;
            uint base = ((image * p.input_height + uint(input_row)) * p.input_width + uint(column)) * p.input_groups;
            ivec4 v = p.multiplier == 1u
                ? LOAD(i16, x, base + group)
                : ivec4(
                    channel_of(base, channel.x), channel_of(base, channel.y),
                    channel_of(base, channel.z), channel_of(base, channel.w));
            sum += v * LOAD(i8, weights, (ky * p.kernel_width + kx) * p.output_groups + group);
            if (SPILLS != 0u) {
                add(total, sum);
                sum = ivec4(0);
            }
        }
    }
    if (SPILLS == 0u) add(total, sum);
    y.data[at] = requantize(total, group, p.lowest, p.highest);
}
