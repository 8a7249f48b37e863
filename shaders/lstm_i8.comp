#version 450
#extension GL_GOOGLE_include_directive : require
// LSTM of int8 with int16 gates and cells over a whole sequence, as lstm: one workgroup for each sequence
// of the batch walks its steps. Sums of the inputs' products were computed before, for all steps at once.
//
// Gates stand in the order input, forget, cell, output; without an input gate (CIFG) three are left.
// Between steps all values lie in a scratch buffer, those of int8 as packed words in the first lane.
//
// Source: CalculateLstmGateInteger8x8_16 and what is behind it in tflite/kernels/lstm_eval.cc.

#include "dispatch.glsl"
#include "dot4.glsl"
#include "fixed_point.glsl"
#include "wide.glsl"

layout(constant_id = 3) const uint GATES = 4u;
layout(constant_id = 4) const uint HAS_PEEPHOLE = 0u;
layout(constant_id = 5) const uint HAS_PROJECTION = 0u;
layout(constant_id = 6) const uint HAS_LAYER_NORM = 0u;

TENSOR_IN(0, i32, inputs);      // [step and sequence][gate][cell group]
TENSOR_IN(1, u32, recurrent);   // [output group][gate][cell group], as conv_2d_i8
TENSOR_IN(2, i32, constants);   // factors of the gates, then vectors of the cells (lstm_constants)
TENSOR_IN(3, u32, projection);  // [cell group][output group], as conv_2d_i8
TENSOR_IN(4, i8, h_before);
TENSOR_IN(5, i16, c_before);
TENSOR_OUT(6, i8, h_after);
TENSOR_OUT(7, i16, c_after);
layout(set = 0, binding = 8, std430) coherent buffer scratch_block { ivec4 data[]; } scratch;
TENSOR_OUT(9, i8, y);
layout(set = 0, binding = 10, std430) readonly buffer tables_block { int data[]; } tables;

layout(push_constant) uniform Push {
    uint sequences;
    uint steps;
    uint cells;
    uint cell_groups;
    uint output_groups;
    uint step_rows;       // rows of inputs and y from step to step
    uint sequence_rows;   // and from sequence to sequence
    int cell_shift;       // of products of a gate and a new value
    int cell_clip;        // 0: none
    int projection_clip;
    int hidden_multiplier;
    int hidden_shift;
    int hidden_zero;
    int projection_multiplier;
    int projection_shift;
    int output_zero;
} p;

const uint INPUT = 0u;
const uint FORGET = GATES - 3u;
const uint CELL = GATES - 2u;
const uint OUTPUT = GATES - 1u;

// Tables of 65,536 results each: the logistic function and tanh of gates, tanh of cells.
const uint LOGISTIC = 0u;
const uint TANH = 1u;
const uint TANH_OF_CELL = 2u;

// Vectors of the cells behind the factors: biases of either product, then these.
const uint FACTORS = 3u;
const uint PEEPHOLES = 2u * GATES;
const uint NORMS = PEEPHOLES + HAS_PEEPHOLE * GATES;
const uint NORM_BIASES = NORMS + GATES;
const uint PROJECTION_BIAS = NORMS + 2u * HAS_LAYER_NORM * GATES;

shared int partial[gl_WorkGroupSize.x];
shared uvec2 partial_squares[gl_WorkGroupSize.x];

uint gates_at, cell_at, hidden_at, h_at;  // groups of this sequence in scratch

void meet() {
    memoryBarrierBuffer();
    barrier();
}

int look_up(uint which, int v) {
    uint bits = uint(v) & 0xFFFFu;
    return bitfieldExtract(tables.data[which * 32768u + (bits >> 1)], int(bits & 1u) << 4, 16);
}
ivec4 look_up(uint which, ivec4 v) {
    return ivec4(look_up(which, v.x), look_up(which, v.y), look_up(which, v.z), look_up(which, v.w));
}

ivec4 to_i16(ivec4 v) { return clamp(v, -32768, 32767); }

// Multipliers and shifts of a gate: inputs, then outputs of the step before.
ivec4 factors(uint gate) { return constants.data[FACTORS * gate]; }
// Of the peephole, of the layer normalization.
ivec4 more_factors(uint gate) { return constants.data[FACTORS * gate + 1u]; }
int variance_guard(uint gate) { return constants.data[FACTORS * gate + 2u].x; }
ivec4 vector(uint which, uint c) { return constants.data[FACTORS * GATES + which * p.cell_groups + c]; }

