// Local size and flat invocation index, the same in every kernel: specialization ids 0 to 2.
#ifndef DISPATCH_GLSL
#define DISPATCH_GLSL

layout(local_size_x_id = 0, local_size_y_id = 1, local_size_z_id = 2) in;

// A flat index over a dispatch that was folded over x and y, because one axis takes no more than
// 65535 workgroups (tflite_vk/ops/launch.py folds it).
uint flat_index() {
    return gl_GlobalInvocationID.x + gl_GlobalInvocationID.y * (gl_NumWorkGroups.x * gl_WorkGroupSize.x);
}

// The same for kernels that give a whole workgroup one piece of work.
uint flat_group() { return gl_WorkGroupID.x + gl_WorkGroupID.y * gl_NumWorkGroups.x; }

#endif
