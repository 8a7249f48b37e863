#version 450
#extension GL_GOOGLE_include_directive : require
// Weights that are known only while running, from TFLite's [output, row, column, input] to the
// layout of conv_2d: [row][column][input group][input lane][output group] of vec4 over outputs.

#include "dispatch.glsl"
#include "tensor.glsl"

TENSOR_IN(0, ACT, source);
TENSOR_OUT(1, ACT, target);

layout(push_constant) uniform Push {
    uint num_groups;       // vec4 in the target
    uint output_channels;
    uint output_groups;
    uint taps;             // kernel height * kernel width
    uint input_channels;
    uint input_groups;
} p;

float weight(uint o, uint tap, uint input_channel) {
    bool is_inside = o < p.output_channels && input_channel < p.input_channels;
    uint at = is_inside ? (o * p.taps + tap) * p.input_groups + (input_channel >> 2u) : 0u;
    float value = LOAD(ACT, source, at)[input_channel & 3u];
    return is_inside ? value : 0.0;
}

void main() {
    uint i = flat_index();
    if (i >= p.num_groups) return;
    uint rest = i / p.output_groups;
    uint o = (i - rest * p.output_groups) * 4u;
    uint tap = rest / (p.input_groups * 4u);
    uint channel = rest - tap * p.input_groups * 4u;
    STORE(ACT, target, i, vec4(
        weight(o, tap, channel), weight(o + 1u, tap, channel),
        weight(o + 2u, tap, channel), weight(o + 3u, tap, channel)));
}
