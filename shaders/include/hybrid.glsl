// How TFLite quantizes float activations while running ("dynamic range"): a scale and a zero point for
// each row, from its lowest and highest value. Divisions are exact: Vulkan allows them 2.5 last places,
// and one place moves a value to the next step.
//
// Source: PortableSymmetricQuantizeFloats and PortableAsymmetricQuantizeFloats of
// tflite/kernels/internal/reference/portable_tensor_utils.cc; by experiment, LiteRT 2.3.0 divides the
// range in float32 and adds the zero point after rounding.
#ifndef HYBRID_GLSL
#define HYBRID_GLSL

// A normal float is mantissa * 2^exponent with 24 bits, but for its sign. Subnormal ones count as zero.
uint mantissa_of(float v) {
    uint bits = floatBitsToUint(v) & 0x7FFFFFFFu;
    return bits < 0x800000u ? 0u : (bits & 0x7FFFFFu) | 0x800000u;
}
int exponent_of(float v) { return int((floatBitsToUint(v) >> 23) & 0xFFu) - 150; }

// The float nearest to (q + rest) * 2^exponent, ties to even: q has 26 bits or more, 0 <= rest < 1.
float nearest_float(uint q, bool has_rest, int exponent) {
    int drop = findMSB(q) - 23;
    uint mantissa = q >> drop;
    uint rest = q << (32 - drop);
    bool is_up = rest > 0x80000000u || (rest == 0x80000000u && (has_rest || (mantissa & 1u) != 0u));
    int biased = exponent + drop + 150;
    if (biased < 1) return 0.0;
    if (biased > 254) return uintBitsToFloat(0x7F800000u);
    return uintBitsToFloat((uint(biased) << 23) + (mantissa - 0x800000u) + uint(is_up));
}

// v / divisor for v > 0 and a whole divisor from 65 to 255.
float divide_by(float v, uint divisor) {
    uint m = mantissa_of(v) << 7;
    uint rest = m % divisor;
    uint q = ((m / divisor) << 7) | ((rest << 7) / divisor);
    return nearest_float(q, (rest << 7) % divisor != 0u, exponent_of(v) - 14);
}

// dividend / v for v > 0 and a whole dividend up to 127.
float divide_whole(uint dividend, float v) {
    uint m = mantissa_of(v);
    uint q = (dividend << 24) / m;
    uint rest = (dividend << 24) % m;
    // Eight more bits at a time: at least 25 for a dividend of 1.
    for (int i = 0; i < 3; ++i) {
        q = (q << 8) | ((rest << 8) / m);
        rest = (rest << 8) % m;
    }
    return nearest_float(q, rest != 0u, -48 - exponent_of(v));
}

// a * i > b * j, and >= where ties count, for a, b >= 0 and i, j below 512.
bool is_more(float a, uint i, float b, uint j, bool ties_count) {
    uvec2 left;   // low and high word
    uvec2 right;
    umulExtended(mantissa_of(a), i, left.y, left.x);
    umulExtended(mantissa_of(b), j, right.y, right.x);
    int shift = exponent_of(a) - exponent_of(b);
    if (right == uvec2(0u)) return left != uvec2(0u);
    if (left == uvec2(0u)) return false;
    if (abs(shift) > 30) return shift > 0;
    // 33 bits and 30 more.
    if (shift > 0) left = uvec2(left.x << shift, (left.y << shift) | (left.x >> (32 - shift)));
    if (shift < 0) right = uvec2(right.x << -shift, (right.y << -shift) | (right.x >> (32 + shift)));
    if (left.y != right.y) return left.y > right.y;
    return left.x > right.x || (left.x == right.x && ties_count);
}

// -0.5 rounded as TFLite does where the range is -v to v: it divides doubles, and the quotient may come
// out a last place above -0.5.
int middle_zero_point(float v) {
    int m = int(mantissa_of(v));
    int bits = m >= 255 * 65536 ? 36 : 37;                  // m * 2^bits / 255 has 53 bits
    int rest = (m % 255) * (1 << (bits & 7)) % 255;         // 2^8 is 1 modulo 255
    if (rest > 127) rest -= 255;
    return rest * 255 * (1 << (46 - bits)) < -m ? 0 : -1;
}

// The zero point of values from -below to above: 255 below / (below + above) - 128, ties away from 0.
int zero_point_of(float below, float above) {
    if (below == above) return middle_zero_point(below);
    float guess = 255.0 * (below / (below + above));
    int n = clamp(int(guess) - 1, 0, 255);
    while (n < 255 && is_more(below, uint(509 - 2 * n), above, uint(2 * n + 1), n >= 128)) ++n;
    return n - 128;
}

// To nearest, ties away from zero, as C's round().
vec4 round_away(vec4 v) {
    vec4 size = abs(v);
    vec4 whole = floor(size);
    whole += vec4(greaterThanEqual(size - whole, vec4(0.5)));
    return mix(whole, -whole, lessThan(v, vec4(0.0)));
}

#endif
