#version 450
#extension GL_GOOGLE_include_directive : require
// SVDF's memory one step on: each filter's values move up by one, its new one comes last.

#include "dispatch.glsl"
#include "tensor.glsl"

TENSOR_IN(0, ACT, state);     // [batch][filter, memory]
TENSOR_IN(1, f32, newest);    // [batch][filter]
TENSOR_OUT(2, ACT, y);        // as state

layout(push_constant) uniform Push {
    uint num_groups;
    uint groups_per_row;
    uint memory;              // values of each filter
    uint filters;
    uint filter_groups;
} p;

void main() {
    uint i = flat_index();
    if (i >= p.num_groups) return;
    uint row = i / p.groups_per_row;
    uint first = (i - row * p.groups_per_row) * 4u;
    vec4 v = vec4(0.0);
    for (uint lane = 0u; lane < 4u; ++lane) {
        uint element = first + lane;
        uint filter_at = element / p.memory;
        if (filter_at >= p.filters) continue;
        if (element - filter_at * p.memory + 1u == p.memory) {
            v[lane] = LOAD(f32, newest, row * p.filter_groups + (filter_at >> 2u))[filter_at & 3u];
        } else {
            ++element;
            v[lane] = LOAD(ACT, state, row * p.groups_per_row + (element >> 2u))[element & 3u];
        }
    }
    STORE(ACT, y, i, v);
}
