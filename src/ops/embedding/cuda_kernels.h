// Launchers of the embedding's device code.
#pragma once

#include "ops/cuda/launch.h"

namespace headroom::cuda {

// y[i] = table[ids[i]] for `tokens` ids; ids are clamped to the table's `rows`.
struct EmbeddingArgs {
  const int32_t* ids = nullptr;
  const void* table = nullptr;  // [rows, width]
  void* y = nullptr;            // [tokens, width]
  int64_t tokens = 0;
  int64_t rows = 0;
  int64_t width = 0;
};

void launch_embedding(FloatType table, FloatType y, const EmbeddingArgs& args, int multiprocessors, CudaStream stream);

// acc[ids[i]] += dy[i], with the tokens of a row in order, except for the row `padding`.
struct EmbeddingGradArgs {
  const int32_t* ids = nullptr;
  const void* dy = nullptr;  // [tokens, width]
  float* acc = nullptr;      // [rows, width]
  int32_t* row = nullptr;    // scratch [tokens]: the rows in ascending order
  int32_t* place = nullptr;  // scratch [tokens]: their tokens
  int64_t tokens = 0;        // below 2^31
  int64_t rows = 0;
  int64_t width = 0;
  int64_t padding = -1;  // -1: none
};

void launch_embedding_grad(FloatType dy, const EmbeddingGradArgs& args, CudaStream stream);

}  // namespace headroom::cuda
