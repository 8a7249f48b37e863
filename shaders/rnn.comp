#version 450
#extension GL_GOOGLE_include_directive : require
// A plain recurrent layer over a whole sequence, h = activation(inputs + bias + recurrent * h): one
// workgroup for each sequence of the batch walks its steps. What the inputs add was computed before.
//
// HYBRID, set by -D: weights are int8, and the state is quantized in every step, as TFLite does.

#include "dispatch.glsl"
#include "math.glsl"
#include "tensor.glsl"

layout(constant_id = 3) const uint ACTIVATION = 5u;  // numbered as in epilogue.glsl
#ifdef HYBRID
#include "dot4.glsl"
layout(constant_id = 4) const uint IS_ASYMMETRIC = 0u;
#define MATRIX u32  // as conv_2d_i8
#else
#define MATRIX f32
#endif

TENSOR_IN(0, f32, inputs);      // [step and sequence][unit group]
TENSOR_IN(1, MATRIX, recurrent);   // [unit][unit group] of vec4 over units
TENSOR_IN(2, f32, bias);           // behind it the sums of the recurrent weights, where HYBRID
TENSOR_IN(3, ACT, h_before);
TENSOR_OUT(4, ACT, h_after);
layout(set = 0, binding = 5, std430) coherent buffer scratch_block { vec4 data[]; } scratch;
TENSOR_OUT(6, ACT, y);
#ifdef HYBRID
#define WORDS_BINDING 7
#include "hybrid_row.glsl"
#endif

layout(push_constant) uniform Push {
    uint sequences;
    uint steps;
    uint units;
    uint groups;
    uint step_rows;       // rows of inputs and y from step to step
    uint sequence_rows;   // and from sequence to sequence
    uint y_groups;        // groups of y from row to row
    uint y_first;         // group of y's rows where these units begin
    uint is_reverse;
#ifdef HYBRID
    float recurrent_scale;
#endif
} p;

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

void main() {
    uint sequence = flat_group();
    if (sequence >= p.sequences) return;
    uint begin = gl_LocalInvocationID.x;
    const uint stride = gl_WorkGroupSize.x;
    uint now = sequence * 2u * p.groups;  // the state, and the one after it
    uint next = now + p.groups;
    for (uint g = begin; g < p.groups; g += stride) {
        vec4 h = LOAD(ACT, h_before, sequence * p.groups + g);
        // A padding lane may hold NaN, which a zero weight would not silence.
        scratch.data[now + g] = mix(vec4(0.0), h, lessThan(g * 4u + uvec4(0u, 1u, 2u, 3u), uvec4(p.units)));
    }
    memoryBarrierBuffer();
    barrier();
    for (uint step = 0u; step < p.steps; ++step) {
        uint row = (p.is_reverse != 0u ? p.steps - 1u - step : step) * p.step_rows + sequence * p.sequence_rows;
#ifdef HYBRID
        quantize_row(now, p.groups, p.units, sequence * p.groups);
#endif
        for (uint g = begin; g < p.groups; g += stride) {
            vec4 sum = inputs.data[row * p.groups + g] + bias.data[g];
#ifdef HYBRID
            ivec4 products = ivec4(0);
            for (uint k = 0u; k < p.groups; ++k) {
                products += dot4(words.data[sequence * p.groups + k], recurrent.data[k * p.groups + g]);
            }
            vec4 shifted = vec4(products) - float(row_zero) * bias.data[p.groups + g];
            sum += shifted * (row_scale * p.recurrent_scale);
#else
            for (uint k = 0u; k < p.groups; ++k) {
                vec4 h = scratch.data[now + k];
                uint at = k * 4u * p.groups + g;
                sum += h.x * recurrent.data[at] + h.y * recurrent.data[at + p.groups]
                    + h.z * recurrent.data[at + 2u * p.groups] + h.w * recurrent.data[at + 3u * p.groups];
            }
#endif
            sum = activate(sum);
            scratch.data[next + g] = mix(vec4(0.0), sum, lessThan(g * 4u + uvec4(0u, 1u, 2u, 3u), uvec4(p.units)));
            STORE(ACT, y, row * p.y_groups + p.y_first + g, sum);
        }
        memoryBarrierBuffer();
        barrier();
        uint before = now;
        now = next;
        next = before;
    }
    for (uint g = begin; g < p.groups; g += stride) STORE(ACT, h_after, sequence * p.groups + g, scratch.data[now + g]);
}
