// Functions of one 8-bit value that were fused into the kernel before them: 256 results by the bits of the
// argument, as lookup.comp has them.
//
// A kernel defines TABLE_BINDING and TABLE_ID, the binding of the table and the number of the last
// specialization constant.
#ifndef TABLE_GLSL
#define TABLE_GLSL

layout(constant_id = TABLE_ID) const uint HAS_TABLE = 0u;
layout(set = 0, binding = TABLE_BINDING, std430) readonly buffer fused_table_block { uint data[]; } fused_table;

// Four values in one word.
uint through_table(uint word) {
    if (HAS_TABLE == 0u) return word;
    return fused_table.data[word & 0xFFu] | fused_table.data[(word >> 8) & 0xFFu] << 8 |
           fused_table.data[(word >> 16) & 0xFFu] << 16 | fused_table.data[word >> 24] << 24;
}

#endif
