#version 450
#extension GL_GOOGLE_include_directive : require
// LSTM over a whole sequence: one workgroup for each sequence of the batch walks its steps. What the
// inputs add to the gates was computed before, for all steps at once (lowering of ops/lstm.py).
//
// Gates stand in the order input, forget, cell, output; without an input gate (CIFG) three are left.
// HYBRID, set by -D: weights are int8, and what they meet is quantized in every step, as TFLite does.
//
// Between steps everything is float32 in a scratch buffer; its padding lanes stay finite, because
// weights are padded with zeros and the states that are read are masked.

#include "dispatch.glsl"
#include "math.glsl"
#include "tensor.glsl"
#ifdef HYBRID
#include "dot4.glsl"
#endif

layout(constant_id = 3) const uint GATES = 4u;
layout(constant_id = 4) const uint HAS_PEEPHOLE = 0u;
layout(constant_id = 5) const uint HAS_LAYER_NORM = 0u;
layout(constant_id = 6) const uint HAS_PROJECTION = 0u;
layout(constant_id = 7) const uint ACTIVATION = 5u;  // numbered as in epilogue.glsl
#ifdef HYBRID
layout(constant_id = 8) const uint IS_ASYMMETRIC = 0u;
#define MATRIX u32  // as conv_2d_i8
#else
#define MATRIX f32
#endif

TENSOR_IN(0, f32, inputs);      // [step and sequence][gate][cell group]
TENSOR_IN(1, MATRIX, recurrent);   // [output][gate][cell group] of vec4 over cells
TENSOR_IN(2, f32, vectors);     // bias of 4 gates, peepholes of 3, norms of 4, projection bias
TENSOR_IN(3, MATRIX, projection);  // [cell][output group] of vec4 over outputs
TENSOR_IN(4, ACT, h_before);
TENSOR_IN(5, ACT, c_before);
TENSOR_OUT(6, ACT, h_after);
TENSOR_OUT(7, ACT, c_after);
layout(set = 0, binding = 8, std430) coherent buffer scratch_block { vec4 data[]; } scratch;
TENSOR_OUT(9, ACT, y);
#ifdef HYBRID
#define WORDS_BINDING 10
#include "hybrid_row.glsl"
#endif

layout(push_constant) uniform Push {
    uint sequences;
    uint steps;
    uint cells;
    uint cell_groups;
    uint outputs;
    uint output_groups;
    uint step_rows;       // rows of inputs and y from step to step
    uint sequence_rows;   // and from sequence to sequence
    uint y_groups;        // groups of y from row to row
    uint y_first;         // group of y's rows where these outputs begin
    uint is_reverse;
    float cell_clip;      // 0: none
    float projection_clip;
} p;

shared float partial[gl_WorkGroupSize.x];

const uint INPUT = 0u;
const uint FORGET = GATES - 3u;
const uint CELL = GATES - 2u;
const uint OUTPUT = GATES - 1u;

uint gates_at, cell_at, hidden_at, h_at;  // groups of this sequence in scratch

void meet() {
    memoryBarrierBuffer();
    barrier();
}

vec4 activate(vec4 v) {
    switch (ACTIVATION) {
    case 1u: return clamp_low(v, 0.0);
    case 2u: return clamp_range(v, 0.0, 6.0);
    case 3u: return clamp_range(v, -1.0, 1.0);
    case 5u: return tflite_tanh(v);
    case 6u: return logistic(v);
    }
    return v;
}

// A vector of the cells; the first four are biases, then come peepholes and norms.
vec4 vector(uint which, uint c) { return vectors.data[which * p.cell_groups + c]; }
vec4 bias(uint gate, uint c) { return vector(gate + 4u - GATES, c); }
vec4 peephole(uint gate, uint c) { return vector(gate == OUTPUT ? 6u : gate == FORGET ? 5u : 4u, c); }
vec4 norm(uint gate, uint c) { return vector(gate + 11u - GATES, c); }

vec4 masked(vec4 v, uint group, uint size) {
    return mix(vec4(0.0), v, lessThan(group * 4u + uvec4(0u, 1u, 2u, 3u), uvec4(size)));
}

