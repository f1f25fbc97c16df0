#include <algorithm>
#include <array>
#include <map>

#include "base/error.h"
#include "device/device.h"

namespace headroom {
namespace {

// What the checks need of a kernel: its op's name for messages.
class NullKernel final : public DeviceKernel {
 public:
  explicit NullKernel(const KernelSpec& spec) : op(spec.op) {}
  std::string op;
};

// An arena that is never touched: addresses are offsets from a base, and what was written where is remembered.
class NullArena {
 public:
  // The arenas of different numbers, from 1 to 15, lie far from each other and from where a process has memory.
  NullArena(std::string_view tier, uintptr_t number)
      : tier_(tier), base_(reinterpret_cast<std::byte*>(number * kReach)) {}

  std::byte* reserve(int64_t bytes) {
    HR_CHECK(bytes_ < 0, "the {} arena is reserved twice", tier_);
    bytes_ = bytes;
    return base_;
  }

  // True when `data` is an address of this arena or past its end, up to what the next arena begins with.
  bool holds(const void* data) const {
    const auto address = reinterpret_cast<uintptr_t>(data), begin = reinterpret_cast<uintptr_t>(base_);
    return address >= begin && address - begin < kReach;
  }

  // What is read must lie inside one value that nothing has written over. Bytes never written hold what the host put
  // there.
  void check_intact(const std::string& op, const void* data, int64_t bytes) const {
    const int64_t offset = bounded(op, data, bytes);
    auto at = written_.upper_bound(offset);
    if (at != written_.begin()) --at;
    for (; at != written_.end() && at->first < offset + bytes; ++at) {
      if (at->second.end <= offset) continue;
      HR_CHECK(at->second.holds_value && at->first <= offset && at->second.end >= offset + bytes,
               "{} reads [{}, {}) of the {} arena, but [{}, {}) was written over it since", op, offset, offset + bytes,
               tier_, at->first, at->second.end);
    }
  }

  void overwrite(const std::string& op, const void* data, int64_t bytes, bool value) {
    const int64_t offset = bounded(op, data, bytes);
    if (bytes == 0) return;
    auto at = written_.upper_bound(offset);
    if (at != written_.begin()) --at;
    while (at != written_.end() && at->first < offset + bytes) {
      if (at->second.end <= offset) {
        ++at;
        continue;
      }
      // Parts of an older value that stick out are no whole value any more.
      const auto [begin, old] = *at;
      at = written_.erase(at);
      if (begin < offset) written_[begin] = {offset, false};
      if (old.end > offset + bytes) at = written_.insert_or_assign(offset + bytes, Written{old.end, false}).first;
    }
    written_[offset] = {offset + bytes, value};
  }

 private:
  struct Written {
    int64_t end = 0;
    bool holds_value = false;  // false: scratch, its contents are gone
  };
  static constexpr uintptr_t kReach = uintptr_t{1} << 60;  // beyond 10^18 bytes

  // The offset of `data`, all bytes being inside the arena.
  int64_t bounded(const std::string& op, const void* data, int64_t bytes) const {
    const int64_t offset = static_cast<const std::byte*>(data) - base_;
    HR_CHECK(offset >= 0 && bytes >= 0 && offset + bytes <= bytes_, "{} accesses [{}, {}) of a {} arena of {} bytes",
             op, offset, offset + bytes, tier_, bytes_);
    return offset;
  }

  std::string tier_;
  std::byte* base_;
  int64_t bytes_ = -1;
  std::map<int64_t, Written> written_;  // disjoint ranges by begin
};

class NullDevice final : public Device {
 public:
  std::string_view name() const override { return "null"; }

  std::byte* reserve_arena(Tier tier, int64_t bytes) override {
    return arenas_[static_cast<size_t>(tier)].reserve(bytes);
  }
  bool host_visible() const override { return false; }

  std::unique_ptr<DeviceKernel> prepare(const KernelSpec& spec) override { return std::make_unique<NullKernel>(spec); }

  void launch(const DeviceKernel& kernel, const KernelCall& call, StreamId) override {
    const std::string& op = static_cast<const NullKernel&>(kernel).op;
    for (const TensorView& input : call.inputs) arena_of(input.data).check_intact(op, input.data, bytes_of(input));
    if (!call.scratch.empty())
      arena_of(call.scratch.data())
          .overwrite(op, call.scratch.data(), static_cast<int64_t>(call.scratch.size()), false);
    for (const TensorView& output : call.outputs)
      arena_of(output.data).overwrite(op, output.data, bytes_of(output), true);
  }
  // What lies in no arena is the host's own memory.
  void copy(std::byte* to, const std::byte* from, int64_t bytes, StreamId) override {
    const std::string op = "a copy";
    if (holder(from)) holder(from)->check_intact(op, from, bytes);
    if (holder(to)) holder(to)->overwrite(op, to, bytes, true);
  }
  StreamId create_stream(Tier) override { return ++streams_; }
  EventId create_event() override { return ++events_; }
  void record(EventId, StreamId) override {}
  void wait(StreamId, EventId) override {}
  void synchronize(StreamId) override {}

 private:
  static int64_t bytes_of(const TensorView& view) { return view.count() * dtype_bytes(view.dtype); }
  NullArena* holder(const void* data) {
    const auto at = std::find_if(arenas_.begin(), arenas_.end(), [&](const NullArena& a) { return a.holds(data); });
    return at == arenas_.end() ? nullptr : &*at;
  }
  NullArena& arena_of(const void* data) {
    NullArena* const arena = holder(data);
    return arena ? *arena : arenas_.front();  // which then says that it does not hold it
  }

  std::array<NullArena, 3> arenas_{NullArena{"device", 1}, NullArena{"host", 2}, NullArena{"disk", 3}};  // by tier
  StreamId streams_ = 0;
  EventId events_ = 0;
};

}  // namespace

std::unique_ptr<Device> make_null_device(const DeviceFacts&) { return std::make_unique<NullDevice>(); }

}  // namespace headroom
