#version 450
#extension GL_GOOGLE_include_directive : require
// Outputs of an int8 SVDF, as svdf: each unit adds up its filters, weighted over their memory.

#include "dispatch.glsl"
#include "quantize.glsl"

TENSOR_IN(0, i16, state);    // [batch][filter, memory]
TENSOR_IN(1, i16, weights);  // [filter][memory]
TENSOR_IN(2, i32, bias);
TENSOR_OUT(3, i8, y);

layout(push_constant) uniform Push {
    uint num_groups;
    uint groups_per_row;
    uint units;
    uint state_groups;       // of a row
    uint memory;
    uint memory_groups;
    uint rank;               // filters of a unit
    int multiplier;
    int shift;
    int zero;
} p;

void main() {
    uint i = flat_index();
    if (i >= p.num_groups) return;
    uint row = i / p.groups_per_row;
    uint group = i - row * p.groups_per_row;
    ivec4 sum = bias.data[group];
    for (uint lane = 0u; lane < 4u; ++lane) {
        uint unit = group * 4u + lane;
        if (unit >= p.units) continue;
        for (uint f = unit * p.rank; f < (unit + 1u) * p.rank; ++f) {
            for (uint m = 0u; m < p.memory; ++m) {
                uint element = f * p.memory + m;
                int value = LOAD(i16, state, row * p.state_groups + (element >> 2u))[element & 3u];
                sum[lane] += value * LOAD(i16, weights, f * p.memory_groups + (m >> 2u))[m & 3u];
            }
        }
    }
    ivec4 v = multiply_by_quantized(sum, ivec4(p.multiplier), ivec4(p.shift)) + p.zero;
    y.data[i] = pack_i8(clamp(v, -128, 127));
}
