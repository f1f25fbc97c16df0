#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "base/threads.h"
#include "device/devices.h"
#include "device/disk/disk_tier.h"
#include "ops/cpu/instruction_set.h"
#include "ops/cpu/kernel.h"

namespace headroom {
namespace {

// Kernels are chosen by the facts; those of a higher instruction set would end in an illegal instruction.
const DeviceFacts& facts_of_this_machine(const DeviceFacts& facts) {
  const InstructionSet machine = instruction_set();
  if (!capabilities_of(machine).cover(facts.capabilities))
    throw Error(
        ErrorKind::usage,
        fmt::format("the plan is made for {}, this CPU has {}",
                    instruction_set_name(instruction_set_of(facts.capabilities)), instruction_set_name(machine)),
        "plan on this machine without --profile");
  return facts;
}

class PreparedCpuKernel final : public DeviceKernel {
 public:
  explicit PreparedCpuKernel(std::unique_ptr<CpuKernel> kernel) : kernel_(std::move(kernel)) {}
  const CpuKernel& kernel() const { return *kernel_; }

 private:
  std::unique_ptr<CpuKernel> kernel_;
};

constexpr size_t kPage = 4096;

// Makes every page present; writes to the pages where the kernel cannot do it in one call (before Linux 5.14).
void populate(std::byte* base, size_t bytes) {
#ifdef MADV_POPULATE_WRITE
  if (::madvise(base, bytes, MADV_POPULATE_WRITE) == 0) return;
#endif
  for (size_t at = 0; at < bytes; at += kPage) static_cast<volatile std::byte*>(base)[at] = std::byte{0};
}

// The same on all threads, each on its own range, which begins at a large page.
void populate_together(std::byte* base, size_t bytes) {
  constexpr size_t kLargePage = size_t{2} << 20, kPiece = 8 * kLargePage;
  const size_t skew = (kLargePage - reinterpret_cast<size_t>(base) % kLargePage) % kLargePage;
  const auto begin_of = [&](int64_t piece) {
    return piece == 0 ? 0 : std::min(bytes, skew + static_cast<size_t>(piece) * kPiece);
  };
  parallel_for(static_cast<int64_t>((bytes + kPiece - 1) / kPiece), 1, [&](int64_t begin, int64_t end, int) {
    populate(base + begin_of(begin), begin_of(end) - begin_of(begin));
  });
}

// Host memory that the process maps once, with all pages present. Uses large pages where the system has them, so that
// kernels wait less for page tables; they lie within the mapping, which takes the same bytes either way.
class MappedArena {
 public:
  ~MappedArena() {
    if (base_) ::munmap(base_, mapped_);
  }
  std::byte* reserve(int64_t bytes) {
    HR_CHECK(!base_, "the arena is reserved twice");
    mapped_ = static_cast<size_t>(align_up(std::max<int64_t>(bytes, 1), kPage));
    // Not mmap, whose failure ends the program (cli/memory_exhaustion.cpp): a failure here is reported.
    void* memory = ::mmap64(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
      throw Error(ErrorKind::run,
                  fmt::format("cannot reserve an arena of {}: {}", format_bytes(bytes), std::strerror(errno)),
                  "free memory, or give a smaller --memory");
    base_ = static_cast<std::byte*>(memory);
    ::madvise(base_, mapped_, MADV_HUGEPAGE);  // only a hint
    populate_together(base_, mapped_);
    return base_;
  }

 private:
  std::byte* base_ = nullptr;
  size_t mapped_ = 0;
};

// Device and host share this process's memory. Bookkeeping ops (allocate, host_stage) have nothing to run.
class CpuDevice final : public Device {
 public:
  explicit CpuDevice(const DeviceFacts& facts, std::unique_ptr<DiskTier> disk = nullptr)
      : facts_(facts_of_this_machine(facts)), disk_(std::move(disk)) {}

  std::string_view name() const override { return "cpu"; }

