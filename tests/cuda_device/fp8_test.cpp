// Training with fp8 products, by a fake library that multiplies the codes.
#include <gtest/gtest.h>

#include <cstdlib>

#include "../cuda_blas/fake_cublaslt.h"
#include "../runtime/tiny_run.h"
#include "cost/profile.h"
#include "cuda_shim/host_runtime.h"
#include "device/cuda/cuda_device.h"
#include "formats/json.h"
#include "ops/cuda/cublaslt.h"

namespace headroom {
namespace {

class Fp8Training : public testing::Test {
 protected:
  Fp8Training() {
    ::setenv("HEADROOM_CUDA_WITHOUT", "graphs", 1);  // the fake multiplies at once and cannot be recorded
    write_tiny_model(directory_);
    // A GPU with free memory traffic, so that rounding pays off even for small products.
    Json profile = Json::parse(profile_json(load_profile("H100-80GB")));
    profile["stream_bytes_per_second"] = 1e18;
    profile["launch_seconds"] = 1e-15;
    directory_.write("gpu.json", profile.dump());
  }

  ~Fp8Training() override { ::unsetenv("HEADROOM_CUDA_WITHOUT"); }

  struct Outcome {
    std::vector<double> losses;
    std::map<std::string, std::string> state;
    int fp8_products = 0;
  };

  Outcome train(const std::string& name, const std::string& precision, const std::string& matmul_precision,
                const std::map<std::string, std::string>& pins = {}) {
    TrainOptions options = tiny_options(directory_);
    options.machine.device = "cuda:0";
    options.machine.profile = directory_ / "gpu.json";
    options.techniques.precision = precision;
    options.techniques.matmul_precision = matmul_precision;
    options.techniques.pins = pins;
    options.data.global_batch_size = 4;
    options.data.max_seq_length = 16;
    cublaslt_test::Fake& fake = cublaslt_test::fresh_fake();
    TinyRun run(options, directory_ / name, [&](const DeviceFacts& facts) {
      CudaLibraries libraries;
      libraries.blas = make_cublaslt(cublaslt_test::fake_api());
      return make_cuda_device(make_host_runtime(), facts, std::move(libraries));
    });
    run.begin();
    Outcome outcome;
    for (int64_t step = 1; step <= 2; ++step) outcome.losses.push_back(run.step(step));
    outcome.state = run.state();
    outcome.fp8_products = fake.fp8_products;
    return outcome;
  }

  TemporaryDirectory directory_;
};

// At least q, o, gate, up and down of three blocks are fp8, forward and twice backward, in two steps.
TEST_F(Fp8Training, FollowsBf16AndRepeatsItsBits) {
  for (const char* precision : {"bf16-mixed", "bf16-true"}) {
    SCOPED_TRACE(precision);
    const std::string name = precision;
    const Outcome narrow = train(name + "-bf16", precision, "highest");
    EXPECT_EQ(narrow.fp8_products, 0);
    const Outcome found = train(name + "-fp8", precision, "fp8");
    EXPECT_GE(found.fp8_products, 2 * 3 * 3 * 5);
    for (size_t i = 0; i < narrow.losses.size(); ++i) {
      EXPECT_NEAR(found.losses[i], narrow.losses[i], 0.02 * narrow.losses[i]) << "step " << i + 1;
      EXPECT_NE(found.losses[i], narrow.losses[i]);
    }
    const Outcome again = train(name + "-again", precision, "fp8");
    EXPECT_EQ(again.losses, found.losses);
    EXPECT_EQ(again.state, found.state);
    // Scales depend only on the current tensors, so recomputed values have the same codes.
    const Outcome recomputed = train(name + "-recomputed", precision, "fp8", {{"recompute", "on"}});
    EXPECT_EQ(recomputed.losses, found.losses);
    EXPECT_EQ(recomputed.state, found.state);
  }
}

}  // namespace
}  // namespace headroom
