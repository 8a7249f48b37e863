#version 450
#extension GL_GOOGLE_include_directive : require
// DYNAMIC_UPDATE_SLICE: `operand` with `update` written over it from a run-time place on, which is
// moved so that the update fits.

#include "dispatch.glsl"
#include "lanes.glsl"

// 0: the update is as wide as the operand, so that groups lie the same way in both.
layout(constant_id = 3) const uint LANES = 0u;

LANES_IN(0, operand);
LANES_IN(1, update);
layout(set = 0, binding = 2, std430) readonly buffer starts_block { int data[]; } starts;
LANES_OUT(3, y);

layout(push_constant) uniform Push {
    uint num_groups;
    uint y_lanes;         // elements in a row of the operand, and its groups
    uint y_groups;
    uint update_lanes;    // the same of the update
    uint update_groups;
    uint num_dims;        // dimensions before the innermost, the outermost first
    uint dims[5];
    uint update_dims[5];
} p;

uint start(uint d, uint size, uint update_size) {
    return uint(clamp(starts.data[d], 0, int(size) - int(update_size)));
}

void main() {
    uint i = flat_index();
    if (i >= p.num_groups) return;
    uint rest = i / p.y_groups;
    uint group = i - rest * p.y_groups;
    uint row = 0u;
    uint step = 1u;
    bool inside = true;
    for (uint d = p.num_dims; d-- > 0u;) {
        uint quotient = d == 0u ? 0u : rest / p.dims[d];
        uint at = rest - quotient * p.dims[d] - start(d, p.dims[d], p.update_dims[d]);
        inside = inside && at < p.update_dims[d];
        row += at * step;
        step *= p.update_dims[d];
        rest = quotient;
    }
    QUAD v = LOAD_LANES(operand, i);
    if (inside && LANES == 0u) v = LOAD_LANES(update, row * p.update_groups + group);
    if (inside && LANES != 0u) {
        uint first = group * 4u - start(p.num_dims, p.y_lanes, p.update_lanes);
        for (uint k = 0u; k < 4u; ++k) {
            if (first + k < p.update_lanes) v[k] = LOAD_LANE(update, row * p.update_groups * 4u + first + k);
        }
    }
    STORE_LANES(y, i, v);
}