  void require_room(Tier tier, int64_t bytes) override {
    if (tier == Tier::disk && (disk_ || bytes > 0)) disk().require_room(bytes);
  }
  std::byte* reserve_arena(Tier tier, int64_t bytes) override {
    if (tier != Tier::disk) return (tier == Tier::host ? host_ : device_).reserve(bytes);
    window_ = next_buffer();
    return disk().reserve(bytes, std::make_unique<MemoryBounce>(next_buffer()));
  }
  bool host_visible() const override { return true; }
  std::span<std::byte> host_window() override { return window_; }

  std::unique_ptr<DeviceKernel> prepare(const KernelSpec& spec) override {
    return std::make_unique<PreparedCpuKernel>(make_cpu_kernel(spec, facts_));
  }
  void launch(const DeviceKernel& kernel, const KernelCall& call, StreamId) override {
    static_cast<const PreparedCpuKernel&>(kernel).kernel().run(call);
  }
  void copy(std::byte* to, const std::byte* from, int64_t bytes, StreamId stream) override {
    if (disk_ && (disk_->holds(to) || disk_->holds(from))) return disk_->copy(to, from, bytes, stream);
    synchronize(stream);
    std::memmove(to, from, static_cast<size_t>(bytes));
  }

  StreamId create_stream(Tier below) override {
    ++streams_;
    if (below == Tier::disk) disk().add_stream(streams_, std::make_unique<MemoryBounce>(next_buffer()));
    return streams_;
  }
  EventId create_event() override {
    marks_.emplace_back();
    return static_cast<EventId>(marks_.size()) - 1;
  }
  // Only copies between disk and memory are asynchronous.
  void record(EventId event, StreamId stream) override {
    if (disk_) marks_.at(static_cast<size_t>(event)) = disk_->mark(stream);
  }
  // The calling thread waits, whichever stream is meant to.
  void wait(StreamId, EventId event) override {
    if (disk_) disk_->wait(marks_.at(static_cast<size_t>(event)));
  }
  void synchronize(StreamId stream) override {
    if (disk_) disk_->synchronize(stream);
  }

 private:
  // For the window, and for each stream that copies.
  static constexpr int64_t kBuffers = 2 + static_cast<int64_t>(DiskTier::kStreams);

  DiskTier& disk() {
    HR_CHECK(disk_, "this device has no disk below it");
    return *disk_;
  }
  std::span<std::byte> next_buffer() {
    HR_CHECK(used_buffers_ < kBuffers, "the disk's tier has buffers for {} streams", DiskTier::kStreams);
    if (!buffers_) buffers_ = disk_buffers_.reserve(kBuffers * DiskTier::kBufferBytes);
    return {buffers_ + used_buffers_++ * DiskTier::kBufferBytes, static_cast<size_t>(DiskTier::kBufferBytes)};
  }

  DeviceFacts facts_;
  MappedArena device_, host_, disk_buffers_;
  std::byte* buffers_ = nullptr;
  int64_t used_buffers_ = 0;
  std::span<std::byte> window_;
  std::unique_ptr<DiskTier> disk_;  // declared after the memory that its threads copy from and to
  StreamId streams_ = 0;
  std::vector<DiskTier::Mark> marks_;  // indexed by event
};

class CpuFactory final : public DeviceFactory {
 public:
  std::string_view name() const override { return "cpu"; }
  DeviceKind kind() const override { return DeviceKind::cpu; }
  std::unique_ptr<Device> open(int, const DeviceFacts& facts, const std::filesystem::path& disk) const override {
    return disk.empty() ? make_cpu_device(facts) : make_cpu_device_with_disk(facts, disk);
  }
  DeviceFacts facts(int, int threads) const override { return cpu_facts(threads); }
};

}  // namespace

void register_cpu_device(Devices& devices);
void register_cpu_device(Devices& devices) { devices.add(std::make_unique<CpuFactory>()); }

std::unique_ptr<Device> make_cpu_device(const DeviceFacts& facts) { return std::make_unique<CpuDevice>(facts); }

std::unique_ptr<Device> make_cpu_device_with_disk(const DeviceFacts& facts, const std::filesystem::path& directory) {
  return std::make_unique<CpuDevice>(facts, std::make_unique<DiskTier>(directory));
}

}  // namespace headroom
