#version 450
#extension GL_GOOGLE_include_directive : require
// TFLite_Detection_PostProcess, first part: boxes out of encodings and anchors. Encodings and anchors
// are (y, x, h, w) of centres, boxes (ymin, xmin, ymax, xmax).

#include "dispatch.glsl"
#include "tensor.glsl"

TENSOR_IN(0, ACT, encodings);
TENSOR_IN(1, f32, anchors);
TENSOR_OUT(2, f32, boxes);

layout(push_constant) uniform Push {
    uint num_boxes;
    uint groups_per_row;   // of encodings
    uint padding0;
    uint padding1;
    vec4 scale;
} p;

void main() {
    uint i = flat_index();
    if (i >= p.num_boxes) return;
    vec4 encoding = LOAD(ACT, encodings, i * p.groups_per_row) / p.scale;
    vec4 anchor = LOAD(f32, anchors, i);
    vec2 centre = encoding.xy * anchor.zw + anchor.xy;
    vec2 extent = 0.5 * exp(encoding.zw) * anchor.zw;
    STORE(f32, boxes, i, vec4(centre - extent, centre + extent));
}
