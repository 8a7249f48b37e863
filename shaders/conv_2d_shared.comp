#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
// CONV_2D as a matrix product through shared memory, for GPUs. A workgroup makes a block of output
// pixels times output channels: step by step along the sum, its invocations stage the input that those
// pixels read and the weights of those channels, and each multiplies its register tile (TILE_P pixels
// times TILE_C groups of four channels) out of them. Every value staged serves a whole row or column
// of the block. The sum runs over kernel rows, columns and input groups in one row, in conv_2d's order.
//
// x: output channels; y: pixels; blocks of pixels continue along workgroups of z. Local size z splits
// the sum of each block. Groups of a grouped convolution share no input: those are conv_2d's.

#define EPILOGUE_BINDING 4
#include "dispatch.glsl"
#include "conv_product.glsl"

layout(constant_id = 11) const uint TILE_P = 4u;
layout(constant_id = 12) const uint TILE_C = 1u;
// Input channels modulo 4: the last group's padding lanes are masked.
layout(constant_id = 13) const uint TAIL = 0u;
// 1x1, stride 1, no padding: a pixel's input is where its output is.
layout(constant_id = 14) const uint IS_POINTWISE = 0u;
// 2: the next step is staged while others still multiply this one; 1 takes half the memory.
layout(constant_id = 15) const uint BUFFERS = 2u;
// Input groups of a step that each part of the sum multiplies; divides local size x times y.
layout(constant_id = 16) const uint DEPTH = 1u;

const uint PARTS = gl_WorkGroupSize.z;
const uint INVOCATIONS_OF_PART = gl_WorkGroupSize.x * gl_WorkGroupSize.y;
const uint INVOCATIONS = INVOCATIONS_OF_PART * PARTS;
const uint RESULTS = TILE_P * TILE_C;
const uint PIXELS = gl_WorkGroupSize.y * TILE_P;
const uint GROUPS = gl_WorkGroupSize.x * TILE_C;
const uint STEP = DEPTH * PARTS;

// Shared memory, once for each buffer: inputs by [input group][pixel], weights by [input lane][output
// group]. Neighbours stage neighbouring input groups of a pixel: rows are spaced so that eight of them
// write to eight different places of 16 bytes modulo 128, which are all the banks there are.
// tflite_vk/ops/conv_shared_tile.py computes the same size.
const uint ROW = (PIXELS + 7u) / 8u * 8u + (STEP < 8u ? 8u / STEP : 1u);
const uint NUM_INPUTS = STEP * PIXELS;
const uint NUM_WEIGHTS = STEP * 4u * GROUPS;
const uint WEIGHTS_AT = STEP * ROW;
const uint BUFFER = WEIGHTS_AT + NUM_WEIGHTS;
const uint STAGED = BUFFERS * BUFFER;
const uint PARTIAL = PARTS > 1u ? RESULTS * INVOCATIONS : 1u;  // after the last step: parts of the sums
shared vec4 pool[STAGED > PARTIAL ? STAGED : PARTIAL];

// What an invocation stages: of every PIXEL_STRIDE-th pixel the same one of the step's input groups, and
// every INVOCATIONS-th group of weights.
const uint PIXEL_STRIDE = INVOCATIONS / STEP;
const uint MY_INPUTS = (NUM_INPUTS + INVOCATIONS - 1u) / INVOCATIONS;
const uint MY_WEIGHTS = (NUM_WEIGHTS + INVOCATIONS - 1u) / INVOCATIONS;

// The place in the sum of the inputs it fetches next.
uint channel;  // input group
uint kernel_row;
uint kernel_column;

// Pixels whose input it fetches: where they lie at the kernel's first row and column.
uint positions[MY_INPUTS];
int tops[MY_INPUTS];
int lefts[MY_INPUTS];

// On their way from device memory while the step before is multiplied; unpacked when they are staged.
STORAGE(ACT) next_inputs[MY_INPUTS];
bool is_inside[MY_INPUTS];
bool is_last_group;
STORAGE(WEIGHT) next_weights[MY_WEIGHTS];
uint weights_from[MY_WEIGHTS];

vec4 accumulators[RESULTS];

