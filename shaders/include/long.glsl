// Arithmetic on integers of 64 bits, four at a time; no device feature is needed for it. It wraps, as
// TFLite's does.
#ifndef LONG_GLSL
#define LONG_GLSL

#include "tensor.glsl"

Long4 choose(Long4 a, Long4 b, bvec4 is_b) { return Long4(mix(a.low, b.low, is_b), mix(a.high, b.high, is_b)); }
Long4 all_lanes(Long4 v, uint lane) { return Long4(uvec4(v.low[lane]), uvec4(v.high[lane])); }
Long4 crossed(Long4 v) { return Long4(v.low.zwxy, v.high.zwxy); }
Long4 swapped(Long4 v) { return Long4(v.low.yxwz, v.high.yxwz); }
Long4 reversed(Long4 v) { return Long4(v.low.wzyx, v.high.wzyx); }
Long4 long_of(ivec4 v) { return Long4(uvec4(v), uvec4(v >> 31)); }
Long4 long_of(Long4 v) { return v; }
Long4 long_of(int v) { return Long4(uvec4(v), uvec4(v >> 31)); }

bvec4 is_negative(Long4 v) { return lessThan(ivec4(v.high), ivec4(0)); }
bvec4 is_equal(Long4 a, Long4 b) { return equal((a.low ^ b.low) | (a.high ^ b.high), uvec4(0u)); }
bvec4 is_less(Long4 a, Long4 b) {
    bvec4 same_high = equal(a.high, b.high);
    return mix(lessThan(ivec4(a.high), ivec4(b.high)), lessThan(a.low, b.low), same_high);
}

Long4 add(Long4 a, Long4 b) {
    uvec4 carry;
    uvec4 low = uaddCarry(a.low, b.low, carry);
    return Long4(low, a.high + b.high + carry);
}
Long4 negated(Long4 v) { return add(Long4(~v.low, ~v.high), long_of(1)); }
Long4 subtract(Long4 a, Long4 b) {
    uvec4 borrow;
    uvec4 low = usubBorrow(a.low, b.low, borrow);
    return Long4(low, a.high - b.high - borrow);
}
Long4 multiply(Long4 a, Long4 b) {
    uvec4 high;
    uvec4 low;
    umulExtended(a.low, b.low, high, low);
    return Long4(low, high + a.low * b.high + a.high * b.low);
}
Long4 absolute(Long4 v) { return choose(v, negated(v), is_negative(v)); }

// By a divisor below 2^31, cut off toward zero as in C++.
Long4 divided(Long4 v, uint divisor) {
    Long4 n = absolute(v);
    Long4 quotient = long_of(0);
    uvec4 rest = uvec4(0u);
    for (int bit = 63; bit >= 0; --bit) {
        uvec4 word = bit > 31 ? n.high : n.low;
        rest = rest << 1 | ((word >> (bit & 31)) & 1u);
        uvec4 fits = uvec4(greaterThanEqual(rest, uvec4(divisor)));
        rest -= fits * divisor;
        quotient = Long4(quotient.low << 1 | fits, quotient.high << 1 | quotient.low >> 31);
    }
    return choose(quotient, negated(quotient), is_negative(v));
}

// The remainder of two magnitudes, bit by bit; anything where the divisor is zero.
Long4 remainder_of(Long4 n, Long4 divisor) {
    Long4 rest = long_of(0);
    for (int bit = 63; bit >= 0; --bit) {
        uvec4 word = bit > 31 ? n.high : n.low;
        rest = Long4(rest.low << 1 | ((word >> (bit & 31)) & 1u), rest.high << 1 | rest.low >> 31);
        // What is left is less than the divisor, 2^63 at the most: shifted it still fits, unsigned.
        bvec4 is_high = equal(rest.high, divisor.high);
        bvec4 is_below = mix(lessThan(rest.high, divisor.high), lessThan(rest.low, divisor.low), is_high);
        rest = choose(subtract(rest, divisor), rest, is_below);
    }
    return rest;
}

// With the sign of the divisor, as Python's %.
Long4 floor_mod(Long4 a, Long4 b) {
    Long4 rest = remainder_of(absolute(a), absolute(b));
    bvec4 is_zero = equal(rest.low | rest.high, uvec4(0u));
    bvec4 is_other_sign = lessThan(ivec4(a.high ^ b.high), ivec4(0));
    Long4 signed_rest = choose(rest, negated(rest), is_negative(a));
    return choose(signed_rest, add(signed_rest, b), bvec4(uvec4(not(is_zero)) & uvec4(is_other_sign)));
}

#endif
