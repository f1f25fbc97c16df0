#include "cuda_shim/host_runtime.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

#include "base/error.h"
#include "cuda_shim/cuda_shim.h"
#include "device/cuda/cuda_device.h"
#include "device/cuda/open_cuda.h"

namespace headroom {
namespace {

struct Counts {
  int64_t allocations = 0;
  int64_t bytes = 0;
  int64_t pinned = 0;
  HostRuntimeGraphs graphs;
  int64_t streams = 0;
  int64_t made_late = 0;
  HostRuntimeLimits limits;

  // Held by this process.
  int64_t held() const {
    return limits.context_bytes + streams * limits.stream_bytes + cuda_shim::loaded_kernels() * limits.kernel_bytes +
           bytes;
  }
};

Counts& counts() {
  static Counts instance;
  return instance;
}

class HostRuntime final : public CudaRuntime {
 public:
  explicit HostRuntime(const HostRuntimeLimits& limits) : limits_(limits) {
    counts() = {};
    counts().limits = limits;
    cuda_shim::demand_loading(false);  // forgets kernels that an earlier device has loaded
    cuda_shim::demand_loading(true);
  }

  CudaProperties properties() override {
    return {"0000:00:00.0", "shim", limits_.capability, 2, limits_.total_bytes, int64_t{99} << 10};
  }
  CudaMemory memory() override {
    return {std::max<int64_t>(0, limits_.total_bytes - limits_.held_by_others - counts().held()), limits_.total_bytes};
  }
  void enter_thread() override {}
  std::byte* allocate(int64_t bytes) override {
    if (bytes > memory().free_bytes) throw Error(ErrorKind::run, "the device is full");
    std::byte* const at = aligned(bytes);
    std::memset(at, 0xFF, static_cast<size_t>(bytes));  // nothing may rely on the contents
    sizes_[at] = bytes;
    ++counts().allocations;
    counts().made_late = 0;
    counts().bytes += bytes;
    return at;
  }
  std::byte* allocate_pinned(int64_t bytes) override {
    counts().pinned += bytes;
    return aligned(bytes);
  }
  void release(std::byte* device) noexcept override {
    counts().bytes -= sizes_[device];
    std::free(device);
  }
  void release_pinned(std::byte* host) noexcept override { std::free(host); }

  CudaStream create_stream() override {
    ++counts().streams;
    ++counts().made_late;
    return reinterpret_cast<CudaStream>(++made_);
  }
  CudaEvent create_event() override {
    ++counts().made_late;
    return reinterpret_cast<CudaEvent>(++made_);
  }
  void destroy(CudaStream) noexcept override { --counts().streams; }
  void destroy(CudaEvent) noexcept override {}
  void record(CudaEvent, CudaStream) override {}
  void wait(CudaStream, CudaEvent) override {}
  void synchronize(CudaStream) override {}
  void synchronize(CudaEvent) override {}
  void copy(void* to, const void* from, int64_t bytes, CudaStream) override {
    cuda_shim::do_or_capture([=] { std::memmove(to, from, static_cast<size_t>(bytes)); });
  }
  void fill(void* at, int value, int64_t bytes, CudaStream) override {
    cuda_shim::do_or_capture([=] { std::memset(at, value, static_cast<size_t>(bytes)); });
  }

  void begin_capture(CudaStream) override { cuda_shim::begin_capture(); }
  CudaGraph end_capture(CudaStream) override {
    auto graph = std::make_unique<cuda_shim::Captured>(cuda_shim::end_capture());
    const int64_t bytes = limits_.graph_node_bytes * static_cast<int64_t>(graph->size());
    if (bytes > memory().free_bytes) throw Error(ErrorKind::run, "the device is full");
    counts().bytes += bytes;
    ++counts().graphs.held;
    counts().graphs.nodes += static_cast<int64_t>(graph->size());
    return reinterpret_cast<CudaGraph>(graph.release());
  }
  void abandon_capture(CudaStream) noexcept override { cuda_shim::end_capture(); }
  void launch(CudaGraph graph, CudaStream) override {
    ++counts().graphs.launches;
    for (const std::function<void()>& work : *reinterpret_cast<cuda_shim::Captured*>(graph)) work();
  }
  void destroy(CudaGraph graph) noexcept override {
    const std::unique_ptr<cuda_shim::Captured> own(reinterpret_cast<cuda_shim::Captured*>(graph));
    const auto nodes = static_cast<int64_t>(own->size());
    counts().bytes -= limits_.graph_node_bytes * nodes;
    --counts().graphs.held;
    counts().graphs.nodes -= nodes;
  }

 private:
  static std::byte* aligned(int64_t bytes) {
    void* const at = std::aligned_alloc(256, static_cast<size_t>((bytes + 255) / 256 * 256));
    if (!at) throw std::bad_alloc();
    return static_cast<std::byte*>(at);
  }

  HostRuntimeLimits limits_;
  std::map<std::byte*, int64_t> sizes_;
  uintptr_t made_ = 0;
};

constexpr unsigned kOtherProcess = 4000000001u;

int tell(unsigned pid, unsigned* count, void* infos) {
  *static_cast<NvmlProcessInfo*>(infos) = {pid, static_cast<unsigned long long>(counts().held()), 0, 0};
  *count = 1;
  return 0;
}

}  // namespace

NvmlTable telling_nvml(bool of_others) {
  NvmlTable table;
  table.init = [] { return 0; };
  table.shutdown = [] { return 0; };
  table.device_by_bus_id = [](const char*, void**) { return 0; };
  table.running_processes = [](void*, unsigned* count, void* infos) {
    return tell(static_cast<unsigned>(::getpid()), count, infos);
  };
  if (of_others)
    table.running_processes = [](void*, unsigned* count, void* infos) { return tell(kOtherProcess, count, infos); };
  return table;
}

HostRuntimeLimits& limits_of_cuda0() {
  static HostRuntimeLimits limits = [] {
    HostRuntimeLimits first;
    first.context_bytes = kHostRuntimeContext;
    first.graph_node_bytes = 0;
    return first;
  }();
  return limits;
}

std::unique_ptr<CudaRuntime> make_host_runtime(const HostRuntimeLimits& limits) {
  return std::make_unique<HostRuntime>(limits);
}
int64_t host_runtime_allocations() { return counts().allocations; }
int64_t host_runtime_bytes() { return counts().bytes; }
int64_t host_runtime_pinned() { return counts().pinned; }
HostRuntimeGraphs host_runtime_graphs() { return counts().graphs; }
int64_t host_runtime_made_late() { return counts().made_late; }

// Replaces src/device/cuda/open_cuda.cpp or no_cuda.cpp.
std::unique_ptr<Device> open_cuda_device(int, const DeviceFacts& facts, const std::filesystem::path& disk) {
  CudaLibraries libraries;
  if (limits_of_cuda0().tells) libraries.nvml = telling_nvml();
  return make_cuda_device(make_host_runtime(limits_of_cuda0()), facts, std::move(libraries), disk);
}
DeviceFacts cuda_facts(int) { return facts_of(make_host_runtime(limits_of_cuda0())->properties()); }
DeviceMemory cuda_memory(int) {
  return memory_without_arena(*make_host_runtime(limits_of_cuda0()),
                              limits_of_cuda0().tells ? telling_nvml() : NvmlTable{});
}

}  // namespace headroom