vec4 clip(vec4 v, float limit) { return limit > 0.0 ? clamp(v, vec4(-limit), vec4(limit)) : v; }

float workgroup_sum(vec4 v) {
    partial[gl_LocalInvocationID.x] = v.x + v.y + v.z + v.w;
    for (uint live = gl_WorkGroupSize.x / 2u; live > 0u; live /= 2u) {
        barrier();
        if (gl_LocalInvocationID.x < live) partial[gl_LocalInvocationID.x] += partial[gl_LocalInvocationID.x + live];
    }
    barrier();
    float sum = partial[0];
    barrier();
    return sum;
}

// Layer normalization of one gate. Each invocation touches its own groups only.
void normalize_gate(uint gate) {
    uint first = gates_at + gate * p.cell_groups;
    vec4 sum = vec4(0.0);
    for (uint c = gl_LocalInvocationID.x; c < p.cell_groups; c += gl_WorkGroupSize.x) {
        sum += masked(scratch.data[first + c], c, p.cells);
    }
    float mean = workgroup_sum(sum) / float(p.cells);
    sum = vec4(0.0);
    for (uint c = gl_LocalInvocationID.x; c < p.cell_groups; c += gl_WorkGroupSize.x) {
        vec4 d = masked(scratch.data[first + c] - mean, c, p.cells);
        sum += d * d;
    }
    float scale = 1.0 / sqrt(workgroup_sum(sum) / float(p.cells) + 1e-8);
    for (uint c = gl_LocalInvocationID.x; c < p.cell_groups; c += gl_WorkGroupSize.x) {
        scratch.data[first + c] = (scratch.data[first + c] - mean) * scale * norm(gate, c) + bias(gate, c);
    }
}

#ifdef HYBRID
uint words_at;  // of this sequence

// Behind the vectors: scales of the gates, scale of the projection, sums of the recurrent weights of each
// cell, sums of the projection weights of each output.
vec4 hybrid_vector(uint which) { return vectors.data[11u * p.cell_groups + p.output_groups + which]; }
float gate_scale(uint gate) { return hybrid_vector(0u)[gate]; }
float projection_scale() { return hybrid_vector(1u).x; }
vec4 recurrent_sums(uint i) { return hybrid_vector(2u + i); }
vec4 projection_sums(uint o) { return hybrid_vector(2u + GATES * p.cell_groups + o); }

// What the outputs of the step before add to group i of all gates.
vec4 recurrent_part(uint i, uint groups, uint gate) {
    ivec4 sum = ivec4(0);
    for (uint k = 0u; k < p.output_groups; ++k) sum += dot4(words.data[words_at + k], recurrent.data[k * groups + i]);
    return (vec4(sum) - float(row_zero) * recurrent_sums(i)) * (row_scale * gate_scale(gate));
}
#endif

void sum_gates(uint row) {
    uint groups = GATES * p.cell_groups;
    for (uint i = gl_LocalInvocationID.x; i < groups; i += gl_WorkGroupSize.x) {
        vec4 sum = inputs.data[row * groups + i];
#ifdef HYBRID
        sum += recurrent_part(i, groups, i / p.cell_groups);
#else
        for (uint k = 0u; k < p.output_groups; ++k) {
            vec4 h = scratch.data[h_at + k];
            uint at = k * 4u * groups + i;
            sum += h.x * recurrent.data[at] + h.y * recurrent.data[at + groups]
                + h.z * recurrent.data[at + 2u * groups] + h.w * recurrent.data[at + 3u * groups];
        }
#endif
        uint gate = i / p.cell_groups;
        uint c = i - gate * p.cell_groups;
        if (HAS_PEEPHOLE != 0u && gate < CELL) sum += scratch.data[cell_at + c] * peephole(gate, c);
        if (HAS_LAYER_NORM == 0u) sum += bias(gate, c);
        scratch.data[gates_at + i] = sum;
    }
}

vec4 gate_value(uint gate, uint c) { return scratch.data[gates_at + gate * p.cell_groups + c]; }