void start(uint first_pixel, uint first_group) {
    uint mine = gl_LocalInvocationIndex;
    channel = mine % STEP;
    kernel_row = 0u;
    kernel_column = 0u;
    [[unroll]] for (uint i = 0u; i < MY_INPUTS; ++i) {
        uint pixel = min(first_pixel + mine / STEP + i * PIXEL_STRIDE, p.num_pixels - 1u);
        positions[i] = pixel;
        if (IS_POINTWISE == 0u) {
            uint row = pixel / p.output_width;
            uint image = row / p.output_height;
            tops[i] = int((row - image * p.output_height) * p.stride_h) - p.pad_top;
            lefts[i] = int((pixel - row * p.output_width) * p.stride_w) - p.pad_left;
            positions[i] = image * p.input_height;
        }
    }
    [[unroll]] for (uint i = 0u; i < MY_WEIGHTS; ++i) {
        uint index = mine + i * INVOCATIONS;
        weights_from[i] = index / GROUPS * p.output_groups + min(first_group + index % GROUPS, p.output_groups - 1u);
    }
}

// The end of the sum may lie within a step: zeros follow.
uint taps() { return IS_POINTWISE != 0u ? 1u : p.kernel_height * p.kernel_width; }
uint sum_groups() { return taps() * p.input_groups; }
uint num_weights() { return sum_groups() * 4u * p.output_groups; }

// Go on to the row and column that the input group has run into.
void carry() {
    if (IS_POINTWISE != 0u) return;
    while (channel >= p.input_groups) {
        channel -= p.input_groups;
        if (++kernel_column == p.kernel_width) {
            kernel_column = 0u;
            ++kernel_row;
        }
    }
}

void fetch() {
    bool is_in_sum = IS_POINTWISE != 0u ? channel < p.input_groups : kernel_row < p.kernel_height;
    is_last_group = channel == p.input_groups - 1u;
    [[unroll]] for (uint i = 0u; i < MY_INPUTS; ++i) {
        uint position = positions[i];
        is_inside[i] = is_in_sum;
        if (IS_POINTWISE == 0u) {
            int row = tops[i] + int(kernel_row * p.dilation_h);
            int column = lefts[i] + int(kernel_column * p.dilation_w);
            is_inside[i] = is_in_sum && row >= 0 && row < int(p.input_height) && column >= 0 && column < int(p.input_width);
            position = (position + uint(row)) * p.input_width + uint(column);
        }
        next_inputs[i] = x.data[is_inside[i] ? position * p.input_stride + channel : 0u];
    }
    [[unroll]] for (uint i = 0u; i < MY_WEIGHTS; ++i) {
        next_weights[i] = weights.data[weights_from[i] < num_weights() ? weights_from[i] : 0u];
    }
}

// Write what was fetched to shared memory, and go on in the sum.
void stage(uint buffer_at) {
    uint mine = gl_LocalInvocationIndex;
    // A padding lane may hold NaN, which a zero weight would not silence.
    bvec4 is_live = greaterThan(uvec4(TAIL), uvec4(0u, 1u, 2u, 3u));
    if (TAIL == 0u || !is_last_group) is_live = bvec4(true);
    [[unroll]] for (uint i = 0u; i < MY_INPUTS; ++i) {
        vec4 v = CAT(UNPACK_, ACT)(next_inputs[i]);
        if (TAIL != 0u) v = mix(vec4(0.0), v, is_live);
        uint pixel = mine / STEP + i * PIXEL_STRIDE;
        if (MY_INPUTS * INVOCATIONS == NUM_INPUTS || pixel < PIXELS) {
            pool[buffer_at + mine % STEP * ROW + pixel] = is_inside[i] ? v : vec4(0.0);
        }
    }
    [[unroll]] for (uint i = 0u; i < MY_WEIGHTS; ++i) {
        vec4 w = CAT(UNPACK_, WEIGHT)(next_weights[i]);
        uint index = mine + i * INVOCATIONS;
        if (MY_WEIGHTS * INVOCATIONS == NUM_WEIGHTS || index < NUM_WEIGHTS) {
            pool[buffer_at + WEIGHTS_AT + index] = weights_from[i] < num_weights() ? w : vec4(0.0);
        }
        weights_from[i] += STEP * 4u * p.output_groups;
    }
    channel += STEP;
    carry();
}

