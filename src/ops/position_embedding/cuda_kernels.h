// Launchers of the learned position embedding's device code.
#pragma once

#include "ops/cuda/launch.h"

namespace headroom::cuda {

struct PositionArgs {
  const void* x = nullptr;          // [tokens, width]
  const void* table = nullptr;      // [table_rows, width]
  void* y = nullptr;                // may be x
  const int32_t* offset = nullptr;  // added to the positions, read on the device; or null
  const int32_t* starts = nullptr;  // [tokens], subtracted from the positions; or null
  int64_t tokens = 0;
  int64_t seq = 0;          // token t has position t % seq
  int64_t offset_step = 0;  // 0: one offset; 1: one per `seq` tokens
  int64_t width = 0;
  int64_t table_rows = 0;  // positions are clamped to these rows
  int64_t first = 0;       // the table's row for position 0
};

// y = x + the table's rows; the table's type is f32 or x's.
void launch_position_embedding(FloatType x, FloatType table, const PositionArgs& args, int multiprocessors,
                               CudaStream stream);

struct PositionGradArgs {
  const void* dy = nullptr;         // [batch, seq, width]
  const int32_t* starts = nullptr;  // [batch, seq], or null
  float* acc = nullptr;             // [rows of the table, width], from the row of position 0 on
  int64_t batch = 0;
  int64_t seq = 0;
  int64_t width = 0;
  int64_t positions = 0;  // of the table, from position 0 on; gradients of other positions are ignored
};

// acc[p] += the sum of dy over the tokens of position p, in order; with `segments`, positions are relative to the
// starts.
void launch_position_embedding_grad(FloatType dy, const PositionGradArgs& args, bool segments, int multiprocessors,
                                    CudaStream stream);

}  // namespace headroom::cuda
