// What happens to the int32 sums of a convolution or matrix product: bias, the scale of each output
// channel, zero point, fused activation. Four words of four lanes for each group of outputs.
#ifndef CHANNELS_GLSL
#define CHANNELS_GLSL

#include "quantize.glsl"

// CHANNELS_BINDING: where the buffer is bound. AS_DOUBLE, a constant of the kernel: scales are doubles,
// as in TFLite's FULLY_CONNECTED; otherwise multipliers and shifts.
layout(set = 0, binding = CHANNELS_BINDING, std430) readonly buffer channels_block { ivec4 data[]; } channels;

#define CHANNELS_PUSH \
    int output_zero;  \
    int lowest;       \
    int highest;      \
    uint flip_out

ivec4 channel_bias(uint group) { return channels.data[group * 4u]; }

// The output word of four sums that hold the bias already.
uint requantize(ivec4 sum, uint group, int output_zero, int lowest, int highest, uint flip_out) {
    ivec4 multiplier = channels.data[group * 4u + 1u];
    ivec4 shift = channels.data[group * 4u + 2u];
    ivec4 scaled = AS_DOUBLE != 0u
        ? scale_as_double(sum, uvec4(multiplier), uvec4(channels.data[group * 4u + 3u]), shift)
        : multiply_by_quantized(sum, multiplier, shift);
    return pack_i8(clamp(scaled + output_zero, lowest, highest)) ^ flip_out;
}

#endif