ivec4 scaled(ivec4 v, int multiplier, int shift) { return multiply_by_quantized(v, ivec4(multiplier), ivec4(shift)); }

ivec4 with_peephole(ivec4 v, uint gate, uint c, ivec4 cell) {
    ivec4 f = more_factors(gate);
    return to_i16(scaled(cell * vector(PEEPHOLES + gate, c), f.x, f.y) + v);
}

void sum_gates(uint row) {
    uint groups = GATES * p.cell_groups;
    for (uint i = gl_LocalInvocationID.x; i < groups; i += gl_WorkGroupSize.x) {
        uint gate = i / p.cell_groups;
        uint c = i - gate * p.cell_groups;
        ivec4 f = factors(gate);
        ivec4 v = to_i16(scaled(inputs.data[row * groups + i] + vector(gate, c), f.x, f.y));
        ivec4 sum = vector(GATES + gate, c);
        for (uint k = 0u; k < p.output_groups; ++k) {
            sum += dot4(uint(scratch.data[h_at + k].x), recurrent.data[k * groups + i]);
        }
        v = to_i16(scaled(sum, f.z, f.w) + v);
        if (HAS_PEEPHOLE != 0u && gate < CELL) v = with_peephole(v, gate, c, scratch.data[cell_at + c]);
        scratch.data[gates_at + i] = v;
    }
}

// Sum of a gate and of its squares, the latter in two words.
int sums_of(uint gate, out uint low, out uint high) {
    uint at = gates_at + gate * p.cell_groups;
    uint me = gl_LocalInvocationID.x;
    int sum = 0;
    low = 0u;
    high = 0u;
    for (uint c = me; c < p.cell_groups; c += gl_WorkGroupSize.x) {
        ivec4 v = scratch.data[at + c];
        for (uint k = 0u; k < min(4u, p.cells - 4u * c); ++k) {
            uint carry;
            sum += v[k];
            low = uaddCarry(low, uint(v[k] * v[k]), carry);
            high += carry;
        }
    }
    partial[me] = sum;
    partial_squares[me] = uvec2(low, high);
    for (uint live = gl_WorkGroupSize.x / 2u; live > 0u; live /= 2u) {
        barrier();
        if (me < live) {
            uint carry;
            uvec2 other = partial_squares[me + live];
            partial[me] += partial[me + live];
            partial_squares[me] = uvec2(
                uaddCarry(partial_squares[me].x, other.x, carry), partial_squares[me].y + other.y);
            partial_squares[me].y += carry;
        }
    }
    barrier();
    sum = partial[0];
    low = partial_squares[0].x;
    high = partial_squares[0].y;
    barrier();
    return sum;
}

// Layer normalization of one gate. Each invocation touches its own groups only.
//
// Source: PortableApplyLayerNorm of tflite/kernels/internal/reference/portable_tensor_utils.cc.
void normalize_gate(uint gate) {
    uint low, high, upper, lower, borrow;
    int sum = sums_of(gate, low, high);
    // 1024 * sum / cells, toward zero, without the 64 bits of the product.
    int count = int(p.cells);
    int quotient = sum / count;
    int mean = quotient * 1024 + (sum - quotient * count) * 1024 / count;
    // 2^20 times the variance: squares * (2^20 / cells) - mean^2.
    uint factor = (1u << 20) / p.cells;
    umulExtended(low, factor, upper, lower);
    upper += high * factor;
    uint mean_upper, mean_lower;
    umulExtended(uint(abs(mean)), uint(abs(mean)), mean_upper, mean_lower);
    lower = usubBorrow(lower, mean_lower, borrow);
    int top = int(upper - mean_upper - borrow);
    int variance = top < 0 ? 0 : int((lower >> 20) | (uint(top) << 12));
    if (variance < 1) variance = variance_guard(gate);
    int inverse_shift;
    int inverse = inverse_sqrt(variance, inverse_shift);
    ivec4 f = more_factors(gate);
    uint at = gates_at + gate * p.cell_groups;
    for (uint c = gl_LocalInvocationID.x; c < p.cell_groups; c += gl_WorkGroupSize.x) {
        ivec4 v = scaled(1024 * scratch.data[at + c] - mean, inverse, inverse_shift);
        v = v * vector(NORMS + gate, c) + vector(NORM_BIASES + gate, c);
        v = (v + mix(ivec4(-512), ivec4(512), greaterThan(v, ivec4(0)))) / 1024;
        scratch.data[at + c] = to_i16(scaled(v, f.z, f.w));
    }
}

