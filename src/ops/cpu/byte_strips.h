// Strips of 32 lanes of 8-bit codes as bytes, for AMX tiles and AVX-512 VNNI: parts of 64 steps, each in two halves of
// sixteen lanes. A half of A is [lane][step], one of B [four steps][lane]. All need AVX-512 VNNI, and
// are only there where the compiler knows it.
#pragma once

#include "ops/cpu/int8_product.h"

namespace headroom::byte_strips {

constexpr int64_t kLanes = 16;     // of a half
constexpr int64_t kStep = 64;      // steps of a part
constexpr int32_t kRaised = 0x80;  // added to the codes of A for VNNI, which multiplies unsigned bytes by signed ones
static_assert(kInt8Tiles.rows == 2 * kLanes && kInt8Tiles.cols == 2 * kLanes && kInt8Tiles.depth_unit == kStep);
static_assert(kInt8Vnni.rows == 2 * kLanes && kInt8Vnni.cols == 2 * kLanes && kInt8Vnni.depth_unit == kStep);

// Of A and B for AMX.
PackStrips pack_rows();
PackStrips pack_quads();
// Of A and B for VNNI. Behind each strip of B is what raising A adds to the sums of its lanes: kRaised times the sum of
// their codes.
PackStrips pack_raised_rows();
PackStrips pack_quads_and_sums();

// Writes a tile of sums of 32 rows and columns to C.
void finish(const Int8Tile& tile);

}  // namespace headroom::byte_strips
