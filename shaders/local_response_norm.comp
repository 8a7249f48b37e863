#version 450
#extension GL_GOOGLE_include_directive : require
// LOCAL_RESPONSE_NORMALIZATION: x * (bias + alpha * sum of squares of the channels in reach)^-beta.

#define EPILOGUE_BINDING 2
#include "dispatch.glsl"
#include "epilogue.glsl"

TENSOR_IN(0, ACT, x);
TENSOR_OUT(1, ACT, y);

layout(push_constant) uniform Push {
    EPILOGUE_PUSH;
    uint num_groups;
    uint groups_per_row;
    int channels;
    int radius;
    float bias;
    float alpha;
    float beta;
} p;

void main() {
    uint i = flat_index();
    if (i >= p.num_groups) return;
    uint row = i / p.groups_per_row;
    uint group = i - row * p.groups_per_row;
    ivec4 channel = int(group) * 4 + ivec4(0, 1, 2, 3);
    int first = max(channel.x - p.radius, 0);
    int last = min(channel.w + p.radius, p.channels - 1);

    vec4 sum = vec4(0.0);
    for (int g = first >> 2; g <= last >> 2; ++g) {
        vec4 v = LOAD(ACT, x, row * p.groups_per_row + uint(g));
        for (int lane = 0; lane < 4; ++lane) {
            int other = g * 4 + lane;
            bvec4 is_near = lessThanEqual(abs(channel - other), ivec4(p.radius));
            if (other < p.channels) sum = mix(sum, sum + v[lane] * v[lane], is_near);
        }
    }
    vec4 scale = pow(p.bias + p.alpha * sum, vec4(-p.beta));
    STORE(ACT, y, i, epilogue(LOAD(ACT, x, i) * scale, i, row, group, p.immediates));
}
