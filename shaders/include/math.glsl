// Scalar functions of TFLite's operators on four lanes.
//
// Vulkan's exp, tanh and pow may be off by far more than float32's last places, or turn into
// NaN outside a small range; what stands here holds on every driver.
#ifndef MATH_GLSL
#define MATH_GLSL

#include "sine.glsl"

#define POSITIVE_INFINITY uintBitsToFloat(0x7F800000u)
#define NOT_A_NUMBER uintBitsToFloat(0x7FC00000u)

// On the bits: drivers may compile isnan to false, and SwiftShader's exp makes infinity of NaN.
bvec4 is_nan(vec4 x) { return greaterThan(floatBitsToUint(x) & 0x7FFFFFFFu, uvec4(0x7F800000u)); }

// TFLite's RELU passes NaN on. GLSL's max and min need not, and NVIDIA's compiler makes those of
// comparisons too.
vec4 clamp_low(vec4 x, float low) { return mix(max(x, vec4(low)), x, is_nan(x)); }
vec4 clamp_range(vec4 x, float low, float high) {
    return mix(clamp(x, vec4(low), vec4(high)), x, is_nan(x));
}

// Of what compares with nothing, the second.
vec4 tflite_minimum(vec4 x, vec4 y) { return mix(mix(y, x, lessThan(x, y)), y, is_nan(y)); }
vec4 tflite_maximum(vec4 x, vec4 y) { return mix(mix(y, x, greaterThan(x, y)), y, is_nan(y)); }

vec4 tflite_sign(vec4 x) { return mix(sign(x), x, is_nan(x)); }

vec4 tflite_exp(vec4 x) { return mix(exp(x), x, is_nan(x)); }

// log(2^k * m) = k * log(2) + 2 * atanh((m - 1) / (m + 1)), m within sqrt(2) of 1: exact near 1,
// where Vulkan allows an error of 2^-21 however small the result, and for subnormal values.
// The series of atanh ends before 2 / 11 * 0.1716^11 = 7e-10.
vec4 tflite_log(vec4 x) {
    uvec4 bits = floatBitsToUint(x);
    bvec4 is_subnormal = lessThan(bits, uvec4(0x00800000u));
    uvec4 scaled = mix(bits, floatBitsToUint(vec4(bits)), is_subnormal);
    // 0x3F3504F3 is sqrt(1/2): from there on to sqrt(2) the exponent is 0.
    ivec4 exponent = ivec4(scaled - 0x3F3504F3u) >> 23;
    vec4 m = uintBitsToFloat(scaled - uvec4(exponent << 23));
    vec4 k = vec4(exponent - mix(ivec4(0), ivec4(149), is_subnormal));
    vec4 s = (m - 1.0) / (m + 1.0);
    vec4 z = s * s;
    vec4 series = 2.0 * s * (1.0 + z * (0.333333333 + z * (0.2 + z * (0.142857143 + z * 0.111111111))));
    // log(2) in 15 bits, whose product with k is exact, and the rest.
    vec4 y = k * 0.693145751953125 + (k * 1.42860677e-6 + series);
    y = mix(y, x, equal(bits, uvec4(0x7F800000u)));
    y = mix(y, vec4(-POSITIVE_INFINITY), equal(bits & 0x7FFFFFFFu, uvec4(0u)));
    bvec4 is_undefined = greaterThan(bits, uvec4(0x80000000u));
    y = mix(y, vec4(NOT_A_NUMBER), is_undefined);
    return mix(y, x, is_nan(x));
}

vec4 logistic(vec4 x) {
    // Through exp(-|x|), which never overflows.
    vec4 e = tflite_exp(-abs(x));
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
// 0.5 * (1 + tanh(u)) is logistic(2 u), which loses no digits where tanh is near -1.
vec4 gelu_tanh(vec4 x) { return x * logistic(1.595769122 * (x + 0.044715 * x * x * x)); }

// C's atan2, which GLSL's leaves open where both are zero or one is no number. Of the octant's ratio,
// or of its distance from 1 as an angle, Taylor's terms up to the 15th power are good to float32.
vec4 tflite_atan2(vec4 y, vec4 x) {
    vec4 large = max(abs(x), abs(y));
    vec4 ratio = min(abs(x), abs(y)) / large;
    ratio = mix(ratio, vec4(1.0), equal(abs(x), abs(y)));  // infinities too
    ratio = mix(ratio, vec4(0.0), equal(large, vec4(0.0)));
    bvec4 is_near_1 = greaterThan(ratio, vec4(0.414213562));
    vec4 t = mix(ratio, (ratio - 1.0) / (ratio + 1.0), is_near_1);
    vec4 s = t * t;
    vec4 tail = 0.111111111 + s * (-0.0909090909 + s * (0.0769230769 - s * 0.0666666667));
    vec4 angle = t + t * s * (-0.333333333 + s * (0.2 + s * (-0.142857143 + s * tail)));
    angle = mix(angle, angle + 0.785398163, is_near_1);
    angle = mix(angle, 1.57079633 - angle, greaterThan(abs(y), abs(x)));
    angle = mix(angle, 3.14159265 - angle, notEqual(floatBitsToUint(x) >> 31, uvec4(0u)));
    angle = uintBitsToFloat(floatBitsToUint(angle) | (floatBitsToUint(y) & 0x80000000u));
    return mix(mix(angle, x, is_nan(x)), y, is_nan(y));
}

// TFLite's POW is C's: negative bases with whole exponents are defined, GLSL's pow is not.
float tflite_pow1(float x, float y) {
    if (y == 0.0 || x == 1.0) return 1.0;
    if (any(is_nan(vec4(x, y, x, y)))) return NOT_A_NUMBER;
    // From 2^24 on every float is even.
    bool is_odd = abs(y) < 16777216.0 && floor(y) == y && mod(y, 2.0) != 0.0;
    float magnitude = x == 0.0 ? (y > 0.0 ? 0.0 : POSITIVE_INFINITY)
                      : abs(x) == 1.0 ? 1.0 : pow(abs(x), y);
    if (floatBitsToInt(x) >= 0) return magnitude;
    if (is_odd) return -magnitude;
    return floor(y) == y || x == 0.0 || isinf(x) ? magnitude : NOT_A_NUMBER;
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
