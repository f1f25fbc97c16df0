// The sizes behind the loss in slices of the vocabulary, shared by rules and kernels. A chunk of few rows reads the
// whole weight, and the sums of its gradient, for each of these rows. In the same bytes, many rows meet one slice of
// the vocabulary after the other: first for the sums of the softmax, then again for the gradient (Wijmans et al., "Cut
// your losses in large-vocabulary language models", 2024, section 4).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "ops/cpu/scratch.h"
#include "ops/linear_cross_entropy/row_softmax.h"
#include "ops/linear_cross_entropy/shape.h"

namespace headroom {

// Rows of a chunk from which on a CPU's time for it is mostly arithmetic. The logits of fewer rows are computed in
// slices.
constexpr int64_t kWideLossChunk = 64;

// Rows, and entries of the vocabulary, whose logits exist at a time.
struct LossSlices {
  int64_t rows = 0;
  int64_t entries = 0;
};

// In the bytes of `chunk` rows of logits; a narrow dx takes some of them for its sums. A last slice of fewer entries
// than a tile of the matrix units has is avoided: they refuse it.
inline LossSlices loss_slices(const LossShape& s, DType dtype, bool gradient) {
  constexpr int64_t kMostRows = 512, kLeastEntries = 256, kUnit = 32;
  const int64_t floats = s.chunk * s.vocabulary, sums = gradient && dtype != DType::f32 ? s.hidden : 0;
  const int64_t most = std::clamp<int64_t>(floats / (kLeastEntries + sums), 1, kMostRows);
  const int64_t rows = matmul_blocks::even_piece(s.rows, most);
  const auto last = [&](int64_t entries) { return s.vocabulary % entries; };
  int64_t entries = std::max(kLeastEntries, (floats / rows - sums) / kUnit * kUnit);
  while (entries > kLeastEntries && last(entries) > 0 && last(entries) < kUnit) entries -= kUnit;
  return {rows, std::min(s.vocabulary, entries)};
}

// Whether a call that does not run on tiles is computed in slices: a slice is a range of the weight's rows, and a small
// vocabulary gains nothing.
inline bool slices_vocabulary(const LossShape& s, DType dtype, const DeviceFacts& facts, bool gradient) {
  constexpr int64_t kLeastVocabulary = 4096;
  return s.rows > 0 && facts.capabilities.has(kAvx2) && s.out_in && s.chunk < kWideLossChunk &&
         s.vocabulary >= kLeastVocabulary && loss_slices(s, dtype, gradient).rows >= 2 * s.chunk;
}

// The products of a slice of `size.entries` entries for `size.rows` rows. The gradient of the logits is dense.
inline MatmulSpec slice_logits_product(const LossShape& s, DType dtype, const LossSlices& size) {
  MatmulSpec spec = logits_product(s, dtype, size.rows);
  spec.size.cols = size.entries;
  return spec;
}
// Sums in f32; `adds`: to those of the slices before.
inline MatmulSpec slice_dx_product(const LossShape& s, DType dtype, const LossSlices& size, bool adds) {
  MatmulSpec spec = loss_dx_product(s, dtype, size.rows);
  spec.size.depth = size.entries;
  spec.result = DType::f32;
  spec.addend = adds;
  return spec;
}
inline MatmulSpec slice_dw_product(const LossShape& s, DType dtype, const LossSlices& size, bool adds) {
  MatmulSpec spec = loss_dw_product(s, dtype, size.rows, adds);
  spec.size.rows = size.entries;
  return spec;
}

// The sizes of a call's pieces: whole ones, and the last rows and entries if they are fewer.
template <typename Body>
void each_slice_size(const LossShape& s, const LossSlices& slices, Body body) {
  for (const int64_t rows : {slices.rows, s.rows % slices.rows})
    for (const int64_t entries : {slices.entries, s.vocabulary % slices.entries})
      if (rows > 0 && entries > 0) body(LossSlices{rows, entries});
}

inline int64_t slice_workspace(const LossShape& s, const LossSlices& slices, DType dtype, const DeviceFacts& facts,
                               bool gradient, bool trains) {
  int64_t most = 0;
  const auto book = [&](const MatmulSpec& spec) { most = std::max(most, matmul_scratch(spec, facts)); };
  each_slice_size(s, slices, [&](const LossSlices& size) {
    book(slice_logits_product(s, dtype, size));
    if (gradient) book(slice_dx_product(s, dtype, size, true));
    if (trains) book(slice_dw_product(s, dtype, size, true));
  });
  return most;
}

// Scratch of the rows that are processed together.
struct SlicedLoss {
  float* logits;         // [rows][entries]; their gradient overwrites them
  float* dx;             // [rows][hidden]: the sums of a narrow dx; else not taken
  RowSoftmax* softmax;   // per row
  std::byte* workspace;  // of the largest product
};

// `workspace`: slice_workspace()'s bytes.
inline SlicedLoss sliced_loss(Carver& carver, const LossShape& s, const LossSlices& slices, DType dtype, bool gradient,
                              int64_t workspace) {
  SlicedLoss scratch{};
  scratch.logits = carver.take<float>(slices.rows * slices.entries);
  scratch.dx = carver.take<float>(gradient && dtype != DType::f32 ? slices.rows * s.hidden : 0);
  scratch.softmax = carver.take<RowSoftmax>(slices.rows);
  scratch.workspace = carver.take<std::byte>(workspace);
  return scratch;
}

inline int64_t sliced_scratch(const LossShape& s, DType dtype, const DeviceFacts& facts, bool gradient, bool trains) {
  Carver carver;
  const LossSlices slices = loss_slices(s, dtype, gradient);
  sliced_loss(carver, s, slices, dtype, gradient, slice_workspace(s, slices, dtype, facts, gradient, trains));
  return carver.used();
}

}  // namespace headroom
