#include "device/cuda/cuda_device.h"

#include <unistd.h>

#include <array>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "device/cuda/cuda_bounce.h"
#include "device/cuda/nvml.h"
#include "device/disk/disk_tier.h"
#include "ops/cuda/backend.h"
#include "ops/cuda/capabilities.h"
#include "ops/cuda/kernel.h"
#include "ops/cuda/library.h"

namespace headroom {
namespace {

// mark() uses the events of a ring in turn. An event that is used again stands for its latest record, so whoever still
// waits for the earlier one waits longer than necessary, but never too short.
constexpr size_t kEvents = 1024;

class PreparedCudaKernel final : public DeviceKernel {
 public:
  PreparedCudaKernel(std::unique_ptr<CudaKernel> kernel, std::string implementation)
      : kernel_(std::move(kernel)), implementation_(std::move(implementation)) {}
  const CudaKernel& kernel() const { return *kernel_; }
  bool replays() const override { return kernel_->replays(); }
  std::string_view implementation() const override { return implementation_; }

 private:
  std::unique_ptr<CudaKernel> kernel_;
  std::string implementation_;
};

std::vector<TensorView> without_addresses(const std::vector<ConcreteType>& types) {
  std::vector<TensorView> views;
  for (const ConcreteType& type : types) views.push_back({nullptr, type.dtype, type.dims});
  return views;
}

class CudaDevice final : public Device, public CudaServices {
 public:
  CudaDevice(std::unique_ptr<CudaRuntime> runtime, const DeviceFacts& facts, CudaLibraries libraries,
             std::unique_ptr<DiskTier> disk)
      : runtime_(std::move(runtime)),
        properties_(runtime_->properties()),
        libraries_(std::move(libraries)),
        disk_(std::move(disk)) {
    if (!facts_of(properties_).capabilities.cover(facts.capabilities))
      throw Error(ErrorKind::usage,
                  fmt::format("the plan is made for compute capability {}, but {} has {}",
                              compute_capability_name(compute_capability(facts)), properties_.name,
                              compute_capability_name(properties_.capability)),
                  "plan with this device's profile: `headroom profile --device cuda:0`");
    context_ = {facts, properties_.multiprocessors, properties_.shared_bytes, this};
    streams_.push_back(runtime_->create_stream());
    for (CudaEvent& event : events_) event = runtime_->create_event();
    window_ = pinned(kCudaWindowBytes);
  }
  ~CudaDevice() override {
    disk_.reset();
    for (CudaGraph graph : graphs_) runtime_->destroy(graph);
    for (CudaStream stream : streams_) runtime_->destroy(stream);
    for (CudaEvent event : events_) runtime_->destroy(event);
    for (const Event& event : created_) runtime_->destroy(event.event);
    for (std::byte* block : pinned_) runtime_->release_pinned(block);
    if (arena_) runtime_->release(arena_);
  }

  std::string_view name() const override { return "cuda"; }
  std::string remark() const override {
    std::string text = libraries_.missing;
    for (const std::string& more : {libraries_.blas ? libraries_.blas->remark() : std::string(),
                                    libraries_.dnn ? libraries_.dnn->remark() : std::string()})
      if (!more.empty()) text += (text.empty() ? "" : "; ") + more;
    return text;
  }

  void enter_thread() override { runtime_->enter_thread(); }

  void require_room(Tier tier, int64_t bytes) override {
    if (tier == Tier::disk && (disk_ || bytes > 0)) return disk().require_room(bytes);
    if (tier != Tier::device) return;
    const CudaMemory memory = runtime_->memory();
    if (bytes > memory.free_bytes)
      throw Error(ErrorKind::does_not_fit,
                  fmt::format("the arena takes {}, but the device has {} free of {}{}", format_bytes(bytes),
                              format_bytes(memory.free_bytes), format_bytes(memory.total_bytes), holders()),
                  "end what else runs on the device, or give a smaller --memory");
  }
  std::byte* reserve_arena(Tier tier, int64_t bytes) override {
    if (tier == Tier::disk) return reserve_disk(bytes);
    if (tier == Tier::host) return pinned(bytes).data();
    HR_CHECK(!arena_, "the arena is reserved twice");
    require_room(tier, bytes);
    arena_ = runtime_->allocate(bytes);
    arena_bytes_ = bytes;
    return arena_;
  }
  DeviceMemory memory() override {
    const CudaMemory memory = runtime_->memory();
    std::optional<int64_t> outside = own_bytes(properties_.bus_id, libraries_.nvml);
    if (outside) *outside -= arena_bytes_;
    // A container may see another process's number, which is not an answer.
    if (outside && *outside < 0) outside.reset();
    return {memory.total_bytes, memory.free_bytes, outside};
  }
  bool host_visible() const override { return false; }
  std::span<std::byte> host_window() override { return window_; }

