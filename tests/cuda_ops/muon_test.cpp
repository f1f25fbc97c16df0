#include <cmath>

#include "cuda_ops/random.h"

namespace headroom::muon_on_cuda {
namespace {

using namespace op_test;

std::vector<Tensor> inputs(DType weight, const std::vector<int64_t>& dims, double clip, bool copy) {
  std::vector<Tensor> all{Tensor::random(weight, dims, 1), Tensor::random(DType::f32, dims, 2),
                          Tensor::random(DType::f32, dims, 3, 0.1), hyper_of(1, 3),
                          Tensor::filled(DType::f32, {1}, clip)};
  if (copy) all.push_back(Tensor::random(DType::bf16, dims, 5));
  return all;
}

const Attrs kMuonAttrs{{"momentum", 0.95},       {"nesterov", int64_t{1}}, {"match_rms_adamw", int64_t{1}},
                       {"ns_steps", int64_t{5}}, {"decay", int64_t{1}},    {"tensor", int64_t{77}}};

// Sums in another order cross bf16 rounding thresholds, and five steps of the polynomial multiply a small singular
// value by up to 3.44 each: single elements of a step of about 0.002 differ by a fifth.
TEST(CudaMuon, AgreesWithTheReference) {
  for (const std::vector<int64_t>& dims : {std::vector<int64_t>{24, 40}, {40, 24}, {2, 17, 33}})
    for (const bool copy : {false, true}) {
      const std::vector<Tensor> in = inputs(DType::f32, dims, 0.7, copy);
      RunOptions plain;
      plain.only = "reference";
      const RunResult expected = run_op("muon", in, kMuonAttrs, plain), found = run_cuda_op("muon", in, kMuonAttrs);
      expect_close(found.outputs[0], expected.outputs[0], 5e-4, 0);
      expect_close(found.outputs[1], expected.outputs[1], 1e-7, 1e-5);
      if (copy) expect_close(found.outputs[2], found.outputs[0], 0, 4e-3);
    }
}

TEST(CudaMuon, LeavesOutAStepWhoseNormIsNotFinite) {
  for (const DType weight : kFloats) {
    const std::vector<Tensor> in = inputs(weight, {9, 7}, NAN, false);
    const RunResult found = run_cuda_op("muon", in, kMuonAttrs);
    expect_same_bytes(found.outputs[0], in[0]);
    expect_same_bytes(found.outputs[1], in[2]);
  }
}

TEST(CudaMuon, ASkippedStepRefreshesTheCopy) {
  const std::vector<Tensor> in = inputs(DType::f32, {2, 17, 33}, NAN, true);
  expect_same_bytes(run_cuda_op("muon", in, kMuonAttrs).outputs[2], rounded(in[0], DType::bf16));
}

}  // namespace
}  // namespace headroom::muon_on_cuda
