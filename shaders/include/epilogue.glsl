// The epilogue every compute kernel ends in: fused elementwise operators, held in specialization
// constants so that the driver folds the switch (docs/architecture.md, "Fusion").
//
// A driver still reads the whole switch once for each step before it folds, which was most of the
// time a pipeline took on lavapipe. So each kernel is built twice (tools/build_shaders.py): with four
// steps of the common, cheap operators; and with EPILOGUE_FULL, eight steps of all.
//
// A kernel defines EPILOGUE_BINDING, the first of three operand bindings, puts EPILOGUE_PUSH first
// in its push constants, and calls `epilogue` on each group of four lanes it computed.
// tflite_vk/ops/epilogue.py builds the step words: keep the numbers in step with it (a test does).
#ifndef EPILOGUE_GLSL
#define EPILOGUE_GLSL

#extension GL_EXT_control_flow_attributes : require

#include "math.glsl"
#include "tensor.glsl"

layout(constant_id = 3) const uint STEP0 = 0u;
layout(constant_id = 4) const uint STEP1 = 0u;
layout(constant_id = 5) const uint STEP2 = 0u;
layout(constant_id = 6) const uint STEP3 = 0u;
layout(constant_id = 7) const uint STEP4 = 0u;
layout(constant_id = 8) const uint STEP5 = 0u;
layout(constant_id = 9) const uint STEP6 = 0u;
layout(constant_id = 10) const uint STEP7 = 0u;

TENSOR_IN(EPILOGUE_BINDING, ACT, epilogue_a);
TENSOR_IN(EPILOGUE_BINDING + 1, ACT, epilogue_b);
TENSOR_IN(EPILOGUE_BINDING + 2, ACT, epilogue_c);

// Four immediates: scalar constants and attributes such as alpha.
#define EPILOGUE_PUSH vec4 immediates

const uint OP_NONE = 0u;
const uint OP_RELU = 1u;
const uint OP_RELU6 = 2u;
const uint OP_RELU_N1_TO_1 = 3u;
const uint OP_RELU_0_TO_1 = 4u;
const uint OP_TANH = 5u;
const uint OP_LOGISTIC = 6u;
const uint OP_HARD_SWISH = 7u;
const uint OP_ABS = 8u;
const uint OP_NEG = 9u;
const uint OP_EXP = 10u;
const uint OP_LOG = 11u;
const uint OP_SQRT = 12u;
const uint OP_RSQRT = 13u;
const uint OP_SQUARE = 14u;
const uint OP_SIN = 15u;
const uint OP_COS = 16u;
const uint OP_FLOOR = 17u;
const uint OP_CEIL = 18u;
const uint OP_ROUND = 19u;
const uint OP_SIGN = 20u;
const uint OP_ELU = 21u;
const uint OP_GELU = 22u;
const uint OP_GELU_TANH = 23u;
const uint OP_ADD = 32u;
const uint OP_SUB = 33u;
const uint OP_MUL = 34u;
const uint OP_DIV = 35u;
const uint OP_MINIMUM = 36u;
const uint OP_MAXIMUM = 37u;
const uint OP_POW = 38u;
const uint OP_SQUARED_DIFFERENCE = 39u;
const uint OP_FLOOR_DIV = 40u;
const uint OP_FLOOR_MOD = 41u;
const uint OP_PRELU = 42u;
const uint OP_ATAN2 = 43u;

// How an operand's element is found.
const uint MODE_FULL = 1u;       // same shape as the result
const uint MODE_CHANNEL = 2u;    // one value per innermost index
const uint MODE_SCALAR = 3u;     // one value in all
const uint MODE_ROW = 4u;        // one value per row (innermost dimension 1)
const uint MODE_IMMEDIATE = 5u;  // push constant; the slot selects which

