// NVIDIA's runtime, linked statically; it opens the driver at the first call.
#include <cuda_runtime_api.h>

#include "base/bytes.h"
#include "base/error.h"
#include "device/cuda/cuda_runtime.h"
#include "ops/cuda/capture.h"

namespace headroom {
namespace {

void check(cudaError_t status, const char* what) { cuda::check_cuda(static_cast<int>(status), what); }

class DriverRuntime final : public CudaRuntime {
 public:
  explicit DriverRuntime(int index) : index_(index) {
    enter_thread();
    check(cudaFree(nullptr), "making the device's context");
  }
  void enter_thread() override { check(cudaSetDevice(index_), "starting the device"); }

  CudaProperties properties() override {
    cudaDeviceProp p;
    check(cudaGetDeviceProperties(&p, index_), "asking for the device's properties");
    char bus_id[32] = {};
    check(cudaDeviceGetPCIBusId(bus_id, sizeof(bus_id), index_), "asking for the device's place");
    return {bus_id,
            p.name,
            10 * p.major + p.minor,
            p.multiProcessorCount,
            static_cast<int64_t>(p.totalGlobalMem),
            static_cast<int64_t>(p.sharedMemPerBlockOptin)};
  }
  CudaMemory memory() override {
    size_t free = 0, total = 0;
    check(cudaMemGetInfo(&free, &total), "asking for free memory");
    return {static_cast<int64_t>(free), static_cast<int64_t>(total)};
  }

  std::byte* allocate(int64_t bytes) override {
    void* memory = nullptr;
    const cudaError_t status = cudaMalloc(&memory, static_cast<size_t>(bytes));
    if (status != cudaSuccess) cudaGetLastError();  // otherwise the next launch would report it
    if (status == cudaErrorMemoryAllocation)
      throw Error(ErrorKind::run, fmt::format("the device cannot give {} in one piece", format_bytes(bytes)),
                  "end other processes on the device, or give a smaller --memory");
    check(status, "reserving the arena");
    return static_cast<std::byte*>(memory);
  }
  std::byte* allocate_pinned(int64_t bytes) override {
    void* memory = nullptr;
    check(cudaMallocHost(&memory, static_cast<size_t>(bytes)), "reserving page-locked host memory");
    return static_cast<std::byte*>(memory);
  }
  void release(std::byte* device) noexcept override { cudaFree(device); }
  void release_pinned(std::byte* host) noexcept override { cudaFreeHost(host); }

  CudaStream create_stream() override {
    cudaStream_t stream = nullptr;
    check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "making a stream");
    return stream;
  }
  // A host thread that waits for the event sleeps: copying threads wait for kernels.
  CudaEvent create_event() override {
    cudaEvent_t event = nullptr;
    check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming | cudaEventBlockingSync), "making an event");
    return event;
  }
  void destroy(CudaStream stream) noexcept override { cudaStreamDestroy(stream); }
  void destroy(CudaEvent event) noexcept override { cudaEventDestroy(event); }

  void record(CudaEvent event, CudaStream stream) override { check(cudaEventRecord(event, stream), "an event"); }
  void wait(CudaStream stream, CudaEvent event) override {
    check(cudaStreamWaitEvent(stream, event, 0), "waiting for an event");
  }
  void synchronize(CudaStream stream) override { check(cudaStreamSynchronize(stream), "the work on the device"); }
  void synchronize(CudaEvent event) override { check(cudaEventSynchronize(event), "the work on the device"); }
  void copy(void* to, const void* from, int64_t bytes, CudaStream stream) override {
    check(cudaMemcpyAsync(to, from, static_cast<size_t>(bytes), cudaMemcpyDefault, stream), "a copy");
  }
  void fill(void* at, int value, int64_t bytes, CudaStream stream) override {
    check(cudaMemsetAsync(at, value, static_cast<size_t>(bytes), stream), "a fill");
  }

  void begin_capture(CudaStream stream) override { cuda::begin_capture(stream, "capturing kernels"); }
  CudaGraph end_capture(CudaStream stream) override { return cuda::end_capture(stream, "making a CUDA graph"); }
  void abandon_capture(CudaStream stream) noexcept override { cuda::abandon_capture(stream); }
  void launch(CudaGraph graph, CudaStream stream) override { check(cudaGraphLaunch(graph, stream), "a CUDA graph"); }
  void destroy(CudaGraph graph) noexcept override { cudaGraphExecDestroy(graph); }

 private:
  int index_;
};

// 12040 gives "12.4".
std::string version_text(int version) { return fmt::format("{}.{}", version / 1000, version % 1000 / 10); }

// There is no driver, or it is for an older CUDA than this program was built with.
[[noreturn]] void refuse_driver(int index) {
  int driver = 0, runtime = 0;
  if (cudaDriverGetVersion(&driver) != cudaSuccess || cudaRuntimeGetVersion(&runtime) != cudaSuccess || driver == 0)
    throw Error(ErrorKind::usage, fmt::format("--device cuda:{}: there is no NVIDIA driver on this machine", index),
                "install it, or use --device cpu");
  throw Error(ErrorKind::usage,
              fmt::format("--device cuda:{}: the driver is for CUDA {}, this program for {}", index,
                          version_text(driver), version_text(runtime)),
              "update NVIDIA's driver, or build with a toolkit that it can run");
}

}  // namespace

std::unique_ptr<CudaRuntime> open_cuda_runtime(int index) {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status == cudaErrorInsufficientDriver) refuse_driver(index);
  if (status != cudaSuccess)
    throw Error(ErrorKind::usage, fmt::format("--device cuda:{}: {}", index, cudaGetErrorString(status)),
                "install NVIDIA's driver, or use --device cpu");
  if (index >= count)
    throw Error(ErrorKind::usage, fmt::format("--device cuda:{}: this machine has {} CUDA devices", index, count),
                count > 0 ? fmt::format("use cuda:0 to cuda:{}", count - 1) : "use --device cpu");
  return std::make_unique<DriverRuntime>(index);
}

}  // namespace headroom
