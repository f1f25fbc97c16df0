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

class NullDevice final : public Device {
 public:
  std::string_view name() const override { return "null"; }

  // Addresses are offsets from a base that is never touched.
  std::byte* reserve_arena(int64_t bytes) override {
    HR_CHECK(arena_bytes_ < 0, "the arena is reserved twice");
    arena_bytes_ = bytes;
    return base();
  }
  bool host_visible() const override { return false; }

  std::unique_ptr<DeviceKernel> prepare(const KernelSpec& spec) override { return std::make_unique<NullKernel>(spec); }

  void launch(const DeviceKernel& kernel, const KernelCall& call, StreamId) override {
    const std::string& op = static_cast<const NullKernel&>(kernel).op;
    for (const TensorView& input : call.inputs) check_intact(op, offset_of(input.data), bytes_of(input));
    if (!call.scratch.empty())
      overwrite(op, offset_of(call.scratch.data()), static_cast<int64_t>(call.scratch.size()), false);
    for (const TensorView& output : call.outputs) overwrite(op, offset_of(output.data), bytes_of(output), true);
  }
  void copy(std::byte*, const std::byte*, int64_t, StreamId) override {}
  StreamId create_stream() override { return ++streams_; }
  EventId record(StreamId) override { return ++events_; }
  void wait(StreamId, EventId) override {}
  void synchronize(StreamId) override {}

 private:
  struct Written {
    int64_t end = 0;
    bool holds_value = false;  // false: scratch, its contents are gone
  };

  static std::byte* base() { return reinterpret_cast<std::byte*>(uintptr_t{1} << 46); }
  static int64_t offset_of(const void* data) { return static_cast<const std::byte*>(data) - base(); }
  static int64_t bytes_of(const TensorView& view) { return view.count() * dtype_bytes(view.dtype); }

  void check_bounds(const std::string& op, int64_t offset, int64_t bytes) const {
    HR_CHECK(offset >= 0 && bytes >= 0 && offset + bytes <= arena_bytes_,
             "{} accesses [{}, {}) of an arena of {} bytes", op, offset, offset + bytes, arena_bytes_);
  }

  // An input must lie inside one value that nothing has written over. Bytes never written hold what the host put there.
  void check_intact(const std::string& op, int64_t offset, int64_t bytes) const {
    check_bounds(op, offset, bytes);
    auto at = written_.upper_bound(offset);
    if (at != written_.begin()) --at;
    for (; at != written_.end() && at->first < offset + bytes; ++at) {
      if (at->second.end <= offset) continue;
      HR_CHECK(at->second.holds_value && at->first <= offset && at->second.end >= offset + bytes,
               "{} reads [{}, {}), but [{}, {}) was written over it since", op, offset, offset + bytes, at->first,
               at->second.end);
    }
  }

  void overwrite(const std::string& op, int64_t offset, int64_t bytes, bool value) {
    check_bounds(op, offset, bytes);
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

  int64_t arena_bytes_ = -1;
  std::map<int64_t, Written> written_;  // disjoint ranges by begin
  StreamId streams_ = 0;
  EventId events_ = 0;
};

}  // namespace

std::unique_ptr<Device> make_null_device(const DeviceFacts&) { return std::make_unique<NullDevice>(); }

}  // namespace headroom