ivec4 gate_value(uint gate, uint c) { return scratch.data[gates_at + gate * p.cell_groups + c]; }

// a * b / 2^shift as int16 holds it.
ivec4 product(ivec4 a, ivec4 b, int shift) {
    return bitfieldExtract(divide_by_pot(a * b, ivec4(shift)), 0, 16);
}

void update_cells() {
    for (uint c = gl_LocalInvocationID.x; c < p.cell_groups; c += gl_WorkGroupSize.x) {
        ivec4 forget = look_up(LOGISTIC, gate_value(FORGET, c));
        ivec4 enter = GATES == 4u ? look_up(LOGISTIC, gate_value(INPUT, c)) : 32767 - forget;
        ivec4 kept = product(forget, scratch.data[cell_at + c], 15);
        ivec4 cell = to_i16(kept + product(enter, look_up(TANH, gate_value(CELL, c)), p.cell_shift));
        if (p.cell_clip > 0) cell = clamp(cell, -p.cell_clip, p.cell_clip);
        scratch.data[cell_at + c] = cell;
        if (HAS_PEEPHOLE != 0u) {
            scratch.data[gates_at + OUTPUT * p.cell_groups + c] = with_peephole(gate_value(OUTPUT, c), OUTPUT, c, cell);
        }
    }
    if (HAS_LAYER_NORM != 0u) normalize_gate(OUTPUT);
    for (uint c = gl_LocalInvocationID.x; c < p.cell_groups; c += gl_WorkGroupSize.x) {
        ivec4 hidden = look_up(LOGISTIC, gate_value(OUTPUT, c)) * look_up(TANH_OF_CELL, scratch.data[cell_at + c]);
        hidden = scaled(hidden, p.hidden_multiplier, p.hidden_shift) + p.hidden_zero;
        uint word = pack_i8(clamp(hidden, -128, 127));
        scratch.data[(HAS_PROJECTION != 0u ? hidden_at : h_at) + c] = ivec4(int(word), 0, 0, 0);
    }
}

void project() {
    for (uint o = gl_LocalInvocationID.x; o < p.output_groups; o += gl_WorkGroupSize.x) {
        ivec4 sum = constants.data[FACTORS * GATES + PROJECTION_BIAS * p.cell_groups + o];
        for (uint k = 0u; k < p.cell_groups; ++k) {
            sum += dot4(uint(scratch.data[hidden_at + k].x), projection.data[k * p.output_groups + o]);
        }
        ivec4 v = clamp(scaled(sum, p.projection_multiplier, p.projection_shift) + p.output_zero, -128, 127);
        if (p.projection_clip > 0) v = clamp(v, -p.projection_clip, p.projection_clip);
        scratch.data[h_at + o] = ivec4(int(pack_i8(v)), 0, 0, 0);
    }
}

void main() {
    uint sequence = flat_group();
    if (sequence >= p.sequences) return;
    gates_at = sequence * (6u * p.cell_groups + p.output_groups);
    cell_at = gates_at + 4u * p.cell_groups;
    hidden_at = cell_at + p.cell_groups;
    h_at = hidden_at + p.cell_groups;
    uint begin = gl_LocalInvocationID.x;
    const uint stride = gl_WorkGroupSize.x;

    for (uint c = begin; c < p.cell_groups; c += stride) {
        scratch.data[cell_at + c] = LOAD(i16, c_before, sequence * p.cell_groups + c);
    }
    for (uint o = begin; o < p.output_groups; o += stride) {
        scratch.data[h_at + o] = ivec4(int(h_before.data[sequence * p.output_groups + o]), 0, 0, 0);
    }
    meet();
    for (uint step = 0u; step < p.steps; ++step) {
        uint row = step * p.step_rows + sequence * p.sequence_rows;
        sum_gates(row);
        meet();
        if (HAS_LAYER_NORM != 0u) {
            for (uint gate = 0u; gate < OUTPUT; ++gate) normalize_gate(gate);
        }
        update_cells();
        meet();
        if (HAS_PROJECTION != 0u) {
            project();
            meet();
        }
        for (uint o = begin; o < p.output_groups; o += stride) {
            y.data[row * p.output_groups + o] = uint(scratch.data[h_at + o].x);
        }
    }
    for (uint c = begin; c < p.cell_groups; c += stride) {
        STORE(i16, c_after, sequence * p.cell_groups + c, scratch.data[cell_at + c]);
    }
    for (uint o = begin; o < p.output_groups; o += stride) {
        h_after.data[sequence * p.output_groups + o] = uint(scratch.data[h_at + o].x);
    }
}