  std::unique_ptr<DeviceKernel> prepare(const KernelSpec& spec) override {
    std::string implementation;
    std::unique_ptr<CudaKernel> kernel = make_cuda_kernel(spec, context_, {}, &implementation);
    const LoadingOnly loading;
    const std::vector<TensorView> inputs = without_addresses(spec.inputs), outputs = without_addresses(spec.outputs);
    kernel->enqueue({inputs, outputs, {static_cast<std::byte*>(nullptr), static_cast<size_t>(spec.scratch_bytes)}},
                    streams_[0]);
    return std::make_unique<PreparedCudaKernel>(std::move(kernel), std::move(implementation));
  }
  void launch(const DeviceKernel& kernel, const KernelCall& call, StreamId stream) override {
    if (disk_) disk_->synchronize(stream);
    static_cast<const PreparedCudaKernel&>(kernel).kernel().enqueue(call, at(stream));
  }
  // After a capture that exceeds kCudaGraphBytes, or that the driver refuses, nothing more is captured.
  std::optional<CaptureId> capture(const std::function<void()>& queue) override {
    if (!captures_) return {};
    const int64_t free_before = runtime_->memory().free_bytes;
    const CudaGraph graph = captured(queue);
    if (graph) graph_bytes_ += free_before - runtime_->memory().free_bytes;
    captures_ = graph && graph_bytes_ <= kCudaGraphBytes;
    if (captures_) {
      graphs_.push_back(graph);
      return static_cast<CaptureId>(graphs_.size()) - 1;
    }
    if (graph) runtime_->destroy(graph);
    return {};
  }
  void replay(CaptureId capture) override {
    if (disk_) disk_->synchronize(0);
    runtime_->launch(graphs_.at(static_cast<size_t>(capture)), streams_[0]);
  }
  void copy(std::byte* to, const std::byte* from, int64_t bytes, StreamId stream) override {
    if (disk_ && (disk_->holds(to) || disk_->holds(from))) return disk_->copy(to, from, bytes, stream);
    if (disk_) disk_->synchronize(stream);
    runtime_->copy(to, from, bytes, at(stream));
  }

  StreamId create_stream(Tier below) override {
    const auto stream = static_cast<StreamId>(streams_.size());
    streams_.push_back(runtime_->create_stream());
    if (below != Tier::disk) return stream;
    make_first_bounce();
    bounces_.emplace_back(
        stream, std::make_unique<CudaBounce>(*runtime_, streams_.back(), static_cast<size_t>(CopyThread::kPlaces)));
    if (disk_reserved_) start_bounces();
    return stream;
  }
  EventId create_event() override {
    created_.push_back({runtime_->create_event(), {}});
    return static_cast<EventId>(created_.size()) - 1;
  }
  void record(EventId event, StreamId stream) override {
    Event& recorded = created_.at(static_cast<size_t>(event));
    runtime_->record(recorded.event, at(stream));
    if (disk_) recorded.copies = disk_->mark(stream);
  }
  // The host waits for copies of a thread, so that work queued on the device never waits for a thread.
  void wait(StreamId stream, EventId event) override {
    const Event& recorded = created_.at(static_cast<size_t>(event));
    if (disk_) disk_->wait(recorded.copies);
    runtime_->wait(at(stream), recorded.event);
  }
  void synchronize(StreamId stream) override {
    if (disk_) disk_->synchronize(stream);
    runtime_->synchronize(at(stream));
  }

  std::span<std::byte> pinned(int64_t bytes) override {
    pinned_.push_back(runtime_->allocate_pinned(bytes));
    return {pinned_.back(), static_cast<size_t>(bytes)};
  }
  void copy(void* to, const void* from, int64_t bytes, CudaStream stream) override {
    if (launch_mode() == LaunchMode::run) runtime_->copy(to, from, bytes, stream);
  }
  void fill(void* to, int value, int64_t bytes, CudaStream stream) override {
    if (launch_mode() == LaunchMode::run) runtime_->fill(to, value, bytes, stream);
  }
  CudaBlas* blas() override { return libraries_.blas.get(); }
  CudaDnn* dnn() override { return libraries_.dnn.get(); }
  int mark(CudaStream stream) override {
    const size_t event = next_event_++ % kEvents;
    if (launch_mode() == LaunchMode::run) runtime_->record(events_[event], stream);
    return static_cast<int>(event);
  }
  void wait_for(int mark) override {
    if (launch_mode() == LaunchMode::run) runtime_->synchronize(events_.at(static_cast<size_t>(mark)));
  }

