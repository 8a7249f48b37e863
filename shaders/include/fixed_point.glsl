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

#endif
