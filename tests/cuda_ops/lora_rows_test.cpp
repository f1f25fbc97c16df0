// Adapters in slots on a device: against the reference, and each row against a call with that row alone.
#include "cuda_shim/cuda_harness.h"

namespace headroom::lora_rows_on_cuda {
namespace {

using namespace op_test;

std::vector<Tensor> inputs_of(DType x, DType matrices, DType y, const std::vector<double>& slots) {
  const auto rows = static_cast<int64_t>(slots.size());
  constexpr int64_t kSlots = 3, kRank = 5, kIns = 70, kOuts = 130;
  Tensor all_x = Tensor::random(x, {8, 1, kIns}, 1), all_y = Tensor::random(y, {8, 1, kOuts}, 5);
  Tensor some_x(x, {rows, 1, kIns}), some_y(y, {rows, 1, kOuts});
  for (int64_t i = 0; i < rows * kIns; ++i) some_x.set(i, all_x.at(i));
  for (int64_t i = 0; i < rows * kOuts; ++i) some_y.set(i, all_y.at(i));
  return {some_x,
          Tensor::random(matrices, {kSlots, kRank, kIns}, 2),
          Tensor::random(matrices, {kSlots, kRank, kOuts}, 3),
          Tensor::random(DType::f32, {kSlots}, 4, 2),
          Tensor(DType::i32, {rows}, slots),
          some_y};
}

TEST(CudaLoraRows, AgreesWithTheReference) {
  for (DType x : kFloats)
    for (DType matrices : floats_with(x))
      for (DType y : floats_with(matrices == DType::f32 ? x : matrices)) {
        SCOPED_TRACE(fmt::format("{}, {}, {}", dtype_name(x), dtype_name(matrices), dtype_name(y)));
        expect_cuda_matches("lora_rows", inputs_of(x, matrices, y, {0, -1, 2, 0, 3, -7, 1, 1000000}), {},
                            y == DType::f32 ? Tolerance{2e-5, 1e-5} : Tolerance{2e-2, 1e-2});
      }
}

TEST(CudaLoraRows, ARowDoesNotDependOnItsCompany) {
  const Tensor all =
      run_cuda_op("lora_rows", inputs_of(DType::bf16, DType::bf16, DType::f32, {2, -1, 0, 1, 2, 2, 0, 1})).outputs[0];
  const Tensor alone = run_cuda_op("lora_rows", inputs_of(DType::bf16, DType::bf16, DType::f32, {2})).outputs[0];
  for (int64_t i = 0; i < alone.count(); ++i) ASSERT_EQ(alone.at(i), all.at(i)) << i;
}

}  // namespace
}  // namespace headroom::lora_rows_on_cuda
