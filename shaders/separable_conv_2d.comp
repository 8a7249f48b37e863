#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
// DEPTHWISE_CONV_2D with one output per input channel, and the 1x1 CONV_2D that alone reads its result.
//
// A workgroup makes a tile of PIXELS pixels times so many output groups. First all its invocations compute
// the depthwise results that the tile's pixels need, CHUNK input groups at a time, into shared memory;
// then each multiplies TILE_P pixels by TILE_C groups of weights, as in conv_2d: local size z splits the
// sum over the input channels, and the parts meet in the same shared memory.
//
// x: output channels; y: tiles of pixels, which continue along workgroups of z.
// Depthwise weights lie in the plain tensor layout, the others in [input group][input lane][output group]
// of vec4 over outputs.

#define EPILOGUE_BINDING 6
#include "dispatch.glsl"
#include "epilogue.glsl"

layout(constant_id = 11) const uint TILE_P = 4u;
layout(constant_id = 12) const uint TILE_C = 1u;
// Channels between the two modulo 4: the last group's padding lanes are masked.
layout(constant_id = 13) const uint TAIL = 0u;
// Steps along the input channels taken together, so that the loads of one needn't wait for another's.
layout(constant_id = 14) const uint DEPTH = 1u;
// Groups of channels between the two, a constant so that drivers know the length of the sums.
layout(constant_id = 15) const uint GROUPS = 8u;
// How many of them are held at a time: all, or a multiple of local size z, which keeps the order of the sums.
layout(constant_id = 16) const uint CHUNK = 8u;
// Pixels of a depthwise unit: they share its weights, and their loads are under way together.
layout(constant_id = 17) const uint TILE_D = 1u;
// Results of an invocation whose parts are in shared memory at a time.
layout(constant_id = 18) const uint SLICE = 4u;
layout(constant_id = 19) const uint KERNEL_H = 3u;
layout(constant_id = 20) const uint KERNEL_W = 3u;
// Elementwise operator between the two convolutions: a code of epilogue.glsl's unary operators.
layout(constant_id = 21) const uint BETWEEN = 0u;

TENSOR_IN(0, ACT, source);
TENSOR_IN(1, WEIGHT, depthwise_weights);
TENSOR_IN(2, f32, depthwise_bias);
TENSOR_IN(3, WEIGHT, weights);
TENSOR_IN(4, f32, bias);
TENSOR_OUT(5, ACT, target);

layout(push_constant) uniform Push {
    EPILOGUE_PUSH;
    uint num_pixels;        // batch * output height * output width
    uint output_groups;
    uint output_height;
    uint output_width;
    uint input_height;
    uint input_width;
    uint stride_h;
    uint stride_w;
    uint dilation_h;
    uint dilation_w;
    int pad_top;
    int pad_left;
} p;

const uint INVOCATIONS = gl_WorkGroupSize.x * gl_WorkGroupSize.y * gl_WorkGroupSize.z;
const uint LAYER = gl_WorkGroupSize.x * gl_WorkGroupSize.y;  // invocations that share a part of the sum
const uint PIXELS = TILE_P * gl_WorkGroupSize.y;
const uint UNITS = (PIXELS + TILE_D - 1u) / TILE_D * CHUNK;
const uint RESULTS = SLICE * LAYER;

// Depthwise results by [pixel of the tile][group of the chunk]; then, where the sum is split, its parts by
// [part][result].
const uint HELD = PIXELS * CHUNK;
const uint PARTS = gl_WorkGroupSize.z > 1u ? RESULTS * gl_WorkGroupSize.z : 1u;
shared vec4 pool[HELD > PARTS ? HELD : PARTS];

const int NOWHERE = -0x40000000;

vec4 accumulators[TILE_P * TILE_C];

// What a tensor between the two would give back.
#define ROUNDED(v) CAT(UNPACK_, ACT)(CAT(PACK_, ACT)(v))

