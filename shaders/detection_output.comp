#version 450
#extension GL_GOOGLE_include_directive : require
// TFLite_Detection_PostProcess, last part: one workgroup merges the lists of all classes (regular),
// or takes the one list with the best classes of each box (fast), and writes the four outputs. What
// no detection fills is zero.

#include "dispatch.glsl"
#include "keys.glsl"
#include "tensor.glsl"

layout(constant_id = 3) const uint IS_FAST = 0u;

TENSOR_IN(0, ACT, scores);
TENSOR_IN(1, f32, boxes);
layout(set = 0, binding = 2, std430) readonly buffer lists_block { uint data[]; } lists;
layout(set = 0, binding = 3, std430) coherent buffer merged_block { uvec2 data[]; } merged;  // box, class
layout(set = 0, binding = 4, std430) buffer heads_block { uint data[]; } heads;  // next of each list
TENSOR_OUT(5, ACT, y_boxes);
TENSOR_OUT(6, ACT, y_classes);
TENSOR_OUT(7, ACT, y_scores);
TENSOR_OUT(8, ACT, y_count);

layout(push_constant) uniform Push {
    uint num_lists;
    uint groups_per_row;    // of scores
    uint label_offset;
    uint classes;
    uint limit;             // boxes of one list
    uint detections;        // at most
    uint classes_of_each;   // slots of each detection in the outputs
} p;

const uint NOTHING = 0xFFFFFFFFu;

shared uint best_keys[gl_WorkGroupSize.x];
shared uint best_lists[gl_WorkGroupSize.x];

float score(uint box, uint label) {
    uint at = label + p.label_offset;
    return LOAD(ACT, scores, box * p.groups_per_row + (at >> 2u))[at & 3u];
}

uint key(uint box, uint label) { return order_keys(vec4(score(box, label)), 0u).x; }

// Lists are sorted, so the best of all is the best of their heads; ties go to the first class.
void merge_lists() {
    uint begin = gl_LocalInvocationID.x;
    const uint stride = gl_WorkGroupSize.x;
    for (uint list = begin; list < p.num_lists; list += stride) heads.data[list] = 0u;
    for (uint slot = 0u; slot < p.detections; ++slot) {
        uint best = 0u;
        uint best_list = NOTHING;
        for (uint list = begin; list < p.num_lists; list += stride) {
            if (heads.data[list] >= p.limit) continue;
            uint box = lists.data[list * p.limit + heads.data[list]];
            if (box == NOTHING) continue;
            uint mine = key(box, list);
            if (mine > best) {
                best = mine;
                best_list = list;
            }
        }
        best_keys[begin] = best;
        best_lists[begin] = best_list;
        for (uint live = stride / 2u; live > 0u; live /= 2u) {
            barrier();
            if (begin < live) {
                uint other = best_keys[begin + live];
                uint other_list = best_lists[begin + live];
                if (other > best_keys[begin] || (other == best_keys[begin] && other_list < best_lists[begin])) {
                    best_keys[begin] = other;
                    best_lists[begin] = other_list;
                }
            }
        }
        barrier();
        uint winner = best_lists[0];
        barrier();
        if (winner == NOTHING) {
            if (begin == 0u) merged.data[slot] = uvec2(NOTHING);
        } else if (winner % stride == begin) {
            merged.data[slot] = uvec2(lists.data[winner * p.limit + heads.data[winner]], winner);
            heads.data[winner] += 1u;
        }
    }
}

// The class that comes at place `place` among those of a box.
uint ranked_class(uint box, uint place) {
    uint label = NOTHING;
    uint last_key = NOTHING;
    for (uint round = 0u; round <= place; ++round) {
        uint best = NOTHING;
        uint best_key = 0u;
        for (uint other = 0u; other < p.classes; ++other) {
            uint mine = key(box, other);
            bool is_left = round == 0u || mine < last_key || (mine == last_key && other > label);
            if (is_left && (best == NOTHING || mine > best_key)) {
                best = other;
                best_key = mine;
            }
        }
        label = best;
        last_key = best_key;
    }
    return label;
}

// Box and class of an output slot.
uvec2 detection(uint slot) {
    uint at = slot / p.classes_of_each;
    if (at >= p.detections) return uvec2(NOTHING);
    if (IS_FAST == 0u) return merged.data[at];
    uint place = slot - at * p.classes_of_each;
    uint box = at < p.limit ? lists.data[at] : NOTHING;
    if (box == NOTHING || place >= p.classes) return uvec2(NOTHING);
    return uvec2(box, ranked_class(box, place));
}

void main() {
    uint begin = gl_LocalInvocationID.x;
    const uint stride = gl_WorkGroupSize.x;
    if (IS_FAST == 0u) {
        merge_lists();
        memoryBarrierBuffer();
        barrier();
    }
    uint slots = p.detections * p.classes_of_each;
    for (uint slot = begin; slot < slots; slot += stride) {
        uint box = detection(slot).x;
        STORE(ACT, y_boxes, slot, box == NOTHING ? vec4(0.0) : LOAD(f32, boxes, box));
    }
    for (uint group = begin; group * 4u < slots; group += stride) {
        vec4 labels = vec4(0.0);
        vec4 values = vec4(0.0);
        for (uint lane = 0u; lane < 4u; ++lane) {
            uvec2 found = detection(group * 4u + lane);
            if (found.x == NOTHING) continue;
            labels[lane] = float(found.y);
            values[lane] = score(found.x, found.y);
        }
        STORE(ACT, y_classes, group, labels);
        STORE(ACT, y_scores, group, values);
    }
    if (begin == 0u) {
        uint count = 0u;
        while (count < p.detections && detection(count * p.classes_of_each).x != NOTHING) ++count;
        STORE(ACT, y_count, 0u, vec4(float(count)));
    }
}
