#include <algorithm>

#include "base/error.h"
#include "base/threads.h"
#include "ops/cpu/amx.h"
#include "ops/cpu/avx512_bf16.h"
#include "ops/cpu/thin_matmul.h"

#ifdef HEADROOM_HAS_AMX

namespace headroom {
namespace {

using amx::kStepBytes;
using amx::kTileBytes;

constexpr int64_t kTogether = 2;  // groups of 32 steps that are multiplied before the sums are stored

class AmxThinMatmul final : public Matmul {
 public:
  AmxThinMatmul(const MatmulSpec& spec, const TileKernel& tiles, int threads)
      : spec_(spec), tiles_(tiles), cut_(cut_thin(spec, threads)), booked_(cut_.total_bytes()) {}

  int64_t scratch_bytes() const override { return booked_; }

  void run(const MatmulArguments& arguments) const override {
    parallel_for(cut_.cells, 1, [&](int64_t begin, int64_t end, int) {
      tiles_.enter();
      for (int64_t cell = begin; cell < end; ++cell) run_cell(arguments, cell);
      tiles_.leave();
    });
  }

 private:
  // The columns of one cell, in blocks of 32, and its scratch.
  struct Cell {
    const uint16_t* b = nullptr;
    std::byte* a = nullptr;     // packed strips of 32 rows
    std::byte* sums = nullptr;  // two tiles per block and 16 rows
    int64_t first = 0, blocks = 0;
  };

  void run_cell(const MatmulArguments& arguments, int64_t index) const {
    Cell cell;
    cell.b = static_cast<const uint16_t*>(arguments.b);
    cell.a = arguments.scratch + index * cut_.cell_bytes();
    cell.sums = cell.a + cut_.a_bytes;
    cell.first = index * cut_.cell_blocks;
    cell.blocks = std::min(cut_.blocks - cell.first, cut_.cell_blocks);
    tiles_.pack_a({arguments.a, spec_.operand, spec_.size.rows, true, 0, spec_.size.rows, 0, spec_.size.depth, cell.a,
                   cut_.steps * kStepBytes});
    for (int64_t step = 0; step < cut_.steps; step += kTogether)
      for (int64_t block = 0; block < cell.blocks; ++block) add_block(cell, step, block);
    const float* addend = spec_.addend ? static_cast<const float*>(arguments.addend) : nullptr;
    for (int64_t block = 0; block < cell.blocks; ++block)
      for (int64_t row = 0; row < spec_.size.rows; ++row)
        finish_row(cell, block, row, addend, static_cast<float*>(arguments.c));
  }

  // Adds kTogether times 32 steps for a block's columns.
  HEADROOM_AMX void add_block(const Cell& cell, int64_t step, int64_t block) const {
    alignas(64) std::byte packed[kTogether * kStepBytes];
    const int64_t parts = std::min(kTogether, cut_.steps - step);
    for (int64_t part = 0; part < parts; ++part) interleave(cell, step + part, block, packed + part * kStepBytes);
    for (int64_t row_tile = 0; row_tile < cut_.row_tiles; ++row_tile) {
      std::byte* const sums = cell.sums + (block * cut_.row_tiles + row_tile) * kStepBytes;
      if (step == 0) {
        _tile_zero(0);
        _tile_zero(1);
      } else {
        _tile_loadd(0, sums, 64);
        _tile_loadd(1, sums + kTileBytes, 64);
      }
      const std::byte* a = cell.a + (row_tile / 2 * cut_.steps + step) * kStepBytes + row_tile % 2 * kTileBytes;
      for (int64_t part = 0; part < parts; ++part) {
        _tile_loadd(4, a + part * kStepBytes, 64);
        _tile_loadd(6, packed + part * kStepBytes, 64);
        _tile_dpbf16ps(0, 4, 6);
        _tile_loadd(7, packed + part * kStepBytes + kTileBytes, 64);
        _tile_dpbf16ps(1, 4, 7);
      }
      _tile_stored(0, sums, 64);
      _tile_stored(1, sums + kTileBytes, 64);
    }
  }

  // Interleaves pairs of steps: the first tile has columns 0-3, 8-11, 16-19, 24-27, the second the others.
  HEADROOM_AMX void interleave(const Cell& cell, int64_t step, int64_t block, std::byte* to) const {
    const int64_t col = (cell.first + block) * 32, stride = spec_.size.cols;
    const int64_t rows = std::min<int64_t>(32, spec_.size.depth - step * 32);
    const uint16_t* from = cell.b + step * 32 * stride + col;
    const __mmask32 mask = first_words(stride - col);
    for (int64_t pair = 0; pair < 16; ++pair, from += 2 * stride) {
      const int64_t left = rows - 2 * pair;
      const __m512i even = left > 0 ? _mm512_maskz_loadu_epi16(mask, from) : _mm512_setzero_si512();
      const __m512i odd = left > 1 ? _mm512_maskz_loadu_epi16(mask, from + stride) : _mm512_setzero_si512();
      _mm512_store_si512(to + 64 * pair, _mm512_unpacklo_epi16(even, odd));
      _mm512_store_si512(to + kTileBytes + 64 * pair, _mm512_unpackhi_epi16(even, odd));
    }
  }

  // Restores the order of the columns in a row of sums and adds the addend.
  HEADROOM_AMX void finish_row(const Cell& cell, int64_t block, int64_t row, const float* addend, float* c) const {
    const std::byte* sums = cell.sums + (block * cut_.row_tiles + row / 16) * kStepBytes + row % 16 * 64;
    const __m512 even = _mm512_load_ps(sums), odd = _mm512_load_ps(sums + kTileBytes);
    const __m512i first = _mm512_setr_epi32(0, 1, 2, 3, 16, 17, 18, 19, 4, 5, 6, 7, 20, 21, 22, 23);
    const __m512i second = _mm512_setr_epi32(8, 9, 10, 11, 24, 25, 26, 27, 12, 13, 14, 15, 28, 29, 30, 31);
    __m512 left = _mm512_permutex2var_ps(even, first, odd), right = _mm512_permutex2var_ps(even, second, odd);
    const int64_t col = (cell.first + block) * 32, at = row * spec_.size.cols + col;
    const __mmask32 mask = first_words(spec_.size.cols - col);
    const __mmask16 low = static_cast<__mmask16>(mask), high = static_cast<__mmask16>(mask >> 16);
    if (addend) {
      left = _mm512_add_ps(left, _mm512_maskz_loadu_ps(low, addend + at));
      right = _mm512_add_ps(right, _mm512_maskz_loadu_ps(high, addend + at + 16));
    }
    _mm512_mask_storeu_ps(c + at, low, left);
    _mm512_mask_storeu_ps(c + at + 16, high, right);
  }

  MatmulSpec spec_;
  TileKernel tiles_;
  ThinCut cut_;
  int64_t booked_;
};

}  // namespace

MatmulOffer make_amx_thin_matmul(const MatmulSpec& spec, const TileKernel& tiles, const DeviceFacts& facts,
                                 int64_t booked) {
  const int64_t needed = cut_thin(spec, facts.threads).total_bytes();
  if (needed > booked) return {nullptr, fmt::format("needs {} bytes of scratch, {} are booked", needed, booked)};
  return {std::make_unique<AmxThinMatmul>(spec, tiles, facts.threads), {}};
}

}  // namespace headroom

#else

namespace headroom {
MatmulOffer make_amx_thin_matmul(const MatmulSpec&, const TileKernel&, const DeviceFacts&, int64_t) {
  return {nullptr, "the machine has no AMX"};
}
}  // namespace headroom

#endif
