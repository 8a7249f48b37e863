// Scalar functions of TFLite's operators on four lanes.
//
// Vulkan's exp, tanh, sin and pow may be off by far more than float32's last places, or turn into
// NaN outside a small range, and exp and log may make a number of a NaN; what stands here holds on
// every driver.
#ifndef MATH_GLSL
#define MATH_GLSL

// A comparison keeps a NaN where GLSL's max and min need not: TFLite's RELU passes NaN on.
vec4 clamp_low(vec4 x, float low) { return mix(x, vec4(low), lessThan(x, vec4(low))); }
vec4 clamp_high(vec4 x, float high) { return mix(x, vec4(high), greaterThan(x, vec4(high))); }

#define POSITIVE_INFINITY uintBitsToFloat(0x7F800000u)
#define NOT_A_NUMBER uintBitsToFloat(0x7FC00000u)

// By its bits: a driver may take it that there is none.
bvec4 is_nan(vec4 x) { return greaterThan(floatBitsToUint(x) & 0x7FFFFFFFu, uvec4(0x7F800000u)); }

vec4 tflite_exp(vec4 x) { return mix(exp(x), x, is_nan(x)); }

// Vulkan leaves log open for zero and below.
vec4 tflite_log(vec4 x) {
    vec4 y = mix(log(x), vec4(-POSITIVE_INFINITY), equal(x, vec4(0.0)));
    return mix(vec4(NOT_A_NUMBER), y, greaterThanEqual(x, vec4(0.0)));
}

vec4 tflite_sign(vec4 x) { return mix(sign(x), x, is_nan(x)); }

vec4 logistic(vec4 x) {
    // Through exp(-|x|), which never overflows.
    vec4 e = tflite_exp(-abs(x));
    return mix(vec4(1.0), e, lessThan(x, vec4(0.0))) / (1.0 + e);
}

vec4 tflite_tanh(vec4 x) {
    // tanh(|x|) = (1 - e) / (1 + e), e = exp(-2|x|), loses digits near zero: there an odd
    // polynomial, x - x^3/3 + 2x^5/15 - 17x^7/315 + 62x^9/2835 (Taylor, error < 2e-8 below 0.25).
    vec4 a = abs(x);
    vec4 e = tflite_exp(-2.0 * a);
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

// Vulkan asks of sin and cos 11 bits behind the point, and SwiftShader gives no more. So the angle is
// reduced to [-pi/4, pi/4] (three parts of pi/2 by Cody and Waite, exact for the first 2^15 quadrants),
// where Taylor's terms up to the tenth power are good to float32.
vec4 quarter_wave(vec4 x, float first_quadrant) {
    vec4 quadrant = roundEven(x * 0.636619772);
    vec4 r = ((x - quadrant * 1.5703125) - quadrant * 4.83751297e-4) - quadrant * 7.54978995e-8;
    r = clamp(r, -0.8, 0.8);  // far out nothing is left of the angle; the result stays a sine
    vec4 s = r * r;
    vec4 sine = r + r * s * (-0.166666667 + s * (8.33333333e-3 + s * (-1.98412698e-4 + s * 2.75573192e-6)));
    vec4 cosine = 1.0 + s * (-0.5 + s * (0.0416666667 + s * (-1.38888889e-3 + s * (2.48015873e-5 - s * 2.75573192e-7))));
    quadrant = mod(quadrant + first_quadrant, 4.0);
    bvec4 is_cosine = equal(mod(quadrant, 2.0), vec4(1.0));
    vec4 wave = mix(sine, cosine, is_cosine) * mix(vec4(1.0), vec4(-1.0), greaterThan(quadrant, vec4(1.5)));
    bvec4 has_no_sine = greaterThanEqual(floatBitsToUint(x) & 0x7FFFFFFFu, uvec4(0x7F800000u));
    return mix(wave, vec4(NOT_A_NUMBER), has_no_sine);
}
vec4 tflite_sin(vec4 x) { return quarter_wave(x, 0.0); }
vec4 tflite_cos(vec4 x) { return quarter_wave(x, 1.0); }

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
    if (isnan(x) || isnan(y)) return NOT_A_NUMBER;
    // From 2^24 on every float is even, the infinite ones too.
    bool is_odd = abs(y) < 16777216.0 && floor(y) == y && mod(y, 2.0) != 0.0;
    float magnitude = abs(x) == 1.0 ? 1.0 : pow(abs(x), y);
    if (x == 0.0) magnitude = y > 0.0 ? 0.0 : POSITIVE_INFINITY;
    if ((floatBitsToUint(x) >> 31) == 0u) return magnitude;
    if (floor(y) != y && x != 0.0 && !isinf(x)) return NOT_A_NUMBER;
    return is_odd ? -magnitude : magnitude;
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
