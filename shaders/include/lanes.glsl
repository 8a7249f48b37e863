// Lanes as bare bits, for kernels that move elements and never look at them: one source serves every
// storage type of the same width. LANE_BITS, set by -D, is that width.
//
// A group of four lanes is a GROUP in memory and a QUAD in registers; one lane there is a LANE.
#ifndef LANES_GLSL
#define LANES_GLSL

#ifndef LANE_BITS
#define LANE_BITS 32
#endif

// LANES_PART declares an output where a kernel may own only some lanes of a group. Narrow lanes share
// words, so there the rest of the word is read and written back.
#define LANES_BUFFER(access, slot, name) \
    layout(set = 0, binding = slot, std430) access buffer name##_block { GROUP data[]; } name
#define LANES_IN(slot, name) LANES_BUFFER(readonly, slot, name)
#define LANES_OUT(slot, name) LANES_BUFFER(writeonly, slot, name)

#if LANE_BITS == 64
#define LANE uvec2
#define QUAD uvec2[4]
#define GROUP Group
struct Group { uvec2 lanes[4]; };
#define LANES_PART(slot, name) LANES_BUFFER(writeonly, slot, name)
#define UNPACK_LANES(group) (group.lanes)
#define PACK_LANES(lanes) Group(lanes)
#define LOAD_LANE(name, i) name.data[(i) >> 2].lanes[(i) & 3u]
#define STORE_LANE(name, i, k, v) name.data[i].lanes[k] = (v)
LANE lane_of_word(uint word) { return uvec2(word, 0u); }
QUAD same_lanes(LANE lane) { return QUAD(lane, lane, lane, lane); }
QUAD choose_lanes(QUAD a, QUAD b, bvec4 is_b) {
    return QUAD(is_b.x ? b[0] : a[0], is_b.y ? b[1] : a[1], is_b.z ? b[2] : a[2], is_b.w ? b[3] : a[3]);
}
#else
#define LANE uint
#define QUAD uvec4
LANE lane_of_word(uint word) { return word; }
QUAD same_lanes(LANE lane) { return uvec4(lane); }
QUAD choose_lanes(QUAD a, QUAD b, bvec4 is_b) { return mix(a, b, is_b); }
#endif

#if LANE_BITS == 32
#define GROUP uvec4
#define LANES_PART(slot, name) LANES_BUFFER(writeonly, slot, name)
#define UNPACK_LANES(group) (group)
#define PACK_LANES(lanes) (lanes)
#define LOAD_LANE(name, i) name.data[(i) >> 2][(i) & 3u]
#define STORE_LANE(name, i, k, v) name.data[i][k] = (v)
#elif LANE_BITS == 16
#define GROUP uvec2
#define LANES_PART(slot, name) LANES_BUFFER(, slot, name)
#define UNPACK_LANES(group) unpack_lanes(group)
#define PACK_LANES(lanes) pack_lanes(lanes)
#define LOAD_LANE(name, i) bitfieldExtract(name.data[(i) >> 2][((i) >> 1) & 1u], int(((i) & 1u) << 4), 16)
#define STORE_LANE(name, i, k, v) \
    name.data[i][(k) >> 1] = bitfieldInsert(name.data[i][(k) >> 1], v, int(((k) & 1u) << 4), 16)
uvec4 unpack_lanes(uvec2 group) {
    return uvec4(group.x & 0xFFFFu, group.x >> 16, group.y & 0xFFFFu, group.y >> 16);
}
uvec2 pack_lanes(uvec4 v) { return uvec2(v.x | v.y << 16, v.z | v.w << 16); }
#elif LANE_BITS == 8
#define GROUP uint
#define LANES_PART(slot, name) LANES_BUFFER(, slot, name)
#define UNPACK_LANES(group) unpack_lanes(group)
#define PACK_LANES(lanes) pack_lanes(lanes)
#define LOAD_LANE(name, i) bitfieldExtract(name.data[(i) >> 2], int(((i) & 3u) << 3), 8)
#define STORE_LANE(name, i, k, v) name.data[i] = bitfieldInsert(name.data[i], v, int((k) << 3), 8)
uvec4 unpack_lanes(uint group) {
    return uvec4(group & 0xFFu, (group >> 8) & 0xFFu, (group >> 16) & 0xFFu, group >> 24);
}
uint pack_lanes(uvec4 v) { return v.x | v.y << 8 | v.z << 16 | v.w << 24; }
#endif

#define LOAD_LANES(name, i) UNPACK_LANES(name.data[i])
#define STORE_LANES(name, i, v) name.data[i] = PACK_LANES(v)

#endif
