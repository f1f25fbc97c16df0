// A weight in blocks of codes, decoded piece by piece.
#pragma once

#include "ops/cpu/coded_matrix.h"
#include "ops/kernel.h"

namespace headroom {

// Writes elements first .. first + count, which are whole blocks, as CodedMatrix::read() gives them, rounded to nearest
// even. Thread-safe; no heap call.
using CodedTileDecoder = void (*)(const CodedMatrix& weight, int64_t first, int64_t count, void* to);

// Decodes weights that are stored like this to `dtype`, from blocks of a multiple of 32 4-bit codes or of 16 8-bit
// codes; needs AVX2. `wide`: f32 elements, rounded to `dtype`.
CodedTileDecoder coded_tile_decoder(const Storage& storage, DType dtype, bool wide, const Capabilities& capabilities);

// The same to bf16; needs AVX-512 with bf16. Subnormal numbers become zero.
CodedTileDecoder bf16_coded_tile_decoder();

}  // namespace headroom
