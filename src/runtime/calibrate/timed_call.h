// The time of one kernel call in a step-like setting: what a step finds far from the cores is evicted before.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "device/device.h"
#include "runtime/calibrate/samples.h"
#include "runtime/calibrate/sizes.h"
#include "runtime/calibrate/stopwatch.h"

namespace headroom {

// What a call reads and writes.
struct CallTensors {
  std::vector<TensorView> inputs, outputs;

  void evict() const;  // from the processor's caches; the host sees them
};

// Owns the device's arena. One call at a time. The calls of a round are its points: every round makes the same ones in
// the same order, and a point's timings of all rounds count, so that what disturbs the machine for some seconds
// disturbs some timings of each point instead of all timings of some.
class TimedCalls {
 public:
  // All outlive this but the stopwatch.
  TimedCalls(Device& device, const DeviceFacts& facts, const CalibrationSizes& sizes, Stopwatch stopwatch);

  // Forgets the timings so far.
  void begin();
  // From the first point again. What has a timing is timed again only while sizes.most_seconds are not over, and
  // with `only_unsettled` only what still wants undisturbed timings. What has none is timed once when they are.
  void begin_round(bool only_unsettled);

  // From now on this call runs, untimed, before each group of timed ones: cores that have multiplied are slower for a
  // while, and a step's ops run between its products. At most once.
  void precede_with(std::string_view op, const Attrs& attrs, std::vector<ConcreteType> inputs);

  // Seconds of one call, by this point's timings so far. Copies of the inputs in `cold` are evicted, then
  // take turns; where there are any, the results take turns too, so that none is written where the last was. With
  // `token_ids` every i32 operand holds small numbers.
  double seconds(std::string_view op, const Attrs& attrs, std::vector<ConcreteType> inputs,
                 const std::vector<size_t>& cold, bool token_ids = false);
  // The same where `wanted` takes the name of the implementation that the device chooses; else nothing is timed.
  std::optional<double> seconds_if(const std::function<bool(std::string_view)>& wanted, std::string_view op,
                                   const Attrs& attrs, std::vector<ConcreteType> inputs,
                                   const std::vector<size_t>& cold);
  // A call of a sequence; its inputs are numbers of tensors. First come the tensors that are there before, then what
  // each call writes, in order.
  struct Member {
    std::string_view op;
    Attrs attrs;
    std::vector<size_t> inputs;
  };
  struct Sequence {
    std::vector<ConcreteType> tensors;
    std::vector<Member> forward, backward;
  };
  // Seconds of all calls of `sets` copies of a sequence, each with tensors of its own: forward copy by copy, backward
  // from the last to the first, a copy's tensors evicted before each of both. `each` sees every call once. Every call
  // is a point. Throws InternalError when the buffer is too small.
  double sequence_seconds(const Sequence& sequence, int sets,
                          const std::function<void(const Op&, const OpCall&)>& each);
  // Bytes per second between host and arena, the mean of both ways.
  double copy_rate();
  // Of the last call.
  const Work& work() const { return work_; }
  // Whether a point since the last time this was asked has no undisturbed timing.
  bool take_disturbed();

 private:
  struct Before {
    KernelSpec spec;  // whose dims the tensors view
    std::unique_ptr<DeviceKernel> kernel;
    CallTensors tensors;
    std::span<std::byte> scratch;
  };

  struct Prepared {
    KernelSpec spec;
    std::unique_ptr<DeviceKernel> kernel;
    std::vector<size_t> inputs;
  };
  struct Placed {
    const DeviceKernel* kernel;
    CallTensors tensors;
  };

  std::vector<Prepared> prepare(const Sequence& sequence);
  std::vector<Placed> place(const Sequence& sequence, const std::vector<Prepared>& calls);
  KernelSpec spec_of(const Op& op, const Attrs& attrs, std::vector<ConcreteType> inputs) const;
  std::byte* take(int64_t bytes);
  CallTensors lay_out(const KernelSpec& spec);
  void place_outputs(const KernelSpec& spec, CallTensors& tensors);
  std::vector<CallTensors> copies_of(const KernelSpec& spec, const CallTensors& first, const std::vector<size_t>& cold);
  void launch(const DeviceKernel& kernel, const CallTensors& tensors, std::span<std::byte> scratch) {
    device_.launch(kernel, {tensors.inputs, tensors.outputs, scratch, 1, nullptr}, 0);
  }
  void repeat(std::byte* to, int64_t bytes, std::span<const std::byte> pattern);
  void fill();
  size_t next_points(size_t count);  // the first of them
  bool over() const { return stopwatch_().seconds - began_ >= sizes_.most_seconds; }
  bool wanted(const Samples& samples) const;
  double conclude(const Samples& samples);  // its seconds
  void time(const DeviceKernel& kernel, const KernelSpec& spec, const std::vector<size_t>& cold, bool token_ids,
            Samples& samples);
  void run_sequence(const Sequence& sequence, int sets, const std::vector<Prepared>& calls, size_t first_point);

  Device& device_;
  const DeviceFacts& facts_;
  const CalibrationSizes& sizes_;
  Stopwatch stopwatch_;
  double began_ = 0;
  std::vector<Samples> points_;
  size_t next_ = 0;
  bool only_unsettled_ = false;
  bool disturbed_ = false;
  std::byte* base_;
  int64_t first_ = 0;  // where timed calls' tensors begin
  int64_t used_ = 0;
  Before before_;
  std::array<uint16_t, (64 << 10) / 2> pattern_;
  Work work_;
};

}  // namespace headroom
