// CudaBlas with a fake library that multiplies by the given descriptions, against plain loops.
#include <gtest/gtest.h>

#include "base/error.h"
#include "fake_cublaslt.h"
#include "ops/cpu/matmul.h"
#include "ops/cuda/cublaslt.h"
#include "ops_support/op_harness.h"

namespace headroom {
namespace {

using namespace cublaslt_test;
using op_test::Tensor;

std::vector<int64_t> stored(bool transposed, int64_t rows, int64_t cols) {
  return transposed ? std::vector<int64_t>{cols, rows} : std::vector<int64_t>{rows, cols};
}

// `tensor` with rows `step` elements apart.
Tensor spread(const Tensor& tensor, int64_t step) {
  const int64_t rows = tensor.type().dims[0], length = tensor.type().dims[1];
  Tensor wide = Tensor::filled(tensor.type().dtype, {rows, step}, 777.0);
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t i = 0; i < length; ++i) wide.set(row * step + i, tensor.at(row * length + i));
  return wide;
}

// Compares the product of random operands by the library with plain loops.
void expect_product(CudaBlas& blas, CudaProductSpec spec, bool in_place = false) {
  const MatmulSpec& m = spec.matmul;
  const auto [rows, cols, depth] = m.size;
  const Tensor a = Tensor::random(m.operand, stored(m.a_transposed, rows, depth), 1);
  const Tensor b = Tensor::random(m.operand, stored(m.b_transposed, depth, cols), 2);
  const Tensor bias = Tensor::random(m.result, {cols}, 3), addend = Tensor::random(m.result, {rows, cols}, 4);
  Tensor bias32(DType::f32, {cols});
  for (int64_t i = 0; i < cols; ++i) bias32.set(i, bias.at(i));
  const Tensor wide_addend = spread(addend, spec.c_step());
  Tensor expected(m.result, {rows, cols});
  Tensor found = in_place ? Tensor(wide_addend) : Tensor::filled(m.result, {rows, spec.c_step()}, 777.0);
  set_threads(1);
  MatmulSpec exact = m;
  exact.multiply = Multiply::full;  // the fake multiplies in fp32 for any compute type
  make_reference_matmul(exact, {}, 0)
      .matmul->run({a.as<void>(), b.as<void>(), expected.as<void>(), bias32.as<float>(), addend.as<void>(), nullptr});
  const Tensor wide_a = spread(a, spec.a_step()), wide_b = spread(b, spec.b_step());
  const CudaProductOffer offer = blas.prepare(spec, 1 << 20);
  ASSERT_TRUE(offer.call) << offer.refusal;
  const op_test::GuardedBuffer workspace(offer.call->workspace_bytes());
  offer.call->run({wide_a.as<void>(), wide_b.as<void>(), found.as<void>(), bias.as<void>(),
                   in_place ? found.as<void>() : wide_addend.as<void>(), workspace.data()},
                  nullptr);
  EXPECT_TRUE(workspace.guard_intact());
  EXPECT_TRUE(found.buffer().guard_intact());
  const bool narrow = m.result == DType::bf16;
  op_test::expect_close(found, spread(expected, spec.c_step()), 1e-5, narrow ? 1e-2 : 1e-5);
}

TEST(CublasLt, MultipliesInEveryLayoutAndType) {
  Fake& fake = fresh_fake();
  {
    const std::unique_ptr<CudaBlas> blas = make_cublaslt(fake_api());
    for (const auto& [operand, result] :
         {std::pair(DType::f32, DType::f32), std::pair(DType::bf16, DType::f32), std::pair(DType::bf16, DType::bf16)})
      for (int layout = 0; layout < 4; ++layout)
        for (int ends = 0; ends < 4; ++ends) {
          SCOPED_TRACE(
              fmt::format("{} to {}, layout {}, ends {}", dtype_name(operand), dtype_name(result), layout, ends));
          CudaProductSpec spec;
          spec.alignment = 64;
          spec.matmul.size = {7, 13, 5};
          spec.matmul.operand = operand;
          spec.matmul.result = result;
          spec.matmul.a_transposed = (layout & 1) != 0;
          spec.matmul.b_transposed = (layout & 2) != 0;
          spec.matmul.bias = (ends & 1) != 0;
          spec.matmul.addend = (ends & 2) != 0;
          expect_product(*blas, spec);
          if (spec.matmul.addend) expect_product(*blas, spec, true);
          spec.a_stride = 17;
          spec.b_stride = 19;
          spec.c_stride = 15;
          expect_product(*blas, spec);
        }
    EXPECT_EQ(fake.handles, 1);
  }
  EXPECT_EQ(fake.handles, 0);
  EXPECT_EQ(fake.descriptions, 0);
}

TEST(CublasLt, RoundedProductsTakeTheirComputeType) {
  Fake& fake = fresh_fake();
  const std::unique_ptr<CudaBlas> blas = make_cublaslt(fake_api());
  CudaProductSpec spec;
  spec.alignment = 64;
  spec.matmul.size = {3, 4, 5};
  for (const auto& [multiply, compute] :
       {std::pair(Multiply::full, cublaslt::kCompute32), std::pair(Multiply::bf16, cublaslt::kComputeFastBfloat16),
        std::pair(Multiply::bf16x3, cublaslt::kComputeFastTf32)}) {
    spec.matmul.multiply = multiply;
    expect_product(*blas, spec);
    EXPECT_EQ(fake.compute, compute);
  }
  spec.matmul.operand = DType::bf16;
  expect_product(*blas, spec);
  EXPECT_EQ(fake.compute, cublaslt::kCompute32);
}

TEST(CublasLt, PreparesASpecOnce) {
  Fake& fake = fresh_fake();
  const std::unique_ptr<CudaBlas> blas = make_cublaslt(fake_api());
  CudaProductSpec spec;
  spec.matmul.size = {8, 8, 8};
  const auto first = blas->prepare(spec, 100).call;
  EXPECT_EQ(blas->prepare(spec, 100).call, first);
  EXPECT_EQ(fake.searches, 1);
  EXPECT_EQ(fake.alignment, 256u);
  spec.a_stride = 8;  // the default
  EXPECT_EQ(blas->prepare(spec, 100).call, first);
  EXPECT_NE(blas->prepare(spec, 101).call, first);
  spec.alignment = 16;
  EXPECT_NE(blas->prepare(spec, 100).call, first);
  EXPECT_EQ(fake.alignment, 16u);
  spec.matmul.addend = true;
  EXPECT_NE(blas->prepare(spec, 100).call, first);
  EXPECT_EQ(fake.searches, 4);
  EXPECT_EQ(fake.products, 0);
}

TEST(CublasLt, TakesTheBestAlgorithmOfAFixedOrderWithinTheCap) {
  Fake& fake = fresh_fake();
  fake.known[0] = {4096, cublaslt::kReduceInWorkspace};
  fake.known[1] = {1024, 1};  // adds into the result
  fake.known[2] = {512, 4};   // parts in the result's type
  fake.known[3] = {256, cublaslt::kReduceInWorkspace};
  fake.known_count = 4;
  const std::unique_ptr<CudaBlas> blas = make_cublaslt(fake_api());
  CudaProductSpec spec;
  spec.matmul.size = {8, 8, 8};
  for (bool careless : {false, true}) {
    fake.ignores_preferences = careless;
    spec.matmul.bias = careless;  // a different spec
    EXPECT_EQ(blas->prepare(spec, 1 << 20).call->workspace_bytes(), 4096);
    EXPECT_EQ(blas->prepare(spec, 4096).call->workspace_bytes(), 4096);
    EXPECT_EQ(blas->prepare(spec, 4095).call->workspace_bytes(), 256);
    const CudaProductOffer none = blas->prepare(spec, 255);
    EXPECT_FALSE(none.call);
    EXPECT_NE(none.refusal.find("255 bytes"), std::string::npos) << none.refusal;
  }
}

TEST(CublasLt, RefusesEmptyProducts) {
  fresh_fake();
  const std::unique_ptr<CudaBlas> blas = make_cublaslt(fake_api());
  for (const MatmulSize& size : {MatmulSize{0, 4, 4}, MatmulSize{4, 0, 4}, MatmulSize{4, 4, 0}}) {
    CudaProductSpec spec;
    spec.matmul.size = size;
    EXPECT_FALSE(blas->prepare(spec, 1024).call);
  }
}

TEST(CublasLt, FailuresAreErrorsInTheLibrarysWords) {
  Fake& fake = fresh_fake();
  fake.create_status = 3;
  const auto words = [](const auto& fails) -> std::string {
    try {
      fails();
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::run);
      EXPECT_FALSE(error.remedy().empty());
      return error.what();
    }
    return {};
  };
  EXPECT_NE(words([] { make_cublaslt(fake_api()); }).find("cuBLASLt 13.1.0 cannot be used"), std::string::npos);
  fresh_fake();
  const std::unique_ptr<CudaBlas> blas = make_cublaslt(fake_api());
  CudaProductSpec spec;
  spec.matmul.size = {8, 8, 8};
  const auto product = blas->prepare(spec, 1).call;
  ASSERT_TRUE(product);
  fake.matmul_status = 3;
  EXPECT_NE(words([&] { product->run({}, nullptr); }).find("a product failed: out of memory"), std::string::npos);
  EXPECT_EQ(fake.products, 1);
  EXPECT_EQ(blas->remark(), "");
}

