// Spans of kernels that one call queues (CUDA graphs): the same bits as kernels launched one by one, within the memory
// booked for graphs.
#include <gtest/gtest.h>

#include <cstdlib>

#include "../cuda_disk/deferred_runtime.h"
#include "../runtime/tiny_run.h"
#include "cuda_shim/host_runtime.h"
#include "device/cuda/cuda_device.h"
#include "ops/cuda/backend.h"

namespace headroom {
namespace {

struct Outcome {
  std::vector<double> losses;
  std::map<std::string, std::string> state;
  HostRuntimeGraphs graphs;
};

class CudaGraphs : public testing::Test {
 protected:
  CudaGraphs() {
    write_tiny_model(directory_);
    options_ = tiny_options(directory_);
    options_.machine.device = "cuda:0";
    options_.machine.profile = "H100-80GB";
    options_.data.global_batch_size = 4;
    options_.data.max_seq_length = 16;
    options_.data.micro_batch_size = 1;
  }

  // Two steps of four micro-batches each, so that gradients are written once and added to three times.
  Outcome train(const TinyRun::MakeDevice& make, const TrainOptions& options, int64_t host = 0) {
    TinyRun run(options, directory_ / "tokens", make, host);
    run.begin();
    const int64_t before = host_runtime_graphs().launches;
    Outcome outcome;
    for (int64_t step = 1; step <= 2; ++step) outcome.losses.push_back(run.step(step));
    outcome.state = run.state();
    outcome.graphs = host_runtime_graphs();
    outcome.graphs.launches -= before;
    EXPECT_EQ(run.executor().arena_high_water(), run.plan().arena_bytes);
    return outcome;
  }
  Outcome train(const TinyRun::MakeDevice& make) { return train(make, options_); }

  Outcome train_without_graphs(const TrainOptions& options) {
    ::setenv("HEADROOM_CUDA_WITHOUT", "graphs", 1);
    Outcome outcome = train(on_shim(), options);
    ::unsetenv("HEADROOM_CUDA_WITHOUT");
    EXPECT_EQ(outcome.graphs.held, 0);
    return outcome;
  }

  static TinyRun::MakeDevice on_shim(const HostRuntimeLimits& limits = {}) {
    return [limits](const DeviceFacts& facts) { return make_cuda_device(make_host_runtime(limits), facts); };
  }

  TemporaryDirectory directory_;
  TrainOptions options_;
};

void expect_same(const Outcome& found, const Outcome& expected) {
  EXPECT_EQ(found.losses, expected.losses);
  EXPECT_EQ(found.state, expected.state);
}

// A step has three spans: before the micro-batches, each micro-batch, and after them.
TEST_F(CudaGraphs, AStepIsAFewLaunchesWithTheSameBits) {
  const Outcome graphs = train(on_shim());
  expect_same(graphs, train_without_graphs(options_));
  EXPECT_GT(graphs.graphs.nodes, 100);
  EXPECT_GE(graphs.graphs.launches, 2 * 4);
  EXPECT_LE(graphs.graphs.launches, 2 * (4 + 2));
}

// Copies between tiers run between the spans.
TEST_F(CudaGraphs, StandAsideForCopies) {
  TrainOptions offloaded = options_;
  for (const char* name : {"offload-optimizer", "offload-gradients", "offload-parameters", "offload-activations"})
    offloaded.techniques.pins[name] = "on";
  const Outcome graphs = train(on_shim(), offloaded, int64_t{1} << 30);
  expect_same(graphs, train_without_graphs(options_));
  EXPECT_GT(graphs.graphs.launches, 2 * (4 + 2));
}

// Dropout's random bits differ between micro-batches, so its kernels are launched separately.
TEST_F(CudaGraphs, LeaveOutDropout) {
  const TemporaryDirectory directory;
  Json config = Json::parse(kTinyConfig);
  config["attention_dropout"] = 0.25;
  write_tiny_model(directory, config.dump().c_str());
  TrainOptions drops = options_;
  drops.model.path = directory / "model";
  const Outcome outcome = train_without_graphs(drops);
  expect_same(train(on_shim(), drops), outcome);
  EXPECT_NE(outcome.losses, train(on_shim()).losses);
}

// With a driver whose graphs are large: those that fit in the booked memory, the rest kernel by kernel.
TEST_F(CudaGraphs, TakeNoMoreThanIsBooked) {
  HostRuntimeLimits limits;
  const Outcome all = train(on_shim());
  limits.graph_node_bytes = kCudaGraphBytes / (all.graphs.nodes - 1);
  const Outcome some = train(on_shim(limits));
  expect_same(some, all);
  EXPECT_GT(some.graphs.held, 0);
  EXPECT_LT(some.graphs.held, all.graphs.held);
  EXPECT_LE(some.graphs.nodes * limits.graph_node_bytes, kCudaGraphBytes);
  limits.graph_node_bytes = kCudaGraphBytes + 1;
  EXPECT_EQ(train(on_shim(limits)).graphs.nodes, 0);
}

class RefusingRuntime final : public test::DeferredRuntime {
 public:
  using DeferredRuntime::DeferredRuntime;
  CudaGraph end_capture(CudaStream stream) override {
    abandon_capture(stream);
    throw Error(ErrorKind::run, "CUDA: making a CUDA graph failed: operation not permitted");
  }
};

TEST_F(CudaGraphs, ADriverThatRefusesLeavesTheKernels) {
  const Outcome refused = train([](const DeviceFacts& facts) {
    return make_cuda_device(std::make_unique<RefusingRuntime>(make_host_runtime(), test::Deferral{true}), facts);
  });
  expect_same(refused, train_without_graphs(options_));
}

// The plan includes their memory.
TEST_F(CudaGraphs, AreInThePlan) {
  const TinyRun run(options_, directory_ / "tokens", on_shim());
  EXPECT_EQ(run.plan().process.graphs, kCudaGraphBytes);
  EXPECT_EQ(Json::parse(plan_json(run.plan())).at("process").at("graphs"), kCudaGraphBytes);
}

}  // namespace
}  // namespace headroom