// Depthwise results of `count` groups from `first_group` on, for the pixels from `first_pixel` on.
void fill_pool(uint first_group, uint count, uint first_pixel) {
    for (uint unit = gl_LocalInvocationIndex; unit < UNITS; unit += INVOCATIONS) {
        uint first = unit / CHUNK;
        uint c = unit - first * CHUNK;
        first *= TILE_D;
        if (c >= count) continue;
        uint group = first_group + c;
        int tops[TILE_D];
        int lefts[TILE_D];
        int bases[TILE_D];  // where a pixel's window begins in the input, perhaps outside
        vec4 sums[TILE_D];
        // One division for the unit: its pixels follow each other.
        uint pixel = first_pixel + first;
        uint row = pixel / p.output_width;
        uint column = pixel - row * p.output_width;
        uint image = row / p.output_height;
        row -= image * p.output_height;
        [[unroll]] for (uint i = 0u; i < TILE_D; ++i) {
            // Beyond the last pixel nothing is inside.
            tops[i] = pixel + i < p.num_pixels ? int(row * p.stride_h) - p.pad_top : NOWHERE;
            lefts[i] = int(column * p.stride_w) - p.pad_left;
            int base = (int(image * p.input_height) + tops[i]) * int(p.input_width) + lefts[i];
            bases[i] = base * int(GROUPS) + int(group);
            sums[i] = vec4(0.0);
            column += 1u;
            if (column == p.output_width) {
                column = 0u;
                row += 1u;
            }
            if (row == p.output_height) {
                row = 0u;
                image += 1u;
            }
        }
        [[unroll]] for (uint ky = 0u; ky < KERNEL_H; ++ky) {
            [[unroll]] for (uint kx = 0u; kx < KERNEL_W; ++kx) {
                uint offset = (ky * p.dilation_h * p.input_width + kx * p.dilation_w) * GROUPS;
                vec4 w = LOAD(WEIGHT, depthwise_weights, (ky * KERNEL_W + kx) * GROUPS + group);
                [[unroll]] for (uint i = 0u; i < TILE_D; ++i) {
                    uint y = uint(tops[i] + int(ky * p.dilation_h));  // a negative one is beyond any height
                    uint x = uint(lefts[i] + int(kx * p.dilation_w));
                    bool is_inside = y < p.input_height && x < p.input_width;
                    uint at = is_inside ? uint(bases[i]) + offset : group;
                    vec4 sum = sums[i] + LOAD(ACT, source, at) * w;
                    // A choice, not a branch: all loads are under way together.
                    sums[i] = mix(sums[i], sum, bvec4(is_inside));
                }
            }
        }
        vec4 b = LOAD(f32, depthwise_bias, group);
        // A padding lane may hold NaN, which a zero weight would not silence.
        bvec4 is_live = greaterThan(uvec4(TAIL), uvec4(0u, 1u, 2u, 3u));
        if (TAIL == 0u || group != GROUPS - 1u) is_live = bvec4(true);
        [[unroll]] for (uint i = 0u; i < TILE_D; ++i) {
            vec4 v = mix(vec4(0.0), unary(BETWEEN, sums[i] + b), is_live);
            if (PIXELS % TILE_D == 0u || first + i < PIXELS) pool[(first + i) * CHUNK + c] = ROUNDED(v);
        }
    }
}

// One step along the input channels: group `channel`, held as group c of the chunk.
void multiply(uint c, uint channel, uint group) {
    vec4 values[TILE_P];
    [[unroll]] for (uint i = 0u; i < TILE_P; ++i) {
        values[i] = pool[(gl_LocalInvocationID.y * TILE_P + i) * CHUNK + c];
    }
    [[unroll]] for (uint lane = 0u; lane < 4u; ++lane) {
        [[unroll]] for (uint j = 0u; j < TILE_C; ++j) {
            uint g = min(group + j * gl_WorkGroupSize.x, p.output_groups - 1u);
            vec4 w = LOAD(WEIGHT, weights, (channel * 4u + lane) * p.output_groups + g);
            [[unroll]] for (uint i = 0u; i < TILE_P; ++i) {
                accumulators[i * TILE_C + j] += values[i][lane] * w;
            }
        }
    }
}

