// A device that runs everything on another device and proves that all accesses to the same bytes are ordered.
//
// Each stream has a vector clock; an event stores the clock of its stream when it is recorded, a wait merges it, and
// what the host queues after a synchronisation follows what was synchronised. Two accesses to overlapping bytes, one of
// them a write, race unless the later one's clock includes the earlier one's time on its stream. Without races, no
// device can run them in the other order or at the same time, however it overlaps streams. Kernels read inputs and
// write outputs and scratch.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "device/device.h"

namespace headroom::test {

// The bytes accessed by streams, as disjoint ranges with their last write and the reads since.
class AccessLog {
 public:
  using Clock = std::vector<int64_t>;  // per stream: what happened before

  struct Access {
    StreamId stream = 0;
    int64_t time = 0;  // on its stream
    std::string what;
  };

  // The access with which this one races, or null; then this one is recorded as the newest of its bytes. `clock` is its
  // clock.
  const Access* add(const Access& access, const Clock& clock, const void* data, int64_t bytes, bool write) {
    if (bytes <= 0) return nullptr;
    const auto begin = reinterpret_cast<uintptr_t>(data), end = begin + static_cast<uintptr_t>(bytes);
    cut(begin), cut(end);
    fill(begin, end);
    const Access* conflict = nullptr;
    for (auto at = ranges_.lower_bound(begin); at != ranges_.end() && at->first < end; ++at) {
      Range& range = at->second;
      if (!conflict && !before(range.write, clock)) conflict = &remember(range.write);
      if (!write) {
        add_reader(range, access);
        continue;
      }
      for (const Access& reader : range.readers)
        if (!conflict && !before(reader, clock)) conflict = &remember(reader);
      range.write = access;
      range.readers.clear();
    }
    return conflict;
  }

 private:
  struct Range {
    uintptr_t end = 0;
    Access write;
    std::vector<Access> readers;
  };

  static bool before(const Access& earlier, const Clock& clock) {
    return earlier.time == 0 || clock[static_cast<size_t>(earlier.stream)] >= earlier.time;
  }
  const Access& remember(const Access& access) { return last_ = access; }

  static void add_reader(Range& range, const Access& access) {
    for (Access& reader : range.readers)
      if (reader.stream == access.stream) return void(reader = access);
    range.readers.push_back(access);
  }

  void cut(uintptr_t place) {
    auto at = ranges_.upper_bound(place);
    if (at == ranges_.begin() || (--at)->first == place || at->second.end <= place) return;
    ranges_.emplace(place, at->second);
    at->second.end = place;
  }

  // Creates ranges for the bytes of [begin, end) that were never accessed.
  void fill(uintptr_t begin, uintptr_t end) {
    for (auto at = ranges_.lower_bound(begin); begin < end; ++at) {
      const uintptr_t next = at == ranges_.end() || at->first > end ? end : at->first;
      if (begin < next) at = ranges_.emplace_hint(at, begin, Range{next, {}, {}});
      begin = at->second.end;
    }
  }

  std::map<uintptr_t, Range> ranges_;
  Access last_;
};

class RaceChecker final : public Device {
 public:
  // Runs on `inner`. With `deaf`, streams other than 0 ignore waits: a fault that must be found.
  explicit RaceChecker(std::unique_ptr<Device> inner, bool deaf = false) : inner_(std::move(inner)), deaf_(deaf) {}

  // The races found, at most kMost.
  const std::vector<std::string>& races() const { return races_; }
  int64_t copies() const { return copies_; }

  std::string_view name() const override { return "race checker"; }
  std::byte* reserve_arena(Tier tier, int64_t bytes) override { return inner_->reserve_arena(tier, bytes); }
  bool host_visible() const override { return inner_->host_visible(); }
  void require_room(Tier tier, int64_t bytes) override { inner_->require_room(tier, bytes); }
  DeviceMemory memory() override { return inner_->memory(); }
  std::span<std::byte> host_window() override { return inner_->host_window(); }

