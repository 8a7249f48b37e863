#version 450
#extension GL_GOOGLE_include_directive : require
// The memory of an int8 SVDF one step on, as svdf_state: each filter's int16 values move up by one, its new
// one, scaled from the sum of its products, comes last.

#include "dispatch.glsl"
#include "quantize.glsl"

TENSOR_IN(0, i16, state);   // [batch][filter, memory]
TENSOR_IN(1, i32, newest);  // [batch][filter]
TENSOR_IN(2, i32, added);   // [filter]: what the input's zero point adds to the sums
TENSOR_OUT(3, i16, y);      // as state

layout(push_constant) uniform Push {
    uint num_groups;
    uint groups_per_row;
    uint memory;            // values of each filter
    uint filters;
    uint filter_groups;
    int multiplier;
    int shift;
} p;

void main() {
    uint i = flat_index();
    if (i >= p.num_groups) return;
    uint row = i / p.groups_per_row;
    uint first = (i - row * p.groups_per_row) * 4u;
    ivec4 v = ivec4(0);
    for (uint lane = 0u; lane < 4u; ++lane) {
        uint element = first + lane;
        uint filter_at = element / p.memory;
        if (filter_at >= p.filters) continue;
        if (element - filter_at * p.memory + 1u == p.memory) {
            uint group = filter_at >> 2u;
            ivec4 sum = newest.data[row * p.filter_groups + group] + added.data[group];
            ivec4 scaled = multiply_by_quantized(sum, ivec4(p.multiplier), ivec4(p.shift));
            v[lane] = clamp(scaled[filter_at & 3u], -32768, 32767);
        } else {
            ++element;
            v[lane] = LOAD(i16, state, row * p.groups_per_row + (element >> 2u))[element & 3u];
        }
    }
    STORE(i16, y, i, v);
}
