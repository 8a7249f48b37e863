// Scalar functions of TFLite's operators on four lanes.
//
// Vulkan's exp, tanh and pow may be off by far more than float32's last places, or turn into
// NaN outside a small range; what stands here holds on every driver.
#ifndef MATH_GLSL
#define MATH_GLSL

#include "sine.glsl"

// A comparison keeps a NaN where GLSL's max and min need not: TFLite's RELU passes NaN on.
vec4 clamp_low(vec4 x, float low) { return mix(x, vec4(low), lessThan(x, vec4(low))); }
vec4 clamp_high(vec4 x, float high) { return mix(x, vec4(high), greaterThan(x, vec4(high))); }

vec4 tflite_exp(vec4 x) { return exp(x); }

vec4 logistic(vec4 x) {
    // Through exp(-|x|), which never overflows.
    vec4 e = exp(-abs(x));
    return mix(vec4(1.0), e, lessThan(x, vec4(0.0))) / (1.0 + e);
}

vec4 tflite_tanh(vec4 x) {
    // tanh(|x|) = (1 - e) / (1 + e), e = exp(-2|x|), loses digits near zero: there an odd
    // polynomial, x - x^3/3 + 2x^5/15 - 17x^7/315 + 62x^9/2835 (Taylor, error < 2e-8 below 0.25).
    vec4 a = abs(x);
    vec4 e = exp(-2.0 * a);
    vec4 large = sign(x) * (1.0 - e) / (1.0 + e);
    vec4 s = x * x;
    vec4 small = x + x * s * (-0.333333333 + s * (0.133333333 + s * (-0.0539682540 + s * 0.0218694885)));
    return mix(large, small, lessThan(a, vec4(0.25)));
}

// Divided, not multiplied by a sixth: the rounding of the reference kernel.
vec4 hard_swish(vec4 x) { return x * clamp(x + 3.0, vec4(0.0), vec4(6.0)) / 6.0; }

// e^x - 1 without losing digits near zero (Taylor below 0.25, error < 1e-8 relative).
vec4 expm1(vec4 x) {
    vec4 small = x * (1.0 + x * (0.5 + x * (0.166666667 + x * (0.0416666667 + x * (0.00833333333 + x * 0.00138888889)))));
    return mix(exp(x) - 1.0, small, lessThan(abs(x), vec4(0.25)));
}

vec4 elu(vec4 x) { return mix(x, expm1(min(x, vec4(0.0))), lessThan(x, vec4(0.0))); }

// erf by Abramowitz and Stegun 7.1.26 has an error of 1.5e-7; near zero the Taylor series keeps
// relative precision.
vec4 tflite_erf(vec4 x) {
    vec4 a = abs(x);
    vec4 t = 1.0 / (1.0 + 0.3275911 * a);
    vec4 p = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))));
    vec4 large = sign(x) * (1.0 - p * exp(-a * a));
    vec4 s = x * x;
    vec4 small = 1.128379167 * x * (1.0 + s * (-0.333333333 + s * (0.1 + s * (-0.0238095238 + s * 0.00462962963))));
    return mix(large, small, lessThan(a, vec4(0.4)));
}

vec4 gelu(vec4 x) { return 0.5 * x * (1.0 + tflite_erf(x * 0.707106781)); }
vec4 gelu_tanh(vec4 x) { return 0.5 * x * (1.0 + tflite_tanh(0.797884561 * (x + 0.044715 * x * x * x))); }

// TFLite's POW is C's: negative bases with whole exponents are defined, GLSL's pow is not.
float tflite_pow1(float x, float y) {
    if (y == 0.0) return 1.0;
    if (x == 0.0) return y > 0.0 ? 0.0 : uintBitsToFloat(0x7F800000u);
    float magnitude = pow(abs(x), y);
    if (x > 0.0) return magnitude;
    if (floor(y) != y) return uintBitsToFloat(0x7FC00000u);
    return mod(y, 2.0) == 0.0 ? magnitude : -magnitude;
}
vec4 tflite_pow(vec4 x, vec4 y) {
    return vec4(tflite_pow1(x.x, y.x), tflite_pow1(x.y, y.y), tflite_pow1(x.z, y.z), tflite_pow1(x.w, y.w));
}

// FLOOR_MOD takes the sign of the divisor, as Python's %.
vec4 floor_mod(vec4 x, vec4 y) {
    vec4 r = x - y * trunc(x / y);
    return mix(r, r + y, notEqual(lessThan(r * y, vec4(0.0)), bvec4(false)));
}

#endif