  std::unique_ptr<DeviceKernel> prepare(const KernelSpec& spec) override {
    return std::make_unique<Kernel>(spec, inner_->prepare(spec));
  }
  void launch(const DeviceKernel& kernel, const KernelCall& call, StreamId stream) override {
    const auto& checked = static_cast<const Kernel&>(kernel);
    tick(stream);
    for (size_t i = 0; i < call.inputs.size(); ++i)
      access(checked.op, stream, call.inputs[i].data, checked.inputs[i], false);
    for (size_t i = 0; i < call.outputs.size(); ++i)
      access(checked.op, stream, call.outputs[i].data, checked.outputs[i], true);
    access(checked.op, stream, call.scratch.data(), static_cast<int64_t>(call.scratch.size()), true);
    inner_->launch(*checked.inner, call, stream);
  }
  void copy(std::byte* to, const std::byte* from, int64_t bytes, StreamId stream) override {
    ++copies_;
    tick(stream);
    access("copy", stream, from, bytes, false);
    access("copy", stream, to, bytes, true);
    inner_->copy(to, from, bytes, stream);
  }

  StreamId create_stream(Tier below) override { return inner_->create_stream(below); }
  EventId create_event() override { return inner_->create_event(); }
  void record(EventId event, StreamId stream) override {
    marks_[event] = clock(stream);
    inner_->record(event, stream);
  }
  void wait(StreamId stream, EventId event) override {
    if (!deaf_ || stream == 0) join(clock(stream), marks_[event]);
    inner_->wait(stream, event);
  }
  void synchronize(StreamId stream) override {
    join(host_, clock(stream));
    inner_->synchronize(stream);
  }

 private:
  static constexpr size_t kMost = 16;
  using Clock = AccessLog::Clock;

  struct Kernel final : DeviceKernel {
    Kernel(const KernelSpec& spec, std::unique_ptr<DeviceKernel> prepared) : op(spec.op), inner(std::move(prepared)) {
      for (const ConcreteType& type : spec.inputs) inputs.push_back(storage_bytes(type));
      for (const ConcreteType& type : spec.outputs) outputs.push_back(storage_bytes(type));
    }
    std::string op;
    std::vector<int64_t> inputs, outputs;  // their bytes
    std::unique_ptr<DeviceKernel> inner;
  };

  Clock& clock(StreamId stream) {
    const size_t index = static_cast<size_t>(stream);
    if (clocks_.size() <= index) clocks_.resize(index + 1);
    for (Clock& each : clocks_) each.resize(clocks_.size());
    host_.resize(clocks_.size());
    return clocks_[index];
  }
  static void join(Clock& into, const Clock& other) {
    if (into.size() < other.size()) into.resize(other.size());
    for (size_t i = 0; i < other.size(); ++i) into[i] = std::max(into[i], other[i]);
  }
  void tick(StreamId stream) {
    join(clock(stream), host_);
    ++clock(stream)[static_cast<size_t>(stream)];
  }

  void access(const std::string& what, StreamId stream, const void* data, int64_t bytes, bool write) {
    const Clock& now = clock(stream);
    const AccessLog::Access access{stream, now[static_cast<size_t>(stream)], what};
    const AccessLog::Access* other = log_.add(access, now, data, bytes, write);
    if (other && races_.size() < kMost)
      races_.push_back(fmt::format(
          "{} number {} of stream {} {} {} bytes at {} while {} number {} of stream {} may use "
          "them",
          what, access.time, stream, write ? "writes" : "reads", bytes, data, other->what, other->time, other->stream));
  }

  std::unique_ptr<Device> inner_;
  bool deaf_;
  std::vector<Clock> clocks_;
  Clock host_;
  std::map<EventId, Clock> marks_;
  AccessLog log_;
  int64_t copies_ = 0;
  std::vector<std::string> races_;
};

// Makes checked CPU devices; `checker` is the last one.
inline std::function<std::unique_ptr<Device>(const DeviceFacts&)> checked_cpu(RaceChecker*& checker) {
  return [&checker](const DeviceFacts& facts) {
    auto made = std::make_unique<RaceChecker>(make_cpu_device(facts));
    checker = made.get();
    return made;
  };
}

}  // namespace headroom::test
