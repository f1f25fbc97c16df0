#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <set>

#include "base/error.h"
#include "device/devices.h"

namespace headroom {
namespace {

// What the checks need to know about a kernel, with its op's name for messages.
class NullKernel final : public DeviceKernel {
 public:
  explicit NullKernel(const KernelSpec& spec) : op(spec.op) {
    for (const ConcreteType& type : spec.inputs) inputs.push_back(storage_bytes(type));
    for (const ConcreteType& type : spec.outputs) outputs.push_back(storage_bytes(type));
  }
  std::string op;
  std::vector<int64_t> inputs, outputs;  // their bytes
};

// An arena that is never accessed: addresses are offsets from a base, and it records what was written where.
class NullArena {
 public:
  // Arenas with different numbers (1 to 15) are far from each other and from where a process has memory.
  NullArena(std::string_view tier, uintptr_t number)
      : tier_(tier), base_(reinterpret_cast<std::byte*>(number * kReach)) {}

  std::byte* reserve(int64_t bytes) {
    HR_CHECK(bytes_ < 0, "the {} arena is reserved twice", tier_);
    bytes_ = bytes;
    return base_;
  }

  // True when `data` is an address of this arena, or past its end but before the next arena.
  bool holds(const void* data) const {
    const auto address = reinterpret_cast<uintptr_t>(data), begin = reinterpret_cast<uintptr_t>(base_);
    return address >= begin && address - begin < kReach;
  }

  // An input must lie inside one value that has not been overwritten, or consist of whole values: slices that were
  // written one after another. Bytes that were never written hold what the host put there.
  void check_intact(const std::string& op, const void* data, int64_t bytes) {
    const int64_t offset = bounded(op, data, bytes), end = offset + bytes;
    bool part = false;
    for (auto at = first_at(offset); at != written_.end() && at->first < end; ++at) {
      if (at->second.end <= offset) continue;
      const bool around = at->first <= offset && at->second.end >= end;
      const bool whole = at->first >= offset && at->second.end <= end;
      HR_CHECK(at->second.holds_value && (around || whole),
               "{} reads [{}, {}) of the {} arena, but [{}, {}) was written over it since", op, offset, end, tier_,
               at->first, at->second.end);
      part = around && !whole;
    }
    if (part) parts_read_.insert({offset, end});
  }

  void overwrite(const std::string& op, const void* data, int64_t bytes, bool value) {
    const int64_t offset = bounded(op, data, bytes), end = offset + bytes;
    if (bytes == 0) return;
    // The rest of an older value is no longer whole, unless exactly this part of it was read before: then this writes
    // the slice back.
    const bool slice = parts_read_.erase({offset, end}) > 0;
    auto at = first_at(offset);
    while (at != written_.end() && at->first < end) {
      if (at->second.end <= offset) {
        ++at;
        continue;
      }
      const auto [begin, old] = *at;
      const bool holds = slice && value && old.holds_value;
      at = written_.erase(at);
      if (begin < offset) written_[begin] = {offset, holds};
      if (old.end > end) at = written_.insert_or_assign(end, Written{old.end, holds}).first;
    }
    written_[offset] = {end, value};
    if (!slice) forget_parts(offset, end);
  }

 private:
  struct Written {
    int64_t end = 0;
    bool holds_value = false;  // false: scratch, whose content is undefined
  };
  using Ranges = std::map<int64_t, Written>;
  static constexpr uintptr_t kReach = uintptr_t{1} << 60;  // more than 10^18 bytes

  // The last range that begins at or before an offset, or the first range.
  Ranges::const_iterator first_at(int64_t offset) const {
    const auto at = written_.upper_bound(offset);
    return at == written_.begin() ? at : std::prev(at);
  }

  // No part of a new value in [offset, end) has been read.
  void forget_parts(int64_t offset, int64_t end) {
    std::erase_if(parts_read_, [&](const auto& part) { return part.first < end && part.second > offset; });
  }

  // The offset of `data`. Checks that all bytes are inside the arena.
  int64_t bounded(const std::string& op, const void* data, int64_t bytes) const {
    const int64_t offset = static_cast<const std::byte*>(data) - base_;
    HR_CHECK(offset >= 0 && bytes >= 0 && offset + bytes <= bytes_, "{} accesses [{}, {}) of a {} arena of {} bytes",
             op, offset, offset + bytes, tier_, bytes_);
    return offset;
  }

  std::string tier_;
  std::byte* base_;
  int64_t bytes_ = -1;
  Ranges written_;                                    // disjoint, by begin
  std::set<std::pair<int64_t, int64_t>> parts_read_;  // of values, since these were written
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
    const auto& null = static_cast<const NullKernel&>(kernel);
    const std::string& op = null.op;
    for (size_t i = 0; i < call.inputs.size(); ++i)
      arena_of(call.inputs[i].data).check_intact(op, call.inputs[i].data, null.inputs[i]);
    if (!call.scratch.empty())
      arena_of(call.scratch.data())
          .overwrite(op, call.scratch.data(), static_cast<int64_t>(call.scratch.size()), false);
    for (size_t i = 0; i < call.outputs.size(); ++i)
      arena_of(call.outputs[i].data).overwrite(op, call.outputs[i].data, null.outputs[i], true);
  }
  // Addresses outside all arenas are the host's own memory.
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
  NullArena* holder(const void* data) {
    const auto at = std::find_if(arenas_.begin(), arenas_.end(), [&](const NullArena& a) { return a.holds(data); });
    return at == arenas_.end() ? nullptr : &*at;
  }
  NullArena& arena_of(const void* data) {
    NullArena* const arena = holder(data);
    return arena ? *arena : arenas_.front();  // which then reports that it does not contain the address
  }

  std::array<NullArena, 3> arenas_{NullArena{"device", 1}, NullArena{"host", 2}, NullArena{"disk", 3}};  // by tier
  StreamId streams_ = 0;
  EventId events_ = 0;
};

class NullFactory final : public DeviceFactory {
 public:
  std::string_view name() const override { return "null"; }
  DeviceKind kind() const override { return DeviceKind::null; }
  std::unique_ptr<Device> open(int, const DeviceFacts& facts, const std::filesystem::path&) const override {
    return make_null_device(facts);
  }
};

}  // namespace

void register_null_device(Devices& devices);
void register_null_device(Devices& devices) { devices.add(std::make_unique<NullFactory>()); }

std::unique_ptr<Device> make_null_device(const DeviceFacts&) { return std::make_unique<NullDevice>(); }

}  // namespace headroom
