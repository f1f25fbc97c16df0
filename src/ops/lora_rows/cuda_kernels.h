// Launcher of the device code of lora_rows.
#pragma once

#include "ops/cuda/launch.h"

namespace headroom::cuda {

// x [rows, ins], a [slots, rank, ins], b [slots, rank, outs], y and result [rows, outs]; `narrow` f32[rows, rank] is
// scratch. See LoraRowsShape in ops/lora_rows/shape.h for the sizes.
struct LoraRowsArgs {
  const void* x = nullptr;
  const void* a = nullptr;
  const void* b = nullptr;
  const float* scales = nullptr;
  const int32_t* slots = nullptr;
  const void* y = nullptr;
  void* result = nullptr;
  float* narrow = nullptr;
  int64_t rows = 0, slot_count = 0, rank = 0, ins = 0, outs = 0;
};

// Queues the product with A, then the one with B. Every sum has one order whatever the number of rows.
void launch_lora_rows(FloatType x, FloatType matrices, FloatType y, const LoraRowsArgs& args, int multiprocessors,
                      CudaStream stream);

}  // namespace headroom::cuda