void update_cells() {
    for (uint c = gl_LocalInvocationID.x; c < p.cell_groups; c += gl_WorkGroupSize.x) {
        vec4 forget = logistic(gate_value(FORGET, c));
        vec4 enter = GATES == 4u ? logistic(gate_value(INPUT, c)) : 1.0 - forget;
        vec4 cell = forget * scratch.data[cell_at + c] + enter * activate(gate_value(CELL, c));
        cell = clip(cell, p.cell_clip);
        scratch.data[cell_at + c] = cell;
        if (HAS_PEEPHOLE != 0u) scratch.data[gates_at + OUTPUT * p.cell_groups + c] += cell * peephole(OUTPUT, c);
    }
    if (HAS_LAYER_NORM != 0u) normalize_gate(OUTPUT);
    for (uint c = gl_LocalInvocationID.x; c < p.cell_groups; c += gl_WorkGroupSize.x) {
        vec4 hidden = logistic(gate_value(OUTPUT, c)) * activate(scratch.data[cell_at + c]);
        scratch.data[(HAS_PROJECTION != 0u ? hidden_at : h_at) + c] = hidden;
    }
}

void project() {
#ifdef HYBRID
    quantize_row(hidden_at, p.cell_groups, p.cells, words_at);
#endif
    for (uint o = gl_LocalInvocationID.x; o < p.output_groups; o += gl_WorkGroupSize.x) {
        vec4 sum = vectors.data[11u * p.cell_groups + o];
#ifdef HYBRID
        ivec4 products = ivec4(0);
        for (uint k = 0u; k < p.cell_groups; ++k) {
            products += dot4(words.data[words_at + k], projection.data[k * p.output_groups + o]);
        }
        sum += (vec4(products) - float(row_zero) * projection_sums(o)) * (row_scale * projection_scale());
#else
        for (uint k = 0u; k < p.cell_groups; ++k) {
            vec4 m = scratch.data[hidden_at + k];
            uint at = k * 4u * p.output_groups + o;
            sum += m.x * projection.data[at] + m.y * projection.data[at + p.output_groups]
                + m.z * projection.data[at + 2u * p.output_groups] + m.w * projection.data[at + 3u * p.output_groups];
        }
#endif
        scratch.data[h_at + o] = clip(sum, p.projection_clip);
    }
}

void main() {
    uint sequence = flat_group();
    if (sequence >= p.sequences) return;
    gates_at = sequence * (6u * p.cell_groups + p.output_groups);
    cell_at = gates_at + 4u * p.cell_groups;
    hidden_at = cell_at + p.cell_groups;
    h_at = hidden_at + p.cell_groups;
#ifdef HYBRID
    words_at = sequence * max(p.cell_groups, p.output_groups);
#endif
    uint begin = gl_LocalInvocationID.x;
    const uint stride = gl_WorkGroupSize.x;

    for (uint c = begin; c < p.cell_groups; c += stride) {
        scratch.data[cell_at + c] = masked(LOAD(ACT, c_before, sequence * p.cell_groups + c), c, p.cells);
    }
    for (uint o = begin; o < p.output_groups; o += stride) {
        scratch.data[h_at + o] = masked(LOAD(ACT, h_before, sequence * p.output_groups + o), o, p.outputs);
    }
    meet();
    for (uint step = 0u; step < p.steps; ++step) {
        uint row = (p.is_reverse != 0u ? p.steps - 1u - step : step) * p.step_rows + sequence * p.sequence_rows;
#ifdef HYBRID
        quantize_row(h_at, p.output_groups, p.outputs, words_at);
#endif
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
            STORE(ACT, y, row * p.y_groups + p.y_first + o, scratch.data[h_at + o]);
        }
    }
    for (uint c = begin; c < p.cell_groups; c += stride) {
        STORE(ACT, c_after, sequence * p.cell_groups + c, scratch.data[cell_at + c]);
    }
    for (uint o = begin; o < p.output_groups; o += stride) {
        STORE(ACT, h_after, sequence * p.output_groups + o, scratch.data[h_at + o]);
    }
}
