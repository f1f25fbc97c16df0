// The CUDA device's interface to NVIDIA's runtime: the real one (driver_runtime.cpp), or a fake in tests over host
// memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "ops/cuda/launch.h"

struct CUevent_st;
struct CUgraphExec_st;

namespace headroom {

using CudaEvent = CUevent_st*;      // cudaEvent_t without its header
using CudaGraph = CUgraphExec_st*;  // cudaGraphExec_t

struct CudaProperties {
  std::string bus_id;        // PCI: "0000:1B:00.0"
  std::string name;          // "NVIDIA H100 80GB HBM3"
  int capability = 0;        // 10 major + minor
  int multiprocessors = 1;   //
  int64_t memory_bytes = 0;  // of the device, as reported by the runtime
  int64_t shared_bytes = 0;  // maximum dynamic shared memory of a block
};

// Bytes of the whole device, for all processes.
struct CudaMemory {
  int64_t free_bytes = 0;
  int64_t total_bytes = 0;
};

// One device. Calls that fail throw Error(run) with the runtime's message. Created and used by one thread at a time.
// After enter_thread(), other threads may record, wait, synchronize and copy, each on its own streams.
class CudaRuntime {
 public:
  virtual ~CudaRuntime() = default;
  virtual void enter_thread() = 0;  // makes the device current for the calling thread
  virtual CudaProperties properties() = 0;
  virtual CudaMemory memory() = 0;

  virtual std::byte* allocate(int64_t bytes) = 0;         // device memory
  virtual std::byte* allocate_pinned(int64_t bytes) = 0;  // page-locked host memory
  virtual void release(std::byte* device) noexcept = 0;
  virtual void release_pinned(std::byte* host) noexcept = 0;

  virtual CudaStream create_stream() = 0;
  virtual CudaEvent create_event() = 0;
  virtual void destroy(CudaStream stream) noexcept = 0;
  virtual void destroy(CudaEvent event) noexcept = 0;

  virtual void record(CudaEvent event, CudaStream stream) = 0;
  virtual void wait(CudaStream stream, CudaEvent event) = 0;  // the stream waits
  virtual void synchronize(CudaStream stream) = 0;            // the host waits
  virtual void synchronize(CudaEvent event) = 0;              // returns at once for an event that was never recorded
  // Copies between pinned host memory and the device in either direction, or within the device.
  virtual void copy(void* to, const void* from, int64_t bytes, CudaStream stream) = 0;
  virtual void fill(void* at, int value, int64_t bytes, CudaStream stream) = 0;

  // Between begin_capture and end_capture, both called by one thread, work queued on the stream is recorded and does
  // not run. end_capture returns it as a graph on the device, ready to be launched; abandon_capture discards it.
  virtual void begin_capture(CudaStream stream) = 0;
  virtual CudaGraph end_capture(CudaStream stream) = 0;
  virtual void abandon_capture(CudaStream stream) noexcept = 0;
  virtual void launch(CudaGraph graph, CudaStream stream) = 0;
  virtual void destroy(CudaGraph graph) noexcept = 0;
};

// Device `index` of this machine. Throws Error(usage) with the reason when this build has no CUDA, or there is no
// driver or no such device; Error(run) when the device does not start.
std::unique_ptr<CudaRuntime> open_cuda_runtime(int index);

}  // namespace headroom
