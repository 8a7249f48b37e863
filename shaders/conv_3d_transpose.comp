#version 450
#extension GL_GOOGLE_include_directive : require
// CONV_3D_TRANSPOSE as a gather: each invocation makes four channels of one output, out of the taps
// whose input exists.
//
// Weights as TFLite stores them, [depth][row][column][output][input]: a row is vec4 over inputs.

#define EPILOGUE_BINDING 4
#include "dispatch.glsl"
#include "epilogue.glsl"

// Input channels modulo 4: the last group's padding lanes are masked.
layout(constant_id = 11) const uint TAIL = 0u;

TENSOR_IN(0, ACT, x);
TENSOR_IN(1, ACT, weights);
TENSOR_IN(2, f32, bias);
TENSOR_OUT(3, ACT, y);

layout(push_constant) uniform Push {
    EPILOGUE_PUSH;
    uint num_groups;
    uint output_groups;
    uint input_groups;
    uint output_channels;
    uint y_size[3];       // depth, height, width
    uint x_size[3];
    uint kernel[3];
    uint stride[3];
    uint dilation[3];
    uint pad[3];
} p;

// Input that a tap reads for an output; false where there is none.
bool source(uint axis, uint output_at, uint tap, out uint input_at) {
    uint reached = output_at + p.pad[axis];
    uint offset = tap * p.dilation[axis];
    uint distance = reached - offset;
    input_at = distance / p.stride[axis];
    return offset <= reached && input_at * p.stride[axis] == distance && input_at < p.x_size[axis];
}

vec4 masked(vec4 v, uint c) {
    if (TAIL == 0u || c + 1u < p.input_groups) return v;
    return vec4(v.x, TAIL > 1u ? v.y : 0.0, TAIL > 2u ? v.z : 0.0, 0.0);
}

void main() {
    uint i = flat_index();
    if (i >= p.num_groups) return;
    uint pixel = i / p.output_groups;
    uint group = i - pixel * p.output_groups;
    uint row = pixel / p.y_size[2];
    uint ox = pixel - row * p.y_size[2];
    uint plane = row / p.y_size[1];
    uint oy = row - plane * p.y_size[1];
    uint image = plane / p.y_size[0];
    uint oz = plane - image * p.y_size[0];
    uvec4 channel = min(group * 4u + uvec4(0u, 1u, 2u, 3u), uvec4(p.output_channels - 1u));

    vec4 sum = LOAD(f32, bias, group);
    uint iz, iy, ix;
    for (uint kz = 0u; kz < p.kernel[0]; ++kz) {
        if (!source(0u, oz, kz, iz)) continue;
        for (uint ky = 0u; ky < p.kernel[1]; ++ky) {
            if (!source(1u, oy, ky, iy)) continue;
            for (uint kx = 0u; kx < p.kernel[2]; ++kx) {
                if (!source(2u, ox, kx, ix)) continue;
                uint at = (((image * p.x_size[0] + iz) * p.x_size[1] + iy) * p.x_size[2] + ix) * p.input_groups;
                uint tap = (kz * p.kernel[1] + ky) * p.kernel[2] + kx;
                uvec4 w = (tap * p.output_channels + channel) * p.input_groups;
                for (uint c = 0u; c < p.input_groups; ++c) {
                    vec4 v = masked(LOAD(ACT, x, at + c), c);
                    for (uint lane = 0u; lane < 4u; ++lane) {
                        sum[lane] += dot(v, masked(LOAD(ACT, weights, w[lane] + c), c));
                    }
                }
            }
        }
    }
    STORE(ACT, y, i, epilogue(sum, i, pixel, group, p.immediates));
}
