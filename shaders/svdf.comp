#version 450
#extension GL_GOOGLE_include_directive : require
// SVDF's outputs: each unit adds up its filters, weighted over their memory.

#define EPILOGUE_BINDING 4
#include "dispatch.glsl"
#include "epilogue.glsl"

TENSOR_IN(0, ACT, state);     // [batch][filter, memory]
TENSOR_IN(1, f32, weights);   // [filter][memory]
TENSOR_IN(2, f32, bias);
TENSOR_OUT(3, ACT, y);

layout(push_constant) uniform Push {
    EPILOGUE_PUSH;
    uint num_groups;
    uint groups_per_row;
    uint units;
    uint state_groups;        // of a row
    uint memory;
    uint memory_groups;
    uint rank;                // filters of a unit
} p;

void main() {
    uint i = flat_index();
    if (i >= p.num_groups) return;
    uint row = i / p.groups_per_row;
    uint group = i - row * p.groups_per_row;
    vec4 sum = LOAD(f32, bias, group);
    for (uint lane = 0u; lane < 4u; ++lane) {
        uint unit = group * 4u + lane;
        if (unit >= p.units) continue;
        for (uint f = unit * p.rank; f < (unit + 1u) * p.rank; ++f) {
            for (uint m = 0u; m < p.memory; ++m) {
                uint element = f * p.memory + m;
                float value = LOAD(ACT, state, row * p.state_groups + (element >> 2u))[element & 3u];
                sum[lane] += value * LOAD(f32, weights, f * p.memory_groups + (m >> 2u))[m & 3u];
            }
        }
    }
    STORE(ACT, y, i, epilogue(sum, i, row, group, p.immediates));
}
