// The time of one kernel call as in a step: operands that a step does not find in the caches are evicted first.
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

  void evict() const;  // from the processor's caches; the host can access them
};

// Owns the device's arena. One call at a time. The calls of a round are its points: every round makes the same ones in
// the same order, and a point's timings of all rounds count, so a disturbance of some seconds affects some timings of
// each point instead of all timings of some points.
class TimedCalls {
 public:
  // All except the stopwatch outlive this.
  TimedCalls(Device& device, const DeviceFacts& facts, const CalibrationSizes& sizes, Stopwatch stopwatch);

  // Forgets the timings so far.
  void begin();
  // Starts again at the first point. A point that has a timing is timed again only until sizes.most_seconds are over,
  // and with `only_unsettled` only if it still needs undisturbed timings. A point without one is timed once even after
  // that.
  void begin_round(bool only_unsettled);

  // From now on this call runs, untimed, before each group of timed ones, since cores are slower for a while after a
  // product, and a step's ops run between its products. Call at most once.
  void precede_with(std::string_view op, const Attrs& attrs, std::vector<ConcreteType> inputs);

  // Seconds of one call, by this point's timings so far. Copies of the inputs in `cold` are evicted, then used in turn;
  // if there are any, copies of the results are used in turn too, so that none is written where the last was. With
  // `token_ids` every i32 operand holds small numbers.
  double seconds(std::string_view op, const Attrs& attrs, std::vector<ConcreteType> inputs,
                 const std::vector<size_t>& cold, bool token_ids = false);
  // The same if `wanted` accepts the name of the implementation that the device chooses; otherwise nothing is timed.
  std::optional<double> seconds_if(const std::function<bool(std::string_view)>& wanted, std::string_view op,
                                   const Attrs& attrs, std::vector<ConcreteType> inputs,
                                   const std::vector<size_t>& cold);
  // A call of a sequence; its inputs are indices of tensors. First come the tensors that exist before, then the outputs
  // of each call, in order.
  struct Member {
    std::string_view op;
    Attrs attrs;
    std::vector<size_t> inputs;
  };
  struct Sequence {
    std::vector<ConcreteType> tensors;
    std::vector<Member> forward, backward;
  };
  // Seconds of all calls of `sets` copies of a sequence, each with its own tensors: forward copy by copy, backward from
  // the last to the first; a copy's tensors are evicted before both. `each` sees every call once. Every call is a
  // point. Throws InternalError if the buffer is too small.
  double sequence_seconds(const Sequence& sequence, int sets,
                          const std::function<void(const Op&, const OpCall&)>& each);
  // Bytes per second between host and arena, the mean of both directions.
  double copy_rate();
  // Of the last call.
  const Work& work() const { return work_; }
  // Whether some point since the last call of this has no undisturbed timing.
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
