// What happens to the int32 sums of a convolution or matrix product: bias, the scale of each output
// channel, zero point, fused activation. Four words of four lanes for each group of outputs.
#ifndef CHANNELS_GLSL
#define CHANNELS_GLSL

#include "quantize.glsl"
#ifndef RAW
#include "table.glsl"
#endif

// CHANNELS_BINDING: where the buffer is bound; table.glsl says what else is to be defined. AS_DOUBLE, a constant of the kernel: scales are doubles,
// as in TFLite's FULLY_CONNECTED; otherwise multipliers and shifts.
//
// RAW, set by -D: activations were quantized while running. The sums are written as they are
// (hybrid_scale goes on), and the buffer holds what hybrid_quantize found for each image.
layout(set = 0, binding = CHANNELS_BINDING, std430) readonly buffer channels_block { ivec4 data[]; } channels;

#define CHANNELS_PUSH \
    int output_zero;  \
    int lowest;       \
    int highest;      \
    uint flip_out

#ifdef RAW
#define RESULT i32
ivec4 channel_bias(uint group) { return ivec4(0); }
int input_zero(int constant, uint image) { return channels.data[image].y; }
uint input_zero(uint constant, uint image) { return uint(channels.data[image].z); }
ivec4 requantize(ivec4 sum, uint group, int output_zero, int lowest, int highest, uint flip_out) { return sum; }
#else
#define RESULT i8
ivec4 channel_bias(uint group) { return channels.data[group * 4u]; }
int input_zero(int constant, uint image) { return constant; }
uint input_zero(uint constant, uint image) { return constant; }

// The output word of four sums that hold the bias already.
uint requantize(ivec4 sum, uint group, int output_zero, int lowest, int highest, uint flip_out) {
    ivec4 multiplier = channels.data[group * 4u + 1u];
    ivec4 shift = channels.data[group * 4u + 2u];
    ivec4 scaled = AS_DOUBLE != 0u
        ? scale_as_double(sum, uvec4(multiplier), uvec4(channels.data[group * 4u + 3u]), shift)
        : multiply_by_quantized(sum, multiplier, shift);
    return through_table(pack_i8(clamp(scaled + output_zero, lowest, highest)) ^ flip_out);
}
#endif

#endif
