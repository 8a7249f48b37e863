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

// Everything below is written for a driver that reads all of it once for each step, whatever is folded
// later: one copy of what operators share, one load for each operand buffer, and one way out of each
// function. On lavapipe that makes a pipeline in two thirds of the time.

// The activations that only limit a value.
vec4 limit(uint op, vec4 x) {
    float low = op == OP_RELU_N1_TO_1 ? -1.0 : 0.0;
    float high = op == OP_RELU ? POSITIVE_INFINITY : op == OP_RELU6 ? 6.0 : 1.0;
    return clamp_range(x, low, high);
}

vec4 unary(uint op, vec4 x) {
    vec4 y = x;
    switch (op) {
    case OP_RELU:
    case OP_RELU6:
    case OP_RELU_N1_TO_1:
    case OP_RELU_0_TO_1: y = limit(op, x); break;
    case OP_LOGISTIC: y = logistic(x); break;
    case OP_HARD_SWISH: y = hard_swish(x); break;
    case OP_ABS: y = abs(x); break;
    case OP_NEG: y = -x; break;
    case OP_SQRT: y = sqrt(x); break;
    case OP_RSQRT: y = 1.0 / sqrt(x); break;
    case OP_SQUARE: y = x * x; break;
#ifdef EPILOGUE_FULL
    case OP_TANH: y = tflite_tanh(x); break;
    case OP_EXP: y = tflite_exp(x); break;
    case OP_LOG: y = tflite_log(x); break;
    case OP_SIN: y = tflite_sin(x); break;
    case OP_COS: y = tflite_cos(x); break;
    case OP_FLOOR: y = floor(x); break;
    case OP_CEIL: y = ceil(x); break;
    case OP_ROUND: y = roundEven(x); break;
    case OP_SIGN: y = tflite_sign(x); break;
    case OP_ELU: y = elu(x); break;
    case OP_GELU: y = gelu(x); break;
    case OP_GELU_TANH: y = gelu_tanh(x); break;
#endif
    }
    return y;
}

vec4 binary(uint op, vec4 x, vec4 y) {
    vec4 z = x;
    switch (op) {
    case OP_ADD: z = x + y; break;
    case OP_SUB: z = x - y; break;
    case OP_MUL: z = x * y; break;
    case OP_DIV: z = x / y; break;
    case OP_MINIMUM: z = tflite_minimum(x, y); break;
    case OP_MAXIMUM: z = tflite_maximum(x, y); break;
    case OP_SQUARED_DIFFERENCE: z = (x - y) * (x - y); break;
    case OP_PRELU: z = mix(x, x * y, lessThan(x, vec4(0.0))); break;
#ifdef EPILOGUE_FULL
    case OP_POW: z = tflite_pow(x, y); break;
    case OP_FLOOR_DIV: z = floor(x / y); break;
    case OP_FLOOR_MOD: z = floor_mod(x, y); break;
    case OP_ATAN2: z = tflite_atan2(x, y); break;
#endif
    }
    return z;
}

vec4 epilogue_operand(uint slot, uint mode, uint index, uint row, uint group, vec4 immediates) {
    vec4 y = vec4(immediates[slot]);
    if (mode != MODE_IMMEDIATE) {
        uint i = mode == MODE_FULL ? index : mode == MODE_CHANNEL ? group : mode == MODE_ROW ? row : 0u;
        STORAGE(ACT) stored;
        if (slot == 0u) stored = epilogue_a.data[i];
        else if (slot == 1u) stored = epilogue_b.data[i];
        else stored = epilogue_c.data[i];
        y = CAT(UNPACK_, ACT)(stored);
        if (mode == MODE_SCALAR || mode == MODE_ROW) y = y.xxxx;
    }
    return y;
}

vec4 epilogue_step(uint word, vec4 x, uint index, uint row, uint group, vec4 immediates) {
    uint op = word & 0xFFu;
    vec4 result;
    if (op < OP_ADD) {
        result = unary(op, x);
    } else {
        uint slot = (word >> 8) & 3u;
        uint mode = (word >> 10) & 7u;
        vec4 y = epilogue_operand(slot, mode, index, row, group, immediates);
        bool is_swapped = ((word >> 13) & 1u) != 0u;
        result = binary(op, is_swapped ? y : x, is_swapped ? x : y);
    }
    return result;
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
