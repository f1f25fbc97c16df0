// A weight in blocks of codes, decoded piece by piece.
#pragma once

#include "ops/cpu/coded_matrix.h"
#include "ops/kernel.h"

namespace headroom {

// Writes elements first .. first + count, whole blocks, what CodedMatrix::read() says of them, rounded to nearest even.
// Thread-safe; no heap call.
using CodedTileDecoder = void (*)(const CodedMatrix& weight, int64_t first, int64_t count, void* to);

// To elements of `dtype`, of blocks of 32 codes of 4 bits, or of 16 of 8; needs AVX2.
CodedTileDecoder coded_tile_decoder(DType dtype, const Capabilities& capabilities);

// To bf16; needs AVX-512 with bf16. Subnormal numbers become zero.
CodedTileDecoder bf16_coded_tile_decoder();

}  // namespace headroom
