#version 450
#extension GL_GOOGLE_include_directive : require
// TFLite_Detection_PostProcess, second part: greedy suppression of boxes that overlap a better one.
// One workgroup makes one list: of one class (regular), or of all by their best class (fast).
//
// Each round takes the best box left, ties by position, and drops those that overlap it too much.
// An invocation owns the boxes that are its own modulo the local size.

#include "dispatch.glsl"
#include "keys.glsl"
#include "tensor.glsl"

layout(constant_id = 3) const uint IS_FAST = 0u;

TENSOR_IN(0, ACT, scores);
TENSOR_IN(1, f32, boxes);
layout(set = 0, binding = 2, std430) buffer keys_block { uint data[]; } keys;  // [list][box]; 0: out
layout(set = 0, binding = 3, std430) writeonly buffer lists_block { uint data[]; } lists;

layout(push_constant) uniform Push {
    uint num_lists;
    uint num_boxes;
    uint groups_per_row;    // of scores
    uint label_offset;      // 1 where class 0 is the background
    uint classes;
    uint limit;             // boxes of one list
    float score_threshold;
    float overlap_threshold;
} p;

shared uint best_keys[gl_WorkGroupSize.x];
shared uint best_boxes[gl_WorkGroupSize.x];

float score(uint box, uint label) {
    uint at = label + p.label_offset;
    return LOAD(ACT, scores, box * p.groups_per_row + (at >> 2u))[at & 3u];
}

float overlap(vec4 a, vec4 b) {
    float area_a = (a.z - a.x) * (a.w - a.y);
    float area_b = (b.z - b.x) * (b.w - b.y);
    if (area_a <= 0.0 || area_b <= 0.0) return 0.0;
    vec2 extent = max(min(a.zw, b.zw) - max(a.xy, b.xy), vec2(0.0));
    float shared_area = extent.x * extent.y;
    return shared_area / (area_a + area_b - shared_area);
}

void main() {
    uint list = flat_group();
    if (list >= p.num_lists) return;
    uint first = list * p.num_boxes;
    uint begin = gl_LocalInvocationID.x;
    const uint stride = gl_WorkGroupSize.x;
    for (uint i = begin; i < p.num_boxes; i += stride) {
        float best = score(i, IS_FAST != 0u ? 0u : list);
        if (IS_FAST != 0u) {
            for (uint label = 1u; label < p.classes; ++label) best = max(best, score(i, label));
        }
        keys.data[first + i] = best >= p.score_threshold ? order_keys(vec4(best), 0u).x : 0u;
    }
    for (uint taken = 0u; taken < p.limit; ++taken) {
        uint key = 0u;
        uint box = 0xFFFFFFFFu;
        for (uint i = begin; i < p.num_boxes; i += stride) {
            uint other = keys.data[first + i];
            if (other > key) {
                key = other;
                box = i;
            }
        }
        best_keys[begin] = key;
        best_boxes[begin] = box;
        for (uint live = stride / 2u; live > 0u; live /= 2u) {
            barrier();
            if (begin < live) {
                uint other = best_keys[begin + live];
                uint other_box = best_boxes[begin + live];
                if (other > best_keys[begin] || (other == best_keys[begin] && other_box < best_boxes[begin])) {
                    best_keys[begin] = other;
                    best_boxes[begin] = other_box;
                }
            }
        }
        barrier();
        box = best_boxes[0];
        barrier();
        if (begin == 0u) lists.data[list * p.limit + taken] = box;
        if (box == 0xFFFFFFFFu) continue;  // the rest of the list is filled with this
        vec4 chosen = LOAD(f32, boxes, box);
        for (uint i = begin; i < p.num_boxes; i += stride) {
            if (keys.data[first + i] == 0u) continue;
            if (i == box || overlap(chosen, LOAD(f32, boxes, i)) > p.overlap_threshold) keys.data[first + i] = 0u;
        }
    }
}
