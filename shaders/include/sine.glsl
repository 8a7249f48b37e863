// sin and cos with float32's precision for every finite argument.
//
// Vulkan asks of sin and cos an absolute error of 2^-11 within [-pi, pi], and nothing beyond;
// SwiftShader is off by 2e-4. Here the argument is reduced to [-pi/4, pi/4] around a multiple of
// pi/2, where short polynomials in z = r * r are exact to 2^-26.
#ifndef SINE_GLSL
#define SINE_GLSL

// From here on the product of a quadrant's number and PI_2_HIGH or PI_2_MIDDLE needs over 24 bits.
const float LARGE_ANGLE = 8192.0;
// pi / 2 in three parts (Cody and Waite): 9 bits, 11 bits, and the rest as a float.
const float PI_2_HIGH = 1.5703125;
const float PI_2_MIDDLE = 4.837512969970703e-4;
const float PI_2_LOW = 7.549790126e-8;

// 2 / pi in binary after 32 zero bits: enough for 2^128 (Payne and Hanek).
const uint TWO_OVER_PI[8] = uint[8](
    0u, 0xA2F9836Eu, 0x4E441529u, 0xFC2757D1u, 0xF534DDC0u, 0xDB629599u, 0x3C439041u, 0xFE5163ABu);

uint two_over_pi_bits(uint first) {
    uint word = first >> 5, shift = first & 31u;
    uint high = TWO_OVER_PI[word] << shift;
    return shift == 0u ? high : high | (TWO_OVER_PI[word + 1u] >> (32u - shift));
}

// The nearest multiple of pi/2, modulo 4, and what is left, for a finite x from 4096 on.
float reduce_large(float x, out int quadrant) {
    uint bits = floatBitsToUint(x);
    uint m = (bits & 0x7FFFFFu) | 0x800000u;
    // x is m * 2^e. Bits of 2/pi above 2^(2-e) make multiples of 4: the window starts behind them.
    int e = int((bits >> 23) & 0xFFu) - 150;
    uint first = uint(e + 30);
    uint high, low, carry, middle, ignored;
    umulExtended(m, two_over_pi_bits(first + 64u), high, low);
    umulExtended(m, two_over_pi_bits(first + 32u), carry, middle);
    uint top = m * two_over_pi_bits(first) + carry;
    middle = uaddCarry(middle, high, carry);
    top += carry;
    // Two bits of quadrant, then the fraction, read with a sign: -1/2 to 1/2 of a quadrant.
    int fraction = int((top << 2) | (middle >> 30));
    uint rest = (middle << 2) | (low >> 30);
    quadrant = int(top >> 30) + (fraction < 0 ? 1 : 0);
    float quarter = float(fraction) * 2.3283064365e-10 + float(rest) * 5.4210108624e-20;
    return quarter * 1.5707963268;
}

vec4 sine(vec4 x, int quarters) {
    vec4 a = abs(x);
    vec4 turns = roundEven(a * 0.636619772);
    precise vec4 r = ((a - turns * PI_2_HIGH) - turns * PI_2_MIDDLE) - turns * PI_2_LOW;
    ivec4 quadrant = ivec4(turns);
    if (any(greaterThanEqual(a, vec4(LARGE_ANGLE)))) {
        for (int i = 0; i < 4; ++i) {
            if (a[i] >= LARGE_ANGLE && !isinf(a[i])) {
                int q;
                r[i] = reduce_large(a[i], q);
                quadrant[i] = q;
            }
        }
    }
    vec4 z = r * r;
    vec4 sines = r + r * z * (-0.16666655242 + z * (0.008332161233 + z * -0.00019515307213));
    vec4 cosines = 1.0 - 0.5 * z + z * z * (0.041666645557 + z * (-0.0013887335081 + z * 2.4435124942e-5));
    // cos is sin a quadrant later; sin of a negative x is negative, which cos doesn't mind.
    quadrant += quarters;
    vec4 y = mix(sines, cosines, notEqual(quadrant & 1, ivec4(0)));
    y = mix(y, -y, notEqual(quadrant & 2, ivec4(0)));
    if (quarters == 0) y = mix(y, -y, lessThan(x, vec4(0.0)));
    // Infinity has no sine, and NaN stays NaN; comparisons on bits hold on every driver.
    uvec4 bits = floatBitsToUint(a);
    return mix(y, uintBitsToFloat(uvec4(0x7FC00000u)), greaterThanEqual(bits, uvec4(0x7F800000u)));
}

vec4 tflite_sin(vec4 x) { return sine(x, 0); }
vec4 tflite_cos(vec4 x) { return sine(x, 1); }

#endif
