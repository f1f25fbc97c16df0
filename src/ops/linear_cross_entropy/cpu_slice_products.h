// The products of the loss in slices of the vocabulary: of some rows with some of the weight's rows.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "ops/cpu/matmul.h"
#include "ops/linear_cross_entropy/cpu_softmax.h"
#include "ops/linear_cross_entropy/loss_options.h"
#include "ops/linear_cross_entropy/sliced.h"

namespace headroom {

// Some rows and some entries, and what their products read.
struct SliceOperands {
  int64_t first_row = 0, rows = 0, entries = 0;
  Targets targets;
  const std::byte* x = nullptr;       // its first row
  const std::byte* weight = nullptr;  // its first row
  const float* bias = nullptr;        // of the first entry; null: none
  float scale = 1;                    // of the gradient
  float* logits = nullptr;            // [rows][entries]
  std::byte* workspace = nullptr;     // slice_workspace() bytes
};

// The sizes are those of each_slice_size().
class SliceProducts {
 public:
  SliceProducts(const LossShape& shape, const LossOptions& options, const LossSlices& slices, DType dtype)
      : shape_(shape), options_(options), slices_(slices), dtype_(dtype) {}

  // Creates the products. Returns the reason if one is refused, else an empty string.
  std::string prepare(MatmulMaker make, const DeviceFacts& facts, int64_t workspace);

  // Computes the logits.
  LossRows logits_of(const SliceOperands& operands) const;
  // The logits are their gradient now. dx [rows, hidden] and dw [entries, hidden] [+]= its products.
  void add_dx(const SliceOperands& operands, float* dx, bool adds) const;
  void add_dw(const SliceOperands& operands, float* dw, bool adds) const;

 private:
  // Of one size of slice.
  struct Products {
    LossSlices size;
    std::unique_ptr<Matmul> logits, dx_first, dx_adding, dw_first, dw_adding;
  };

  const Products& of(const SliceOperands& operands) const;

  LossShape shape_;
  LossOptions options_;
  LossSlices slices_;
  DType dtype_;
  std::vector<Products> products_;
};

}  // namespace headroom
