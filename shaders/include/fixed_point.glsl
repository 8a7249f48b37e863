// Fixed-point functions of gemmlowp on single values: a number is its raw int32, its format Qm.n has m
// integer bits. tflite_vk/ops/fixed_point.py is the same on the host.
#ifndef FIXED_POINT_GLSL
#define FIXED_POINT_GLSL

#include "quantize.glsl"

const int INT_MAX = 0x7FFFFFFF;
const int INT_MIN = int(0x80000000u);

int fixed_multiply(int a, int b) {
    return a == INT_MIN && b == INT_MIN ? INT_MAX : high_mul(ivec4(a), ivec4(b)).x;
}

int fixed_divide_by_pot(int x, int exponent) { return divide_by_pot(ivec4(x), ivec4(exponent)).x; }

// x * 2^exponent, saturating; exponent 1 to 31.
int fixed_shift_left(int x, int exponent) {
    int limit = INT_MAX >> exponent;
    return x > limit ? INT_MAX : x < -limit - 1 ? INT_MIN : x << exponent;
}

int count_leading_zeros(int x) { return 31 - findMSB(uint(x)); }

// 1 / (1 + a) in Q0.31 for 0 <= a < 1 in Q0.31: three steps of Newton and Raphson in Q2.29.
int one_over_one_plus(int a) {
    // (a + 1) / 2, rounded; both are positive.
    int half_denominator = int((uint(a) + uint(INT_MAX) + 1u) >> 1);
    int x = 1515870810 + fixed_multiply(half_denominator, -1010580540);
    for (int i = 0; i < 3; ++i) {
        int rest = (1 << 29) - fixed_multiply(half_denominator, x);
        x += fixed_shift_left(fixed_multiply(x, rest), 2);
    }
    return fixed_shift_left(x, 1);
}

// The natural logarithm of x >= 1 with `bits` integer bits, in a format of `to_bits`.
//
// Source: log_x_for_x_greater_than_or_equal_to_1_impl of tflite/kernels/internal/reference/log_softmax.h.
int log_of(int x, int bits, int to_bits) {
    const int LOG_2 = 1488522236;
    const int SQRT_HALF = 1518500250;
    const int SQRT_SQRT_HALF = 1805811301;
    int headroom_a = count_leading_zeros(x);  // and 1
    int a = fixed_shift_left(fixed_multiply(x << (headroom_a - 1), SQRT_HALF), 1);
    int headroom_b = count_leading_zeros(fixed_multiply(x, SQRT_HALF)) - 1;
    int b = headroom_b > 0 ? fixed_shift_left(x, headroom_b) : x;
    int r = min(a, b);
    // Powers of two, one bit of headroom more than the result.
    int accumulator_bits = to_bits + 1;
    int unit = 31 - accumulator_bits;
    int quarter = 1 << (unit - 2);
    int power = max(((bits - headroom_a) << unit) + quarter, ((bits - headroom_b) << unit) - quarter);

    int half_sum = int((uint(r) + uint(SQRT_SQRT_HALF) + 1u) >> 1);
    int q = 2 * (r - SQRT_SQRT_HALF);
    int q2 = fixed_multiply(q, q);
    int numerator = fixed_multiply(q, r) + fixed_multiply(fixed_multiply(q, q2), 117049297);
    int sum = 1057819769 + q + fixed_multiply(127690142, q2);
    int denominator = fixed_multiply(half_sum, sum) + fixed_multiply(638450708, q);
    int quotient = fixed_multiply(fixed_divide_by_pot(numerator, accumulator_bits), one_over_one_plus(denominator));
    return fixed_shift_left(fixed_multiply(power, LOG_2) + quotient, 1);
}

// 1 / sqrt(x) as a multiplier and a shift for x >= 0: five steps of Newton and Raphson in Q3.28.
//
// Source: GetInvSqrtQuantizedMultiplierExp of tflite/kernels/internal/common.h.
int inverse_sqrt(int x, out int shift) {
    shift = 0;
    if (x <= 1) return INT_MAX;
    int right = 11;
    while (x >= 1 << 29) {
        x /= 4;
        ++right;
    }
    int pairs = (count_leading_zeros(x) - 1) / 2 - 1;
    right -= pairs;
    x <<= 2 * pairs;
    int half_x = fixed_divide_by_pot(x >> 1, 1);
    int half_three = (1 << 28) + (1 << 27);
    int y = 1 << 28;
    for (int i = 0; i < 5; ++i) {
        int cube = fixed_shift_left(fixed_multiply(fixed_multiply(y, y), y), 6);
        y = fixed_shift_left(fixed_multiply(half_three, y) - fixed_multiply(half_x, cube), 3);
    }
    y = fixed_multiply(y, 1518500250);
    shift = -max(right, 0);
    return y << max(-right, 0);
}

#endif