vec4 unary(uint op, vec4 x) {
    switch (op) {
    case OP_RELU: return clamp_low(x, 0.0);
    case OP_RELU6: return clamp_range(x, 0.0, 6.0);
    case OP_RELU_N1_TO_1: return clamp_range(x, -1.0, 1.0);
    case OP_RELU_0_TO_1: return clamp_range(x, 0.0, 1.0);
    case OP_LOGISTIC: return logistic(x);
    case OP_HARD_SWISH: return hard_swish(x);
    case OP_ABS: return abs(x);
    case OP_NEG: return -x;
    case OP_SQRT: return sqrt(x);
    case OP_RSQRT: return 1.0 / sqrt(x);
    case OP_SQUARE: return x * x;
#ifdef EPILOGUE_FULL
    case OP_TANH: return tflite_tanh(x);
    case OP_EXP: return tflite_exp(x);
    case OP_LOG: return tflite_log(x);
    case OP_SIN: return tflite_sin(x);
    case OP_COS: return tflite_cos(x);
    case OP_FLOOR: return floor(x);
    case OP_CEIL: return ceil(x);
    case OP_ROUND: return roundEven(x);
    case OP_SIGN: return tflite_sign(x);
    case OP_ELU: return elu(x);
    case OP_GELU: return gelu(x);
    case OP_GELU_TANH: return gelu_tanh(x);
#endif
    }
    return x;
}

vec4 binary(uint op, vec4 x, vec4 y) {
    switch (op) {
    case OP_ADD: return x + y;
    case OP_SUB: return x - y;
    case OP_MUL: return x * y;
    case OP_DIV: return x / y;
    case OP_MINIMUM: return tflite_minimum(x, y);
    case OP_MAXIMUM: return tflite_maximum(x, y);
    case OP_SQUARED_DIFFERENCE: return (x - y) * (x - y);
    case OP_PRELU: return mix(x, x * y, lessThan(x, vec4(0.0)));
#ifdef EPILOGUE_FULL
    case OP_POW: return tflite_pow(x, y);
    case OP_FLOOR_DIV: return floor(x / y);
    case OP_FLOOR_MOD: return floor_mod(x, y);
    case OP_ATAN2: return tflite_atan2(x, y);
#endif
    }
    return x;
}

vec4 epilogue_load(uint slot, uint i) {
    switch (slot) {
    case 0u: return LOAD(ACT, epilogue_a, i);
    case 1u: return LOAD(ACT, epilogue_b, i);
    }
    return LOAD(ACT, epilogue_c, i);
}

vec4 epilogue_operand(uint slot, uint mode, uint index, uint row, uint group, vec4 immediates) {
    switch (mode) {
    case MODE_FULL: return epilogue_load(slot, index);
    case MODE_CHANNEL: return epilogue_load(slot, group);
    case MODE_SCALAR: return epilogue_load(slot, 0u).xxxx;
    case MODE_ROW: return epilogue_load(slot, row).xxxx;
    }
    return vec4(immediates[slot]);
}

vec4 epilogue_step(uint word, vec4 x, uint index, uint row, uint group, vec4 immediates) {
    uint op = word & 0xFFu;
    if (op == OP_NONE) return x;
    if (op < OP_ADD) return unary(op, x);
    uint slot = (word >> 8) & 3u;
    uint mode = (word >> 10) & 7u;
    vec4 y = epilogue_operand(slot, mode, index, row, group, immediates);
    return ((word >> 13) & 1u) != 0u ? binary(op, y, x) : binary(op, x, y);
}

#ifdef EPILOGUE_FULL
const uint NUM_STEPS = uint(STEP0 != 0u) + uint(STEP1 != 0u) + uint(STEP2 != 0u) + uint(STEP3 != 0u)
    + uint(STEP4 != 0u) + uint(STEP5 != 0u) + uint(STEP6 != 0u) + uint(STEP7 != 0u);
#else
const uint NUM_STEPS = uint(STEP0 != 0u) + uint(STEP1 != 0u) + uint(STEP2 != 0u) + uint(STEP3 != 0u);
#endif

// x: four lanes of the result; index: its group of the output tensor = row * groups per row + group.
vec4 epilogue(vec4 x, uint index, uint row, uint group, vec4 immediates) {
    // A loop that the driver unrolls by the steps in use: it then reads the switch that many times
    // only, where eight calls in a row cost it the whole switch eight times.
    uint words[8] = uint[8](STEP0, STEP1, STEP2, STEP3, STEP4, STEP5, STEP6, STEP7);
    [[unroll]] for (uint s = 0u; s < NUM_STEPS; ++s) {
        x = epilogue_step(words[s], x, index, row, group, immediates);
    }
    return x;
}

#endif
