// A library that fails in the rehearsal does not end a run: headroom's own kernels are used, as without the library.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../cuda_blas/fake_cublaslt.h"
#include "../cuda_dnn/fake_dnn.h"
#include "../runtime/tiny_run.h"
#include "cuda_shim/host_runtime.h"
#include "device/cuda/cuda_device.h"
#include "ops/cuda/cublaslt.h"
#include "planner/estimates.h"

namespace headroom {
namespace {

using testing::HasSubstr;

class LibraryFailure : public testing::Test {
 protected:
  LibraryFailure() { write_tiny_model(directory_); }

  // The losses and results of two steps on a device with these libraries.
  struct Outcome {
    std::vector<double> losses;
    std::map<std::string, std::string> state;
    std::string remark;
  };
  Outcome train(const std::string& name, CudaLibraries libraries, const char* order = "fixed") {
    TrainOptions options = tiny_options(directory_);
    options.machine.device = "cuda:0";
    options.machine.profile = kUnmeasuredGpu;
    options.techniques.precision = "bf16-true";  // supported by both libraries
    options.techniques.attention_order = order;
    options.data.global_batch_size = 4;
    options.data.max_seq_length = 16;
    Device* device = nullptr;
    TinyRun run(options, directory_ / name, [&](const DeviceFacts& facts) {
      std::unique_ptr<Device> made = make_cuda_device(make_host_runtime(), facts, std::move(libraries));
      device = made.get();
      return made;
    });
    Outcome outcome;
    outcome.remark = device->remark();
    run.begin();
    for (int64_t step = 1; step <= 2; ++step) outcome.losses.push_back(run.step(step));
    outcome.state = run.state();
    return outcome;
  }

  TemporaryDirectory directory_;
};

TEST_F(LibraryFailure, OfProductsEndsInOurOwnKernels) {
  const Outcome without = train("without", {});
  EXPECT_EQ(without.remark, "");
  for (const bool fails : {false, true}) {
    SCOPED_TRACE(fails ? "fails" : "serves");
    cublaslt_test::Fake& fake = cublaslt_test::fresh_fake();
    CudaLibraries libraries;
    libraries.blas = make_cublaslt(cublaslt_test::fake_api());
    if (fails) fake.matmul_status = 14;
    const Outcome found = train(fails ? "fails" : "serves", std::move(libraries));
    EXPECT_GT(fake.rehearsals, 0);
    EXPECT_EQ(fake.products > 0, !fails);
    EXPECT_EQ(found.state == without.state, fails);
    if (!fails) continue;
    EXPECT_EQ(found.losses, without.losses);
    EXPECT_THAT(found.remark, HasSubstr("products by our own kernels where cuBLASLt fails (cuBLASLt 13.1.0: a product "
                                        "failed: some failure, "));
  }
}

TEST_F(LibraryFailure, OfAttentionEndsInOurOwnKernels) {
  const Outcome without = train("without", {});
  for (const bool fails : {false, true}) {
    SCOPED_TRACE(fails ? "fails" : "serves");
    op_test::FakeDnnNotes notes;
    notes.fails = fails;
    CudaLibraries libraries;
    libraries.dnn = std::make_unique<op_test::FakeDnn>(notes);
    libraries.missing = "products by our own kernels";
    const Outcome found = train(fails ? "fails" : "serves", std::move(libraries));
    EXPECT_GT(notes.prepared, 0);
    EXPECT_EQ(notes.runs > 0, !fails);
    EXPECT_EQ(found.state == without.state, fails);
    EXPECT_EQ(found.remark,
              fails ? "products by our own kernels; attention by our own kernels" : "products by our own kernels");
  }
}

// With the permission, any order is asked of the library for every gradient, so that a version without a fixed order
// can be used; when it fails or is missing, headroom's own kernels are.
TEST_F(LibraryFailure, OfAttentionInAnyOrderEndsInOurOwnKernels) {
  const Outcome without = train("without", {}, "any");
  EXPECT_EQ(without.state, train("in order", {}).state);
  for (const bool fails : {false, true})
    for (const char* order : {"fixed", "any"}) {
      SCOPED_TRACE(fmt::format("{} {}", order, fails ? "fails" : "serves"));
      op_test::FakeDnnNotes notes;
      notes.is_old = true;
      notes.fails = fails;
      CudaLibraries libraries;
      libraries.dnn = std::make_unique<op_test::FakeDnn>(notes);
      const Outcome found = train(fmt::format("{} {}", order, fails), std::move(libraries), order);
      const bool any = order == std::string_view("any");
      EXPECT_EQ(notes.in_any_order > 0, any);
      EXPECT_EQ(notes.in_fixed_order > 0, !any);
      EXPECT_EQ(notes.gradient_runs > 0, any && !fails);
      EXPECT_EQ(found.state == without.state, fails);
      EXPECT_EQ(found.remark, fails ? "attention by our own kernels" : "");
      for (size_t i = 0; i < found.losses.size(); ++i)
        EXPECT_NEAR(found.losses[i], without.losses[i], 5e-3 * without.losses[i]);
    }
}

}  // namespace
}  // namespace headroom
