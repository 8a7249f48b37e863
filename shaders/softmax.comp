#version 450
#extension GL_GOOGLE_include_directive : require
// SOFTMAX, LOG_SOFTMAX and L2_NORMALIZATION over the innermost dimension.
//
// x: invocations that share a row; y: rows of a workgroup. The row is read again for each step, out
// of the cache: maximum, sum, result.

#define EPILOGUE_BINDING 2
#include "dispatch.glsl"
#include "epilogue.glsl"

layout(constant_id = 11) const uint OP = 0u;
const uint OP_SOFTMAX = 0u;
const uint OP_LOG_SOFTMAX = 1u;
const uint OP_L2_NORMALIZATION = 2u;

TENSOR_IN(0, ACT, x);
TENSOR_OUT(1, ACT, y);

layout(push_constant) uniform Push {
    EPILOGUE_PUSH;
    uint num_rows;
    uint groups_per_row;
    uint tail;            // elements of a row's last group
    float beta;
} p;

// One array for each use: SwiftShader was seen to mix up two uses of one.
shared float maxima[gl_WorkGroupSize.x * gl_WorkGroupSize.y];
shared float sums[gl_WorkGroupSize.x * gl_WorkGroupSize.y];

vec4 masked(vec4 v, uint group, float padding) {
    if (group + 1u < p.groups_per_row) return v;
    return mix(vec4(padding), v, lessThan(uvec4(0u, 1u, 2u, 3u), uvec4(p.tail)));
}

float larger(float a, float b) { return b > a ? b : a; }

float row_maximum(float value) {
    maxima[gl_LocalInvocationIndex] = value;
    for (uint live = gl_WorkGroupSize.x / 2u; live > 0u; live /= 2u) {
        barrier();
        if (gl_LocalInvocationID.x < live) {
            value = larger(value, maxima[gl_LocalInvocationIndex + live]);
            maxima[gl_LocalInvocationIndex] = value;
        }
    }
    barrier();
    return maxima[gl_LocalInvocationID.y * gl_WorkGroupSize.x];
}

float row_sum(float value) {
    sums[gl_LocalInvocationIndex] = value;
    for (uint live = gl_WorkGroupSize.x / 2u; live > 0u; live /= 2u) {
        barrier();
        if (gl_LocalInvocationID.x < live) {
            value += sums[gl_LocalInvocationIndex + live];
            sums[gl_LocalInvocationIndex] = value;
        }
    }
    barrier();
    return sums[gl_LocalInvocationID.y * gl_WorkGroupSize.x];
}

void main() {
    uint row = flat_group() * gl_WorkGroupSize.y + gl_LocalInvocationID.y;
    bool is_row = row < p.num_rows;
    uint first = is_row ? row * p.groups_per_row : 0u;
    uint end = is_row ? p.groups_per_row : 0u;
    uint begin = gl_LocalInvocationID.x;
    const uint step = gl_WorkGroupSize.x;

    float maximum = 0.0;
    if (OP != OP_L2_NORMALIZATION) {
        vec4 most = vec4(-3.402823466e38);  // TFLite's start: a row of -inf gives NaN there and here
        for (uint g = begin; g < end; g += step) {
            vec4 v = masked(LOAD(ACT, x, first + g), g, -3.402823466e38);
            most = mix(most, v, greaterThan(v, most));
        }
        maximum = larger(larger(most.x, most.y), larger(most.z, most.w));
        if (gl_WorkGroupSize.x > 1u) maximum = row_maximum(maximum);
    }

    vec4 total = vec4(0.0);
    for (uint g = begin; g < end; g += step) {
        vec4 v = LOAD(ACT, x, first + g);
        if (OP == OP_SOFTMAX) v = tflite_exp((v - maximum) * p.beta);
        else if (OP == OP_LOG_SOFTMAX) v = tflite_exp(v - maximum);
        else v *= v;
        total += masked(v, g, 0.0);
    }
    float sum = total.x + total.y + total.z + total.w;
    if (gl_WorkGroupSize.x > 1u) sum = row_sum(sum);

    if (OP == OP_LOG_SOFTMAX) sum = tflite_log(vec4(sum)).x;
    else if (OP == OP_L2_NORMALIZATION) sum = clamp_low(vec4(sqrt(sum)), 1e-6).x;
    for (uint g = begin; g < end; g += step) {
        vec4 v = LOAD(ACT, x, first + g);
        if (OP == OP_SOFTMAX) v = tflite_exp((v - maximum) * p.beta) / sum;
        else if (OP == OP_LOG_SOFTMAX) v = v - maximum - sum;
        else v /= sum;
        uint at = first + g;
        STORE(ACT, y, at, epilogue(v, at, row, g, p.immediates));
    }
}
