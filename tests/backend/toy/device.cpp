// The running half of the toy backend: its own memory, which the host can access only through a window.
#include <array>
#include <cstring>

#include "base/error.h"
#include "device/devices.h"
#include "toy.h"

namespace headroom {
namespace {

class PreparedToyKernel final : public DeviceKernel {
 public:
  PreparedToyKernel(std::unique_ptr<toy::Kernel> kernel, int64_t scratch_bytes)
      : kernel_(std::move(kernel)), scratch_bytes_(scratch_bytes) {}
  void run(const KernelCall& call) const {
    HR_CHECK(static_cast<int64_t>(call.scratch.size()) >= scratch_bytes_, "less scratch than was planned");
    for (const auto operands : {call.inputs, call.outputs})
      for (const TensorView& view : operands)
        HR_CHECK(reinterpret_cast<uintptr_t>(view.data) % toy::kAlignment == 0, "an operand is not aligned");
    kernel_->run(call);
  }

 private:
  std::unique_ptr<toy::Kernel> kernel_;
  int64_t scratch_bytes_;
};

class ToyDevice final : public Device {
 public:
  explicit ToyDevice(const DeviceFacts& facts) : facts_(facts) {}
  std::string_view name() const override { return "toy"; }

  std::byte* reserve_arena(Tier tier, int64_t bytes) override {
    HR_CHECK(tier == Tier::device && !arena_, "the toy has one arena");
    const auto alignment = static_cast<size_t>(toy::kAlignment);
    const size_t whole = (static_cast<size_t>(bytes) + alignment - 1) / alignment * alignment;
    arena_.reset(static_cast<std::byte*>(std::aligned_alloc(alignment, whole)));
    return arena_.get();
  }
  bool host_visible() const override { return false; }
  std::span<std::byte> host_window() override { return window_; }

  std::unique_ptr<DeviceKernel> prepare(const KernelSpec& spec) override {
    return std::make_unique<PreparedToyKernel>(toy::kernels().make(spec, facts_, {}, nullptr), spec.scratch_bytes);
  }
  void launch(const DeviceKernel& kernel, const KernelCall& call, StreamId) override {
    static_cast<const PreparedToyKernel&>(kernel).run(call);
  }
  void copy(std::byte* to, const std::byte* from, int64_t bytes, StreamId) override {
    std::memcpy(to, from, static_cast<size_t>(bytes));
  }
  StreamId create_stream(Tier) override { return 0; }
  EventId create_event() override { return 0; }
  void record(EventId, StreamId) override {}
  void wait(StreamId, EventId) override {}
  void synchronize(StreamId) override {}

 private:
  struct Free {
    void operator()(std::byte* at) const { std::free(at); }
  };
  DeviceFacts facts_;
  std::unique_ptr<std::byte, Free> arena_;
  std::array<std::byte, 16384> window_{};
};

class ToyFactory final : public DeviceFactory {
 public:
  std::string_view name() const override { return "toy"; }
  DeviceKind kind() const override { return DeviceKind::accelerator; }
  std::unique_ptr<Device> open(int, const DeviceFacts& facts, const std::filesystem::path&) const override {
    return std::make_unique<ToyDevice>(facts);
  }
};

}  // namespace

void register_toy_device(Devices& devices);
void register_toy_device(Devices& devices) { devices.add(std::make_unique<ToyFactory>()); }

}  // namespace headroom
