// What the kernels that make CONV_2D as a matrix product share: buffers, push constants and how a sum
// becomes an output. EPILOGUE_BINDING is 4.
//
// Weights: [kernel row][kernel column][input group][input lane][output group] of vec4 over outputs.
#ifndef CONV_PRODUCT_GLSL
#define CONV_PRODUCT_GLSL

#include "epilogue.glsl"

TENSOR_IN(0, ACT, x);
TENSOR_IN(1, WEIGHT, weights);
TENSOR_IN(2, f32, bias);
TENSOR_OUT(3, ACT, y);

layout(push_constant) uniform Push {
    EPILOGUE_PUSH;
    uint num_pixels;        // batch * output height * output width
    uint output_groups;
    uint input_groups;      // of one group of a grouped convolution
    uint input_stride;      // groups from pixel to pixel
    uint output_height;
    uint output_width;
    uint input_height;
    uint input_width;
    uint kernel_height;
    uint kernel_width;
    uint stride_h;
    uint stride_w;
    uint dilation_h;
    uint dilation_w;
    int pad_top;
    int pad_left;
    uint outputs_per_group; // output groups that share the same input channels
} p;

// Finish and store a sum, unless it lies beyond the output.
void store_result(vec4 sum, uint pixel, uint g) {
    if (pixel >= p.num_pixels || g >= p.output_groups) return;
    uint at = pixel * p.output_groups + g;
    // The bias last, as TFLite's reference kernel adds it: the same rounding.
    STORE(ACT, y, at, epilogue(sum + LOAD(f32, bias, g), at, pixel, g, p.immediates));
}

#endif