// Finish and store a sum of the tile, unless it lies beyond the output.
void store_result(vec4 sum, uint pixel, uint g) {
    if (pixel >= p.num_pixels || g >= p.output_groups) return;
    uint at = pixel * p.output_groups + g;
    // The bias last, as TFLite's reference kernel adds it: the same rounding.
    STORE(ACT, target, at, epilogue(sum + LOAD(f32, bias, g), at, pixel, g, p.immediates));
}

void main() {
    uint first_group = gl_WorkGroupID.x * gl_WorkGroupSize.x * TILE_C;
    uint first_pixel = (gl_WorkGroupID.y + gl_WorkGroupID.z * gl_NumWorkGroups.y) * PIXELS;
    if (first_pixel >= p.num_pixels) return;  // the whole workgroup
    uint group = first_group + gl_LocalInvocationID.x;
    uint part = gl_LocalInvocationID.z;
    const uint step = gl_WorkGroupSize.z;

    [[unroll]] for (uint i = 0u; i < TILE_P * TILE_C; ++i) accumulators[i] = vec4(0.0);
    for (uint first = 0u; first < GROUPS; first += CHUNK) {
        uint count = GROUPS <= CHUNK ? GROUPS : min(CHUNK, GROUPS - first);
        if (first != 0u) barrier();
        fill_pool(first, count, first_pixel);
        barrier();
        // Of `count` groups every sharer takes so many, the first ones perhaps one more.
        uint steps = count / step;
        uint s = 0u;
        for (; s + DEPTH <= steps; s += DEPTH) {
            [[unroll]] for (uint d = 0u; d < DEPTH; ++d) {
                multiply((s + d) * step + part, first + (s + d) * step + part, group);
            }
        }
        if (steps % DEPTH != 0u) {
            for (; s < steps; ++s) multiply(s * step + part, first + s * step + part, group);
        }
        if (count % step != 0u && steps * step + part < count) {
            multiply(steps * step + part, first + steps * step + part, group);
        }
    }

    if (step == 1u) {
        uint pixel = first_pixel + gl_LocalInvocationID.y * TILE_P;
        // One copy of the epilogue for each group; the sums move up from pixel to pixel.
        [[dont_unroll]] for (uint i = 0u; i < TILE_P; ++i) {
            [[unroll]] for (uint j = 0u; j < TILE_C; ++j) {
                store_result(accumulators[j], pixel + i, group + j * gl_WorkGroupSize.x);
            }
            [[unroll]] for (uint k = TILE_C; k < TILE_P * TILE_C; ++k) accumulators[k - TILE_C] = accumulators[k];
        }
        return;
    }
    uint mine = gl_LocalInvocationID.y * gl_WorkGroupSize.x + gl_LocalInvocationID.x;
    // Slice by slice, of which the next one moves up, so that there is one copy of this code.
    [[dont_unroll]] for (uint slice = 0u; slice < TILE_P * TILE_C; slice += SLICE) {
        barrier();  // all have read what is overwritten now
        [[unroll]] for (uint i = 0u; i < SLICE; ++i) pool[part * RESULTS + i * LAYER + mine] = accumulators[i];
        [[unroll]] for (uint k = SLICE; k < TILE_P * TILE_C; ++k) accumulators[k - SLICE] = accumulators[k];
        barrier();
        // Every invocation finishes its share of the results, part by part in their order.
        for (uint r = gl_LocalInvocationIndex; r < RESULTS; r += INVOCATIONS) {
            vec4 sum = pool[r];
            for (uint other = 1u; other < step; ++other) sum += pool[other * RESULTS + r];
            uint i = r / LAYER;
            uint of = r - i * LAYER;
            uint row = of / gl_WorkGroupSize.x;
            uint column = of - row * gl_WorkGroupSize.x;
            i += slice;
            if (i >= TILE_P * TILE_C) continue;
            uint pixel = first_pixel + row * TILE_P + i / TILE_C;
            store_result(sum, pixel, first_group + column + i % TILE_C * gl_WorkGroupSize.x);
        }
    }
}
