// Division by numbers that the host knows: a product instead, since graphics processors have no
// divider, and software drivers divide lane by lane.
#ifndef DIVIDE_GLSL
#define DIVIDE_GLSL

// n / divisor for n below 2^31, from the words that tflite_vk/ops/division.py makes: the divisor's
// magic number, and a word that holds the shifts of up to six divisors, of which this is `which`.
uint divide(uint n, uint magic, uint shifts, uint which) {
    uint high;
    uint low;
    umulExtended(n << 1, magic, high, low);
    return high >> bitfieldExtract(shifts, int(which * 5u), 5);
}

#endif