TEST(CublasLt, RefusesWhatFailsWhenItIsPrepared) {
  Fake& fake = fresh_fake();
  const std::unique_ptr<CudaBlas> blas = make_cublaslt(fake_api());
  CudaProductSpec spec;
  spec.matmul.size = {8, 8, 8};
  fake.matmul_status = 3;
  for (int ask = 0; ask < 2; ++ask) {
    const CudaProductOffer refused = blas->prepare(spec, 1);
    EXPECT_FALSE(refused.call);
    EXPECT_EQ(refused.refusal, "cuBLASLt 13.1.0: a product failed: out of memory");
  }
  EXPECT_EQ(blas->remark(),
            "products by our own kernels where cuBLASLt fails (cuBLASLt 13.1.0: a product failed: out of memory, 8 x 8 "
            "x 8 of f32)");
  fake.heuristic_status = 3;
  EXPECT_EQ(blas->prepare(spec, 0).refusal, "cuBLASLt 13.1.0: choosing an algorithm failed: out of memory");
  EXPECT_NE(blas->remark().find("; and 1 more)"), std::string::npos) << blas->remark();
  EXPECT_EQ(fake.rehearsals, 1);
  EXPECT_EQ(fake.products, 0);
}

TEST(CublasLt, PreparingRehearsesAndLoadingRunsNothing) {
  Fake& fake = fresh_fake();
  const std::unique_ptr<CudaBlas> blas = make_cublaslt(fake_api());
  CudaProductSpec spec;
  spec.matmul.size = {8, 8, 8};
  const auto product = blas->prepare(spec, 1).call;
  EXPECT_EQ(fake.rehearsals, 1);
  {
    const LoadingOnly loading;
    product->run({}, nullptr);
  }
  EXPECT_EQ(launch_mode(), LaunchMode::run);
  EXPECT_EQ(fake.rehearsals, 1);
  EXPECT_EQ(fake.products, 0);
}

TEST(CublasLt, TheInstalledLibraryOpensOrSaysWhyNot) {
  std::string reason;
  const std::unique_ptr<CudaBlas> blas = open_cublaslt(reason);
  EXPECT_EQ(blas == nullptr, !reason.empty());
  EXPECT_TRUE(blas || reason.find("libcublasLt.so.13") != std::string::npos ||
              reason.find("cannot be used on this device") != std::string::npos)
      << reason;
}

}  // namespace
}  // namespace headroom
