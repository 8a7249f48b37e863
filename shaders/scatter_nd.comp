#version 450
#extension GL_GOOGLE_include_directive : require
// SCATTER_ND: zeros, with each update added where its row of the indices says. One that lies outside
// is left out.
//
// Each invocation makes one group of y and looks through all updates for those that land there: the
// order of the additions is that of the updates, and nothing is written twice.

#include "dispatch.glsl"
#include "tensor.glsl"
#ifdef LONG
#include "long.glsl"
#endif

// 0: updates are whole slices, strides and slice count groups; 1: single elements.
layout(constant_id = 3) const uint LANES = 0u;

layout(set = 0, binding = 0, std430) readonly buffer indices_block { int data[]; } indices;
TENSOR_IN(1, ACT, updates);
TENSOR_OUT(2, ACT, y);

layout(push_constant) uniform Push {
    uint num_groups;
    uint num_updates;
    uint slice;           // groups in a slice
    uint update_lanes;    // elements in a row of the updates, and its groups
    uint update_groups;
    uint depth;           // coordinates in a row of the indices
    uint index_stride;    // from row to row of them
    uint sizes[6];        // of the first dimensions of y, and steps along them
    uint strides[6];
} p;

// Where an update lands; past the end of y for one that is left out.
uint target(uint update) {
    uint at = 0u;
    for (uint d = 0u; d < p.depth; ++d) {
        uint index = uint(indices.data[update * p.index_stride + d]);
        if (index >= p.sizes[d]) return 0xFFFFFFFFu;
        at += index * p.strides[d];
    }
    return at;
}

#ifdef LONG
const Long4 NONE = Long4(uvec4(0u), uvec4(0u));
Long4 with_lane(Long4 sum, uint lane, Long4 v, uint from) {
    return choose(sum, add(sum, all_lanes(v, from)), equal(uvec4(0u, 1u, 2u, 3u), uvec4(lane)));
}
#else
const VALUE(ACT) NONE = VALUE(ACT)(0);
#ifdef BOOLEAN
VALUE(ACT) add(VALUE(ACT) a, VALUE(ACT) b) { return a | b; }
#else
VALUE(ACT) add(VALUE(ACT) a, VALUE(ACT) b) { return a + b; }
#endif
VALUE(ACT) with_lane(VALUE(ACT) sum, uint lane, VALUE(ACT) v, uint from) {
    sum[lane] = add(VALUE(ACT)(sum[lane]), VALUE(ACT)(v[from])).x;
    return sum;
}
#endif

void main() {
    uint i = flat_index();
    if (i >= p.num_groups) return;
    VALUE(ACT) sum = NONE;
    for (uint update = 0u; update < p.num_updates; ++update) {
        uint at = target(update);
        if (LANES == 0u) {
            uint group = i - at;
            if (at <= i && group < p.slice) sum = add(sum, LOAD(ACT, updates, update * p.slice + group));
        } else if (at >> 2 == i) {
            uint row = update / p.update_lanes;
            uint lane = update - row * p.update_lanes;
            sum = with_lane(sum, at & 3u, LOAD(ACT, updates, row * p.update_groups + (lane >> 2)), lane & 3u);
        }
    }
    STORE(ACT, y, i, sum);
}
