// Training with the GPU's kernels: losses and weights agree with the CPU's within the rounding of sums in another
// order, and repeated runs are bitwise equal.
#include <gtest/gtest.h>

#include <cmath>

#include "../cuda_disk/deferred_runtime.h"
#include "../formats/file_size_limit.h"
#include "../runtime/race_checker.h"
#include "../runtime/tiny_run.h"
#include "cuda_shim/host_runtime.h"
#include "device/cuda/cuda_device.h"
#include "device/disk/scratch_file.h"

namespace headroom {
namespace {

std::unique_ptr<Device> make_shim_device(const DeviceFacts& facts) {
  return make_cuda_device(make_host_runtime(), facts);
}

TrainOptions gpu_options(const TemporaryDirectory& directory) {
  TrainOptions options = tiny_options(directory);
  options.machine.device = "cuda:0";
  options.machine.profile = "H100-80GB";
  options.data.global_batch_size = 4;
  options.data.max_seq_length = 16;
  options.schedule.max_steps = 2;
  return options;
}

struct Curve {
  std::vector<double> losses;
  double evaluation = 0;
  std::map<std::string, std::string> state;
};

Curve train(TinyRun& run) {
  run.begin();
  Curve curve;
  for (int64_t step = 1; step <= 2; ++step) curve.losses.push_back(run.step(step));
  curve.evaluation = run.evaluate(2);
  curve.state = run.state();
  return curve;
}

// Weights as numbers: bf16 ones are two bytes wide.
void expect_near(const Curve& found, const Curve& expected, double tolerance) {
  for (size_t i = 0; i < expected.losses.size(); ++i)
    EXPECT_NEAR(found.losses[i], expected.losses[i], tolerance * expected.losses[i]) << "step " << i + 1;
  EXPECT_NEAR(found.evaluation, expected.evaluation, tolerance * expected.evaluation);
}

class CudaTraining : public testing::Test {
 protected:
  explicit CudaTraining(const std::string& config = kTinyConfig) { write_tiny_model(directory_, config.c_str()); }

  void compare(const TrainOptions& gpu, double tolerance) {
    TrainOptions cpu = gpu;
    cpu.machine.device = "cpu";
    cpu.machine.profile = "cpu-avx2";
    TinyRun on_cpu(cpu, directory_ / "cpu-tokens");
    const Curve expected = train(on_cpu);
    TinyRun on_gpu(gpu, directory_ / "gpu-tokens", make_shim_device);
    const Curve found = train(on_gpu);
    expect_near(found, expected, tolerance);
    EXPECT_EQ(on_gpu.executor().arena_high_water(), on_gpu.plan().arena_bytes);
    EXPECT_EQ(host_runtime_allocations(), 1);
  }

  TemporaryDirectory directory_;
};

TEST_F(CudaTraining, FollowsTheCpuInFp32) { compare(gpu_options(directory_), 1e-5); }

TEST_F(CudaTraining, FollowsTheCpuInNarrowPrecisions) {
  TrainOptions options = gpu_options(directory_);
  for (const char* precision : {"bf16-mixed", "16-mixed", "16-true"}) {
    SCOPED_TRACE(precision);
    options.techniques.precision = precision;
    compare(options, 5e-3);
  }
}

// Two of three experts in a layer, with the load-balancing loss.
std::string balanced_experts() {
  Json config = Json::parse(kTinyExpertsConfig);
  config["output_router_logits"] = true;
  config["router_aux_loss_coef"] = 0.5;
  return config.dump();
}

class CudaExpertTraining : public CudaTraining {
 protected:
  CudaExpertTraining() : CudaTraining(balanced_experts()) {}
};

TEST_F(CudaExpertTraining, FollowsTheCpuInFp32) { compare(gpu_options(directory_), 1e-5); }

// Rows of 32 and 40 elements are whole packs, so in bf16 the experts use tensor cores.
TEST_F(CudaExpertTraining, FollowsTheCpuInNarrowPrecisions) {
  TrainOptions options = gpu_options(directory_);
  for (const char* precision : {"bf16-mixed", "bf16-true", "16-mixed"}) {
    SCOPED_TRACE(precision);
    options.techniques.precision = precision;
    compare(options, 5e-3);
  }
}

TEST_F(CudaExpertTraining, AdaptersFollowTheCpu) {
  TrainOptions options = gpu_options(directory_);
  options.techniques.lora.rank = 4;
  compare(options, 1e-5);
  options.techniques.precision = "bf16-true";
  compare(options, 5e-3);
}

TEST_F(CudaTraining, RepeatsBitwise) {
  const TrainOptions options = gpu_options(directory_);
  TinyRun first(options, directory_ / "first", make_shim_device);
  const Curve a = train(first);
  TinyRun second(options, directory_ / "second", make_shim_device);
  const Curve b = train(second);
  EXPECT_EQ(a.losses, b.losses);
  EXPECT_EQ(a.state, b.state);
}

TEST_F(CudaTraining, RecomputingIsBitwiseTheSame) {
  TrainOptions keep = gpu_options(directory_), recompute = keep;
  keep.techniques.pins["recompute"] = "off";
  recompute.techniques.pins["recompute"] = "on";
  TinyRun first(keep, directory_ / "keep", make_shim_device);
  const Curve a = train(first);
  TinyRun second(recompute, directory_ / "recompute", make_shim_device);
  const Curve b = train(second);
  EXPECT_EQ(a.losses, b.losses);
  EXPECT_EQ(a.state, b.state);
}

TrainOptions kept(const TemporaryDirectory& directory) {
  TrainOptions options = gpu_options(directory);
  options.data.micro_batch_size = 2;
  options.techniques.pins["recompute"] = "off";
  options.techniques.pins["chunked-loss"] = "64";
  return options;
}

// States, gradients, weights and activations.
TrainOptions offloaded(TrainOptions options) {
  for (const char* name : {"offload-optimizer", "offload-gradients", "offload-parameters", "offload-activations"})
    options.techniques.pins[name] = "on";
  return options;
}

// A device whose accesses are checked for races; `checker` is the one created last.
struct Checked {
  TinyRun::MakeDevice make;  // the checked device
  test::RaceChecker* checker = nullptr;

