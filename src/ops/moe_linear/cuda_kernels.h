// Launchers of the device code of the experts' linear layers.
#pragma once

#include "ops/cuda/launch.h"

namespace headroom::cuda {

// The products of an expert's rows.
enum class ExpertProduct {
  forward,          // y[rows, outs] = x[rows, ins] w^T
  input_gradient,   // dx[rows, ins] = dy[rows, outs] w
  weight_gradient,  // dw[outs, ins] = dy^T x
};

// Rows are sorted by expert: expert e has the rows [offsets[e], offsets[e + 1]).
struct ExpertArgs {
  ExpertProduct product = ExpertProduct::forward;
  FloatType type = FloatType::f32;         // of the operands
  FloatType result_type = FloatType::f32;  // f32, or the operands' type
  int32_t experts = 0;
  int32_t outs = 0;
  int32_t ins = 0;
  int64_t rows = 0;                  // of all experts
  const void* wide = nullptr;        // x, or dy for both gradients
  const void* other = nullptr;       // w [experts, outs, ins]; x for the weight gradient
  const int32_t* offsets = nullptr;  // [experts + 1]
  const void* addend = nullptr;      // of the result's type and shape; may be the result; null: none
  void* result = nullptr;            // the weight gradient [experts, outs, ins] is f32
};

// For any size.
void launch_expert_product(const ExpertArgs& args, CudaStream stream);

// In tiles on tensor cores: bf16 operands whose stored rows are multiples of eight elements; compute capability 8.0.
void launch_expert_mma(const ExpertArgs& args, CudaStream stream);
// Maximum dynamic shared memory of a block.
int64_t expert_mma_shared();

// The same for few rows, where reading the weights dominates: forward only, any size.
void launch_expert_few_rows(const ExpertArgs& args, CudaStream stream);

}  // namespace headroom::cuda
