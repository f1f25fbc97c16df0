// Executes a plan: reserves the arenas, prepares every kernel, then runs programs without a heap call of its own. If
// the device can capture work (Device::capture), spans of kernels between host calls and copies are one launch each.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "device/device.h"
#include "ir/tier_bytes.h"
#include "plan/plan.h"
#include "runtime/copy_streams.h"
#include "runtime/outside_arena.h"

namespace headroom {

// The number of iterations of a program's loops, by the name of their trip count.
struct Trips {
  std::string_view name;
  int64_t count = 1;
};

// When an executor reserves its arenas.
enum class Reservation : uint8_t { now, later };

class Executor {
 public:
  // Checks that there is room for the arenas, prepares kernels (shared by equal calls) and the streams and events of
  // copies, checks that the device memory these take outside the arena is within what the plan books and still leaves
  // room for the arena, and then reserves the arenas, unless that is for `later`. `plan`, `device` and `host` outlive
  // the executor. Throws Error(does_not_fit) if memory is short, Error(run) as the device does.
  Executor(const Plan& plan, Device& device, HostPort* host, Reservation arenas = Reservation::now);
  // Call once, before anything else, on an executor that reserves its arenas later; checks again that the device memory
  // outside the arena is within what is booked. Throws as the constructor.
  void reserve_arenas();

  // Runs a program to its end. No heap call. `after_kernel`, if set, is called after each kernel and stops the program
  // early by returning false; run() then returns false.
  bool run(std::string_view program, std::span<const Trips> trips);
  // While it is set every kernel is launched separately.
  void set_interrupt(std::function<bool()> should_stop) { should_stop_ = std::move(should_stop); }

  // A persistent tensor in the arena of its tier; throws InternalError if the plan has none of that name.
  TensorView tensor(std::string_view name) const;
  // Result `index` of a program, valid until the next program runs.
  TensorView result(std::string_view program, size_t index) const;
  // Host memory of the program's host_stage, for the host's own use between programs; if the host cannot access the
  // device's arena, half of the device's window.
  std::span<std::byte> staging(std::string_view program);

  // The host writes or reads a whole tensor between programs, in order: the callback gets the index of the piece's
  // first element and the piece. There is one piece if the host can access the tensor, otherwise pieces of the device's
  // window.
  void write(const TensorView& to, const std::function<void(int64_t first, std::span<std::byte> piece)>& fill);
  void read(const TensorView& from,
            const std::function<void(int64_t first, std::span<const std::byte> piece)>& use) const;
  // A small tensor at once, no heap call. `values` has its size.
  template <typename T>
  void put(const TensorView& to, std::span<const T> values) {
    put_bytes(to, std::as_bytes(values));
  }
  // The tensor's values: in place if the host can access the arena, else copied into `buffer`, which has its size.
  template <typename T>
  std::span<const T> get(const TensorView& from, std::span<T> buffer) const {
    return {reinterpret_cast<const T*>(get_bytes(from, std::as_writable_bytes(buffer))),
            static_cast<size_t>(from.count())};
  }

  // Whether the host reads the tensor's bytes in place.
  bool host_sees(const TensorView& view) const;

  // Highest end offset in a tier's arena handed out so far: to kernels, copies and staging.
  int64_t arena_high_water(Tier tier = Tier::device) const { return high_water_.of(tier); }
  std::span<std::byte> arena(Tier tier = Tier::device);
  const Plan& plan() const { return plan_; }
  const Device& device() const { return device_; }

 private:
  // The executor's form of a call: the device's kernel, a copy between tiers, the wait for one, or nothing to run.
  enum class Action : uint8_t { none, kernel, copy, wait };
  struct Step {
    InstructionKind kind = InstructionKind::call;
    Action action = Action::none;
    const DeviceKernel* kernel = nullptr;
    EventId copied = 0;                  // for a copy and its wait
    const CopyStream* stream = nullptr;  // for a copy
    int64_t bytes = 0;                   // for a copy
    int64_t first_row = 0;               // of the slice that a kernel works on
    std::string_view trips;
    size_t first_input = 0, input_count = 0;
    size_t first_output = 0, output_count = 0;
    std::span<std::byte> scratch;
    TierBytes end_offset;
    // For the first step of a captured span, whose end_offset is the span's: the step after it, and its work in
    // iteration 0 and in later ones.
    size_t span_end = 0;
    std::optional<CaptureId> first_trip, later_trip;
  };
  struct Prepared {
    const PlanProgram* source = nullptr;
    std::vector<Step> steps;
    std::vector<TensorView> views;
  };

  void require_room();
  void prepare_kernels();
  void prepare_copies();
  void bind(Prepared& program);
  void capture(Prepared& program);
  size_t replaying_until(const Prepared& program, size_t begin) const;
  bool replay(const Step& step, int64_t trip);
  void bind_operands(const std::vector<Operand>& operands, Prepared& program, Step& step);
  const DeviceKernel* kernel_for(const Instruction& instruction);
  std::byte* base(Tier tier) const { return bases_[static_cast<size_t>(tier)]; }
  bool inside(Tier tier, const std::byte* address) const;
  TensorView view(const Operand& operand) const;
  void put_bytes(const TensorView& to, std::span<const std::byte> bytes);
  const std::byte* get_bytes(const TensorView& from, std::span<std::byte> buffer) const;
  void copy_now(std::byte* to, const std::byte* from, int64_t bytes) const;
  std::span<std::byte> window_half(int which) const;
  int64_t granted(Tier tier, int64_t bytes) const;
  void run_steps(const Prepared& program, size_t begin, size_t end, int64_t trip, std::span<const Trips> trips);
  void run_call(const Prepared& program, const Step& step, int64_t trip);
  const Prepared& find(std::string_view program) const;

  const Plan& plan_;
  Device& device_;
  HostPort* host_;
  std::array<std::byte*, kArenaTiers.size()> bases_{};  // by tier; null if the plan keeps nothing there
  CopyStreams copies_;
  OutsideArena outside_;
  TierBytes high_water_;
  bool stopped_ = false;
  std::function<bool()> should_stop_;
  std::map<std::string, std::unique_ptr<DeviceKernel>> kernels_;  // by signature
  std::vector<Prepared> programs_;
};

}  // namespace headroom
