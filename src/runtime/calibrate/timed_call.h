// The time of one kernel call in a step-like setting: what a step finds far from the cores is evicted before.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "device/device.h"
#include "runtime/calibrate/sizes.h"

namespace headroom {

// Owns the device's arena. One call at a time.
class TimedCalls {
 public:
  // All outlive this.
  TimedCalls(Device& device, const DeviceFacts& facts, const CalibrationSizes& sizes);

  // Seconds of one call: the mean of several, after one to warm up. Copies of the inputs in `cold` are evicted, then
  // take turns. With `token_ids` every i32 operand holds small numbers.
  double seconds(std::string_view op, const Attrs& attrs, std::vector<ConcreteType> inputs,
                 const std::vector<size_t>& cold, bool token_ids = false);
  // Bytes per second between host and arena, the mean of both ways.
  double copy_rate();
  // Of the last call.
  const Work& work() const { return work_; }

 private:
  // A call's tensors.
  struct Tensors {
    std::vector<TensorView> inputs, outputs;
  };

  std::byte* take(int64_t bytes);
  Tensors lay_out(const KernelSpec& spec);
  std::vector<Tensors> copies_of(const KernelSpec& spec, const Tensors& first, const std::vector<size_t>& cold);
  void repeat(std::byte* to, int64_t bytes, std::span<const std::byte> pattern);
  void fill();
  double time(const DeviceKernel& kernel, const KernelSpec& spec, const std::vector<size_t>& cold, bool token_ids);

  Device& device_;
  const DeviceFacts& facts_;
  const CalibrationSizes& sizes_;
  std::byte* base_;
  int64_t used_ = 0;
  std::array<uint16_t, (64 << 10) / 2> pattern_;
  Work work_;
};

}  // namespace headroom