 private:
  // Marks of the stream's work on the device and of its copies on a thread.
  struct Event {
    CudaEvent event = nullptr;
    DiskTier::Mark copies;
  };

  DiskTier& disk() {
    HR_CHECK(disk_, "this device has no disk below it");
    return *disk_;
  }
  // The disk's buffers: their streams and events are created before any arena, their memory together with the disk's.
  void make_first_bounce() {
    HR_CHECK(disk_, "this device has no disk below it");
    if (!first_bounce_ && !disk_reserved_) first_bounce_ = std::make_unique<CudaBounce>(*runtime_, streams_[0], 1);
  }
  void start_bounces() {
    for (auto& [stream, bounce] : bounces_) {
      bounce->take(pinned(CudaBounce::kPinnedBytes));
      disk().add_stream(stream, std::move(bounce));
    }
    bounces_.clear();
  }
  std::byte* reserve_disk(int64_t bytes) {
    make_first_bounce();
    first_bounce_->take(pinned(CudaBounce::kPinnedBytes));
    std::byte* const arena = disk().reserve(bytes, std::move(first_bounce_));
    disk_reserved_ = true;
    start_bounces();
    return arena;
  }
  // ": python (pid 4242) holds 12.0 GiB", if the driver tells.
  std::string holders() {
    std::vector<GpuProcess> others = gpu_processes(properties_.bus_id, libraries_.nvml);
    std::erase_if(others, [](const GpuProcess& process) { return process.pid == ::getpid(); });
    return others.empty() ? "" : ": " + describe(others);
  }

  // Null if the driver cannot capture the work.
  CudaGraph captured(const std::function<void()>& queue) {
    try {
      runtime_->begin_capture(streams_[0]);
      queue_or_abandon(queue);
      return runtime_->end_capture(streams_[0]);
    } catch (const Error&) {
      return nullptr;
    }
  }
  void queue_or_abandon(const std::function<void()>& queue) {
    try {
      queue();
    } catch (...) {
      runtime_->abandon_capture(streams_[0]);
      throw;
    }
  }

  CudaStream at(StreamId stream) const { return streams_.at(static_cast<size_t>(stream)); }

  std::unique_ptr<CudaRuntime> runtime_;
  const CudaProperties properties_;
  CudaLibraries libraries_;
  CudaContext context_;
  std::vector<CudaStream> streams_;
  std::array<CudaEvent, kEvents> events_{};  // of mark()
  std::vector<Event> created_;               // of create_event()
  size_t next_event_ = 0;
  std::vector<CudaGraph> graphs_;  // indexed by CaptureId
  int64_t graph_bytes_ = 0;        // bytes of device memory
  bool captures_ = cuda::part_wanted("graphs");
  std::vector<std::byte*> pinned_;
  std::span<std::byte> window_;
  std::byte* arena_ = nullptr;
  int64_t arena_bytes_ = 0;
  std::unique_ptr<DiskTier> disk_;
  bool disk_reserved_ = false;
  std::unique_ptr<CudaBounce> first_bounce_;                               // for stream 0, until the disk is reserved
  std::vector<std::pair<StreamId, std::unique_ptr<CudaBounce>>> bounces_;  // for other streams, until then
};

}  // namespace

DeviceFacts facts_of(const CudaProperties& properties) {
  DeviceFacts facts;
  facts.device = "cuda";
  facts.capabilities = of_compute_capability(properties.capability);
  facts.native_bf16 = has_bf16_tensor_cores(facts);
  facts.alignment = 256;
  facts.gemm_workspace_cap = int64_t{is_hopper_or_later(facts) ? 32 : 4} << 20;
  return facts;
}

DeviceMemory memory_without_arena(CudaRuntime& runtime, const NvmlTable& table) {
  const CudaMemory memory = runtime.memory();
  return {memory.total_bytes, memory.free_bytes, own_bytes(runtime.properties().bus_id, table)};
}

std::unique_ptr<Device> make_cuda_device(std::unique_ptr<CudaRuntime> runtime, const DeviceFacts& facts,
                                         CudaLibraries libraries, const std::filesystem::path& disk) {
  return std::make_unique<CudaDevice>(std::move(runtime), facts, std::move(libraries),
                                      disk.empty() ? nullptr : std::make_unique<DiskTier>(disk));
}

}  // namespace headroom
