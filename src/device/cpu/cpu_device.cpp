#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "base/bytes.h"
#include "base/error.h"
#include "device/device.h"

namespace headroom {
namespace {

class PreparedCpuKernel final : public DeviceKernel {
 public:
  explicit PreparedCpuKernel(std::unique_ptr<CpuKernel> kernel) : kernel_(std::move(kernel)) {}
  const CpuKernel& kernel() const { return *kernel_; }

 private:
  std::unique_ptr<CpuKernel> kernel_;
};

// An op of pure bookkeeping (allocate, host_stage) has nothing to run.
class CpuDevice final : public Device {
 public:
  explicit CpuDevice(const DeviceFacts& facts) : facts_(facts) {}
  ~CpuDevice() override {
    if (arena_) ::munmap(arena_, static_cast<size_t>(mapped_));
  }

  std::string_view name() const override { return "cpu"; }

  std::byte* reserve_arena(int64_t bytes) override {
    HR_CHECK(!arena_, "the arena is reserved twice");
    mapped_ = align_up(std::max<int64_t>(bytes, 1), 4096);
    void* memory = ::mmap(nullptr, static_cast<size_t>(mapped_), PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (memory == MAP_FAILED)
      throw Error(ErrorKind::run,
                  fmt::format("cannot reserve an arena of {}: {}", format_bytes(bytes), std::strerror(errno)),
                  "free memory, or give a smaller --memory");
    arena_ = static_cast<std::byte*>(memory);
    return arena_;
  }
  bool host_visible() const override { return true; }

  std::unique_ptr<DeviceKernel> prepare(const KernelSpec& spec) override {
    return std::make_unique<PreparedCpuKernel>(make_cpu_kernel(spec, facts_));
  }
  void launch(const DeviceKernel& kernel, const KernelCall& call, StreamId) override {
    static_cast<const PreparedCpuKernel&>(kernel).kernel().run(call);
  }
  void copy(std::byte* to, const std::byte* from, int64_t bytes, StreamId) override {
    std::memmove(to, from, static_cast<size_t>(bytes));
  }

  StreamId create_stream() override { return ++streams_; }
  EventId record(StreamId) override { return ++events_; }
  void wait(StreamId, EventId) override {}
  void synchronize(StreamId) override {}

 private:
  DeviceFacts facts_;
  std::byte* arena_ = nullptr;
  int64_t mapped_ = 0;
  StreamId streams_ = 0;
  EventId events_ = 0;
};

}  // namespace

std::unique_ptr<Device> make_cpu_device(const DeviceFacts& facts) { return std::make_unique<CpuDevice>(facts); }

}  // namespace headroom
