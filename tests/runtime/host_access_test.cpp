// Training on a device whose arena the host cannot access is bitwise equal to training on one where it can.
#include <gtest/gtest.h>

#include <vector>

#include "tiny_run.h"

namespace headroom {
namespace {

// The CPU, accessible only through a small window.
class HiddenDevice final : public Device {
 public:
  explicit HiddenDevice(const DeviceFacts& facts) : inner_(make_cpu_device(facts)), window_(4096 + 128) {}
  std::string_view name() const override { return "hidden"; }
  std::byte* reserve_arena(Tier tier, int64_t bytes) override { return inner_->reserve_arena(tier, bytes); }
  bool host_visible() const override { return false; }
  std::span<std::byte> host_window() override { return window_; }
  std::unique_ptr<DeviceKernel> prepare(const KernelSpec& spec) override { return inner_->prepare(spec); }
  void launch(const DeviceKernel& kernel, const KernelCall& call, StreamId stream) override {
    inner_->launch(kernel, call, stream);
  }
  void copy(std::byte* to, const std::byte* from, int64_t bytes, StreamId stream) override {
    inner_->copy(to, from, bytes, stream);
  }
  StreamId create_stream(Tier below) override { return inner_->create_stream(below); }
  EventId create_event() override { return inner_->create_event(); }
  void record(EventId event, StreamId stream) override { inner_->record(event, stream); }
  void wait(StreamId stream, EventId event) override { inner_->wait(stream, event); }
  void synchronize(StreamId stream) override { inner_->synchronize(stream); }

 private:
  std::unique_ptr<Device> inner_;
  std::vector<std::byte> window_;
};

std::unique_ptr<Device> make_hidden_device(const DeviceFacts& facts) { return std::make_unique<HiddenDevice>(facts); }

TEST(HostAccess, TrainingThroughAWindowIsBitwiseTheSame) {
  const TemporaryDirectory directory;
  write_tiny_model(directory);
  const TrainOptions options = tiny_options(directory);
  TinyRun seen(options, directory / "seen"), hidden(options, directory / "hidden", make_hidden_device);
  seen.begin();
  hidden.begin();
  for (int64_t step = 1; step <= 2; ++step) EXPECT_EQ(seen.step(step), hidden.step(step));
  EXPECT_EQ(seen.evaluate(), hidden.evaluate());
  EXPECT_EQ(seen.state(), hidden.state());
}

TEST(HostAccess, ValuesOfTheWrongSizeAreRefused) {
  const TemporaryDirectory directory;
  write_tiny_model(directory);
  TinyRun run(tiny_options(directory), directory / "scratch", make_hidden_device);
  const float two[2] = {1, 2};
  EXPECT_THROW(run.executor().put<float>(run.executor().tensor("hyper"), two), InternalError);
}

}  // namespace
}  // namespace headroom
