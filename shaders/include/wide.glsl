// Sums of 64 bits in two words each, for products of int16 activations, and what becomes of them: bias,
// the scale of each output channel, fused activation. No device feature is needed.
//
// tflite_vk/ops/quantized/wide.py makes the constants.
#ifndef WIDE_GLSL
#define WIDE_GLSL

#include "quantize.glsl"

struct Wide {
    uvec4 low;
    ivec4 high;
};

void add(inout Wide sum, uvec4 low, ivec4 high) {
    uvec4 carry;
    sum.low = uaddCarry(sum.low, low, carry);
    sum.high += high + ivec4(carry);
}
void add(inout Wide sum, ivec4 v) { add(sum, uvec4(v), v >> 31); }

// v * 2^shift for shift 1 to 31.
void add_shifted(inout Wide sum, ivec4 v, int shift) { add(sum, uvec4(v) << shift, v >> (32 - shift)); }

// How sums become outputs.
const uint REDUCED = 0u;    // a multiplier of 15 bits, rounded once, ties up
const uint AS_DOUBLE = 1u;  // doubles, as TFLite's FULLY_CONNECTED
const uint NARROW = 2u;     // sums of 32 bits, a multiplier of 31
const uint NARROW_AS_DOUBLE = 3u;

// x * multiplier / 2^shift for |x| < 2^47, multiplier < 2^15, shift 1 to 46; the low word of it.
//
// Source: MultiplyByQuantizedMultiplier of int64 in tflite/kernels/internal/common.cc.
int scale_reduced(uint low, int high, uint multiplier, int shift) {
    uint p0, p1, carry;
    umulExtended(low, multiplier, p1, p0);
    uint top = uint(high) * multiplier + p1;
    uint half_low = shift <= 32 ? 1u << (shift - 1) : 0u;
    uint half_high = shift > 32 ? 1u << (shift - 33) : 0u;
    p0 = uaddCarry(p0, half_low, carry);
    top += half_high + carry;
    return shift >= 32 ? int(top) >> (shift - 32) : int((p0 >> shift) | (top << (32 - shift)));
}

// int(round(double(x) * scale)), as scale_as_double of quantize.glsl, for |x| < 2^47.
int scale_wide_as_double(uint low, int high, uint mantissa_low, uint mantissa_high, int shift) {
    bool is_negative = high < 0;
    uint carry;
    if (is_negative) {
        low = uaddCarry(~low, 1u, carry);
        high = ~high + int(carry);
    }
    if ((low | uint(high)) == 0u || (mantissa_low | mantissa_high) == 0u) return 0;
    // The product has 53 to 100 bits.
    uint p[4];
    uint upper, lower;
    umulExtended(low, mantissa_low, p[1], p[0]);
    umulExtended(uint(high), mantissa_high, p[3], p[2]);
    umulExtended(low, mantissa_high, upper, lower);
    p[1] = uaddCarry(p[1], lower, carry);
    p[2] = uaddCarry(p[2], carry, carry);
    p[3] += carry;
    p[2] = uaddCarry(p[2], upper, carry);
    p[3] += carry;
    umulExtended(uint(high), mantissa_low, upper, lower);
    p[1] = uaddCarry(p[1], lower, carry);
    p[2] = uaddCarry(p[2], carry, carry);
    p[3] += carry;
    p[2] = uaddCarry(p[2], upper, carry);
    p[3] += carry;
    int drop = (p[3] != 0u ? findMSB(p[3]) + 96 : p[2] != 0u ? findMSB(p[2]) + 64 : findMSB(p[1]) + 32) - 52;
    shift -= drop;
    uint rest = 0u;        // the bits dropped, at the top of a word
    bool is_more = false;  // and whether there are ones below them
    if (drop >= 32) {
        rest = p[0];
        p[0] = p[1];
        p[1] = p[2];
        p[2] = p[3];
        drop -= 32;
    }
    if (drop > 0) {
        is_more = rest << (32 - drop) != 0u;
        rest = (p[0] << (32 - drop)) | (rest >> drop);
        p[0] = (p[0] >> drop) | (p[1] << (32 - drop));
        p[1] = (p[1] >> drop) | (p[2] << (32 - drop));
    }
    if (rest > 0x80000000u || (rest == 0x80000000u && (is_more || (p[0] & 1u) != 0u))) {
        p[0] = uaddCarry(p[0], 1u, carry);
        p[1] += carry;
    }
    return round_mantissa(p[0], p[1], shift, is_negative);
}

#ifdef CHANNELS_BINDING
// Of each group of outputs: low and high words of the biases, multipliers, shifts, upper mantissa bits.
layout(set = 0, binding = CHANNELS_BINDING, std430) readonly buffer channels_block { ivec4 data[]; } channels;

// The output of a sum without its bias. SCALING is a constant of the kernel.
uvec2 requantize(Wide sum, uint group, int lowest, int highest) {
    uint at = group * 5u;
    add(sum, uvec4(channels.data[at]), channels.data[at + 1u]);
    ivec4 multiplier = channels.data[at + 2u];
    ivec4 shift = channels.data[at + 3u];
    ivec4 v;
    if (SCALING == NARROW) {
        v = multiply_by_quantized(ivec4(sum.low), multiplier, shift);
    } else {
        uvec4 upper = uvec4(channels.data[at + 4u]);
        if (SCALING == NARROW_AS_DOUBLE) sum.high = ivec4(sum.low) >> 31;
        for (int k = 0; k < 4; ++k) {
            v[k] = SCALING != REDUCED
                ? scale_wide_as_double(sum.low[k], sum.high[k], uint(multiplier[k]), upper[k], shift[k])
                : scale_reduced(sum.low[k], sum.high[k], uint(multiplier[k]), shift[k]);
        }
    }
    return pack_i16(clamp(v, lowest, highest));
}
#endif

#endif
