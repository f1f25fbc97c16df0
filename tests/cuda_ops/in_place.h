// Runs an op's CUDA kernel with its results in the storage of inputs that they may alias.
#pragma once

#include "cuda_shim/cuda_harness.h"

namespace headroom::op_test {

// The results are bitwise those with separate storage.
inline void expect_same_in_place(std::string_view name, const std::vector<Tensor>& inputs, const Attrs& attrs = {}) {
  const RunResult apart = run_cuda_op(name, inputs, attrs);
  RunOptions options;
  options.use_may = true;
  const RunResult in_place = run_cuda_op(name, inputs, attrs, options);
  for (size_t i = 0; i < apart.outputs.size(); ++i) expect_same_bytes(in_place.outputs[i], apart.outputs[i]);
}

}  // namespace headroom::op_test
