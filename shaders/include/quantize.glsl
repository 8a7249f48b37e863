// Integer arithmetic of TFLite's quantized kernels, exact for every input on any device: no 64-bit
// integers and no doubles needed.
//
// uint8 tensors are computed as int8: flipping the top bit of each lane subtracts 128, and so does
// the host from zero points and bounds (tflite_vk/ops/quantization.py).
#ifndef QUANTIZE_GLSL
#define QUANTIZE_GLSL

#include "tensor.glsl"

// Four quantized values; `flip` is FLIP_U8 of quantization.py for a uint8 tensor, else 0.
#define LOAD_Q(type, name, i, flip) CAT(LOAD_Q_, type)(name, i, flip)
#define STORE_Q(type, name, i, v, flip) CAT(STORE_Q_, type)(name, i, v, flip)
#define LOAD_Q_i8(name, i, flip) unpack_i8(name.data[i] ^ (flip))
#define STORE_Q_i8(name, i, v, flip) name.data[i] = pack_i8(v) ^ (flip)
#define LOAD_Q_i16(name, i, flip) unpack_i16(name.data[i])
#define STORE_Q_i16(name, i, v, flip) name.data[i] = pack_i16(v)

// x * m / 2^31 rounded to nearest, ties up: gemmlowp's SaturatingRoundingDoublingHighMul. It saturates
// only where x = m = -2^31, and no multiplier is negative.
ivec4 high_mul(ivec4 x, ivec4 m) {
    ivec4 high;
    ivec4 low;
    imulExtended(x, m, high, low);
    uvec4 bits = uvec4(low);
    return (high << 1) + ivec4(bits >> 31) + ivec4((bits >> 30) & 1u);
}

// x / 2^exponent rounded to nearest, ties away from zero: gemmlowp's RoundingDivideByPOT, exponent
// 0 to 31.
ivec4 divide_by_pot(ivec4 x, ivec4 exponent) {
    ivec4 mask = (ivec4(1) << exponent) - 1;
    ivec4 threshold = (mask >> 1) + ivec4(lessThan(x, ivec4(0)));
    return (x >> exponent) + ivec4(greaterThan(x & mask, threshold));
}

// TFLite's MultiplyByQuantizedMultiplier with its two roundings; a positive shift goes left.
ivec4 multiply_by_quantized(ivec4 x, ivec4 multiplier, ivec4 shift) {
    return divide_by_pot(high_mul(x << max(shift, 0), multiplier), max(-shift, 0));
}

// mantissa / 2^shift as a whole number for a mantissa of 53 bits, ties away from zero. Results beyond
// int32 saturate.
int round_mantissa(uint p0, uint p1, int shift, bool is_negative) {
    int limit = is_negative ? int(0x80000000u) : 0x7FFFFFFF;
    if (shift < 22) return limit;  // at least 2^52 / 2^21
    if (shift > 54) return 0;
    int half_bit = shift - 1;
    if (half_bit < 32) {
        uint carry;
        p0 = uaddCarry(p0, 1u << half_bit, carry);
        p1 += carry;
    } else {
        p1 += 1u << (half_bit - 32);
    }
    uint magnitude = shift >= 32 ? p1 >> (shift - 32) : (p0 >> shift) | (p1 << (32 - shift));
    if (magnitude > 0x7FFFFFFFu) return limit;
    return is_negative ? -int(magnitude) : int(magnitude);
}

// int(round(double(x) * scale)) for scale = mantissa * 2^-shift with the 53-bit mantissa of a double:
// first the product of doubles rounds to 53 bits, ties to even, then round() to a whole number, ties
// away from zero.
int scale_as_double(int x, uint mantissa_low, uint mantissa_high, int shift) {
    uint a = uint(abs(x));
    if (a == 0u || (mantissa_low | mantissa_high) == 0u) return 0;
    uint p0, p1, p2, high, carry;
    umulExtended(a, mantissa_low, p1, p0);
    umulExtended(a, mantissa_high, p2, high);
    p1 = uaddCarry(p1, high, carry);
    p2 += carry;
    // The product has 53 to 84 bits.
    int drop = (p2 != 0u ? findMSB(p2) + 64 : findMSB(p1) + 32) - 52;
    if (drop > 0) {
        uint rest = p0 << (32 - drop);  // the bits dropped, at the top of a word
        p0 = (p0 >> drop) | (p1 << (32 - drop));
        p1 = (p1 >> drop) | (p2 << (32 - drop));
        if (rest > 0x80000000u || (rest == 0x80000000u && (p0 & 1u) != 0u)) {
            p0 = uaddCarry(p0, 1u, carry);
            p1 += carry;
        }
        shift -= drop;
    }
    return round_mantissa(p0, p1, shift, x < 0);
}

ivec4 scale_as_double(ivec4 x, uvec4 mantissa_low, uvec4 mantissa_high, ivec4 shift) {
    ivec4 y;
    for (int k = 0; k < 4; ++k) y[k] = scale_as_double(x[k], mantissa_low[k], mantissa_high[k], shift[k]);
    return y;
}

#endif
