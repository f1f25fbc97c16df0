// The sizes behind the loss of a slice of the vocabulary, shared by rules and kernels.
#pragma once

#include "ops/cpu/scratch.h"
#include "ops/linear_cross_entropy/sliced.h"

namespace headroom {

// The inputs of the softmax's sums and of the gradient that stand at one place in every call that has them.
struct SliceInputs {
  enum : int { x, weight, labels, softmax };
};
struct SliceGradInputs {
  enum : int { x, weight, labels, softmax, scale, dx };
};
struct SliceSumInputs {
  enum : int { softmax, labels, losses };
};

// What is known of a row's softmax so far, in f64: the largest logit, the target's logit, and the sum of exp(logit -
// largest), which is NaN if a logit is not finite.
constexpr int64_t kRowSoftmaxFields = 3;

// Rows, and entries of the slice, whose logits exist at a time: few enough for the caches. The `vocabulary` of the
// call's loss_shape() is the slice's number of entries, the first of which is KernelCall::first_row.
inline LossSlices cut_slice(const LossShape& s) {
  constexpr int64_t kMostRows = 512, kMostEntries = 1024, kUnit = 32;
  const int64_t entries = matmul_blocks::even_piece(s.vocabulary, kMostEntries);
  return {matmul_blocks::even_piece(std::max<int64_t>(1, s.rows), kMostRows),
          std::min(s.vocabulary, align_up(entries, kUnit))};
}

struct SliceScratch {
  float* logits;         // [rows][entries]; their gradient overwrites them
  RowSoftmax* softmax;   // per row
  std::byte* workspace;  // of the largest product
};

// `workspace`: slice_workspace()'s bytes.
inline SliceScratch slice_scratch(Carver& carver, const LossSlices& slices, int64_t workspace) {
  SliceScratch scratch{};
  scratch.logits = carver.take<float>(slices.rows * slices.entries);
  scratch.softmax = carver.take<RowSoftmax>(slices.rows);
  scratch.workspace = carver.take<std::byte>(workspace);
  return scratch;
}

inline int64_t slice_scratch_bytes(const LossShape& s, DType dtype, const DeviceFacts& facts, bool gradient,
                                   bool trains) {
  Carver carver;
  const LossSlices slices = cut_slice(s);
  slice_scratch(carver, slices, slice_workspace(s, slices, dtype, facts, gradient, trains));
  return carver.used();
}

}  // namespace headroom