void multiply(uint buffer_at, uint column, uint row, uint part) {
    [[unroll]] for (uint d = 0u; d < DEPTH; ++d) {
        uint k = d * PARTS + part;
        vec4 values[TILE_P];
        uint inputs_at = buffer_at + k * ROW + row;
        [[unroll]] for (uint i = 0u; i < TILE_P; ++i) values[i] = pool[inputs_at + i * gl_WorkGroupSize.y];
        vec4 factors[4u * TILE_C];
        uint weights_at = buffer_at + WEIGHTS_AT + k * 4u * GROUPS + column;
        [[unroll]] for (uint j = 0u; j < 4u * TILE_C; ++j) {
            factors[j] = pool[weights_at + j / TILE_C * GROUPS + j % TILE_C * gl_WorkGroupSize.x];
        }
        [[unroll]] for (uint lane = 0u; lane < 4u; ++lane) {
            [[unroll]] for (uint i = 0u; i < RESULTS; ++i) {
                accumulators[i] += values[i / TILE_C][lane] * factors[lane * TILE_C + i % TILE_C];
            }
        }
    }
}

void main() {
    uint block = gl_WorkGroupID.y + gl_WorkGroupID.z * gl_NumWorkGroups.y;
    uint first_pixel = block * PIXELS;
    uint first_group = gl_WorkGroupID.x * GROUPS;
    // Folded grids may have blocks to spare; only whole workgroups leave, the others meet at barriers.
    if (first_pixel >= p.num_pixels) return;

    // Which column and row of the block: of two neighbours both take the same column where they can. A
    // GPU that serves eight loads of 16 bytes at a time then serves sixteen, for two are the same.
    uint mine = gl_LocalInvocationIndex % INVOCATIONS_OF_PART;
    uint part = gl_LocalInvocationIndex / INVOCATIONS_OF_PART;
    const uint PAIR = gl_WorkGroupSize.y % 2u == 0u ? 2u : 1u;
    uint column = mine / PAIR % gl_WorkGroupSize.x;
    uint row = mine / PAIR / gl_WorkGroupSize.x * PAIR + mine % PAIR;

    [[unroll]] for (uint i = 0u; i < RESULTS; ++i) accumulators[i] = vec4(0.0);

    uint steps = (sum_groups() + STEP - 1u) / STEP;
    start(first_pixel, first_group);
    carry();
    fetch();
    for (uint step = 0u; step < steps; ++step) {
        uint buffer_at = BUFFERS == 1u ? 0u : (step & 1u) * BUFFER;
        stage(buffer_at);
        barrier();
        // Behind the last step there are only zeros to fetch. A condition here would make the compiler
        // join two sets of registers, and wait for the loads to do so.
        fetch();
        multiply(buffer_at, column, row, part);
        if (BUFFERS == 1u) barrier();
    }

    uint pixel = first_pixel + row;
    uint group = first_group + column;
    if (PARTS == 1u) {
        [[unroll]] for (uint i = 0u; i < RESULTS; ++i) {
            store_result(accumulators[i], pixel + i / TILE_C * gl_WorkGroupSize.y, group + i % TILE_C * gl_WorkGroupSize.x);
        }
        return;
    }
    // The parts meet in shared memory, and share the results.
    barrier();
    [[unroll]] for (uint i = 0u; i < RESULTS; ++i) pool[i * INVOCATIONS + gl_LocalInvocationIndex] = accumulators[i];
    barrier();
    [[dont_unroll]] for (uint i = part; i < RESULTS; i += PARTS) {
        vec4 sum = pool[i * INVOCATIONS + mine];
        for (uint other = 1u; other < PARTS; ++other) sum += pool[i * INVOCATIONS + other * INVOCATIONS_OF_PART + mine];
        store_result(sum, pixel + i / TILE_C * gl_WorkGroupSize.y, group + i % TILE_C * gl_WorkGroupSize.x);
    }
}