  TinyRun::MakeDevice device() {
    return [this](const DeviceFacts& facts) {
      auto device = std::make_unique<test::RaceChecker>(make(facts));
      checker = device.get();
      return device;
    };
  }
  void expect_none() const {
    EXPECT_GT(checker->copies(), 100);
    EXPECT_EQ(checker->races(), std::vector<std::string>{});
  }
};

// In page-locked memory, copied while kernels run: all accesses to the same bytes are ordered.
TEST_F(CudaTraining, WhatWaitsOnTheHostIsBitwiseTheSame) {
  const TrainOptions keep = kept(directory_);
  TinyRun first(keep, directory_ / "keep", make_shim_device);
  const Curve a = train(first);
  Checked checked{make_shim_device};
  TinyRun second(offloaded(keep), directory_ / "offload", checked.device(), int64_t{1} << 30);
  const Curve b = train(second);
  EXPECT_EQ(a.losses, b.losses);
  EXPECT_EQ(a.state, b.state);
  EXPECT_GT(second.plan().host.arena_bytes, 0);
  checked.expect_none();
}

class CudaDiskTraining : public CudaTraining {
 protected:
  void SetUp() override {
    try {
      const ScratchFile file(directory_.path(), kDiskBlockBytes);
    } catch (const Error& error) {
      GTEST_SKIP() << error.what();
    }
  }
  TrainOptions on_disk(const TrainOptions& options) {
    TrainOptions with_disk = offloaded(options);
    with_disk.machine.disk_directory = directory_.path();
    with_disk.machine.disk_memory = int64_t{1} << 30;
    return with_disk;
  }
  TinyRun::MakeDevice shim_with_disk(bool defers) {
    return [this, defers](const DeviceFacts& facts) {
      std::unique_ptr<CudaRuntime> runtime = make_host_runtime();
      if (defers) runtime = std::make_unique<test::DeferredRuntime>(std::move(runtime), test::Deferral{true});
      return make_cuda_device(std::move(runtime), facts, {}, directory_.path());
    };
  }
  // Trains with these options and this much host memory, and returns the plan.
  Plan expect_same(const Curve& plain, const TrainOptions& options, bool defers, int64_t host = 0) {
    Checked checked{shim_with_disk(defers)};
    TinyRun run(options, directory_ / "offload", checked.device(), host);
    const Curve curve = train(run);
    EXPECT_EQ(curve.losses, plain.losses);
    EXPECT_EQ(curve.evaluation, plain.evaluation);
    EXPECT_EQ(curve.state, plain.state);
    EXPECT_GT(run.plan().disk.arena_bytes, 0);
    EXPECT_EQ(run.plan().process.copies, 0);
    EXPECT_GT(run.plan().host_process.copies, disk_process_bytes(run.plan().facts));  // its buffers, and tables
    for (const Tier tier : kLowerTiers)
      EXPECT_EQ(run.executor().arena_high_water(tier), run.plan().below(tier).arena_bytes);
    checked.expect_none();
    return run.plan();
  }
};

// In a file, whether the GPU copies at once or as late as possible.
TEST_F(CudaDiskTraining, WhatWaitsOnDiskIsBitwiseTheSame) {
  const TrainOptions keep = kept(directory_);
  TinyRun first(keep, directory_ / "keep", make_shim_device);
  const Curve a = train(first);
  for (const bool defers : {false, true}) {
    SCOPED_TRACE(defers ? "late" : "at once");
    TrainOptions options = on_disk(keep);
    options.techniques.pins["prefetch"] = defers ? "2" : "off";
    const Plan plan = expect_same(a, options, defers);
    EXPECT_EQ(plan.host.arena_bytes, 0);
    EXPECT_EQ(host_runtime_allocations(), 1);
  }
}

// Partly in the host's memory.
TEST_F(CudaDiskTraining, WhatWaitsInSeveralTiersIsBitwiseTheSame) {
  const TrainOptions keep = kept(directory_);
  TinyRun first(keep, directory_ / "keep", make_shim_device);
  TrainOptions options = on_disk(keep);
  options.techniques.pins["offload-gradients"] = options.techniques.pins["offload-parameters"] = "host";
  options.techniques.pins["offload-optimizer"] = options.techniques.pins["offload-activations"] = "disk";
  EXPECT_GT(expect_same(train(first), options, true, int64_t{1} << 30).host.arena_bytes, 0);
}

TEST_F(CudaDiskTraining, ADiskThatFailsEndsTheStepInWords) {
  TinyRun run(on_disk(kept(directory_)), directory_ / "tokens", shim_with_disk(false));
  run.begin();
  run.step(1);
  const FileSizeLimit full(4096);
  try {
    run.step(2);
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::run);
    EXPECT_NE(std::string(error.what()).find("of the scratch file in " + directory_.path().string()), std::string::npos)
        << error.what();
    EXPECT_FALSE(error.remedy().empty());
  }
}

}  // namespace
}  // namespace headroom
