// The CUDA device over host memory: allocations, refusals, and the window.
#include <gtest/gtest.h>

#include "base/error.h"
#include "cuda_shim/host_runtime.h"
#include "device/cuda/cuda_device.h"
#include "device/cuda/open_cuda.h"
#include "engine/budget.h"
#include "ops/cuda/capabilities.h"
#include "ops/registry.h"

namespace headroom {
namespace {

DeviceFacts gpu_facts() {
  DeviceFacts facts;
  facts.device = "cuda";
  facts.capabilities = of_compute_capability(80);
  facts.alignment = 256;
  return facts;
}

KernelSpec add_spec() {
  const ConcreteType type{DType::f32, {100}, {}};
  return {"add", {}, {type, type}, {type}, 0};
}

TEST(CudaDevice, MakesOneAllocationAndRunsKernelsInIt) {
  const std::unique_ptr<Device> device = make_cuda_device(make_host_runtime(), gpu_facts());
  const std::unique_ptr<DeviceKernel> kernel = device->prepare(add_spec());
  EXPECT_EQ(host_runtime_allocations(), 0);
  std::byte* const arena = device->reserve_arena(Tier::device, 4096);
  EXPECT_EQ(host_runtime_bytes(), 4096);
  EXPECT_FALSE(device->host_visible());

  const std::span<std::byte> window = device->host_window();
  float* const values = reinterpret_cast<float*>(window.data());
  for (int i = 0; i < 100; ++i) values[i] = static_cast<float>(i);
  device->copy(arena, window.data(), 400, 0);
  const std::vector<int64_t> dims{100};
  const TensorView a{arena, DType::f32, dims}, b{arena, DType::f32, dims}, y{arena + 1024, DType::f32, dims};
  const TensorView inputs[] = {a, b}, outputs[] = {y};
  device->launch(*kernel, {inputs, outputs, {}}, 0);
  device->copy(window.data(), arena + 1024, 400, 0);
  device->synchronize(0);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(values[i], 2.0f * static_cast<float>(i));
  EXPECT_EQ(host_runtime_allocations(), 1);
}

TEST(CudaDevice, SaysWhichLibrariesAreMissing) {
  CudaLibraries libraries;
  libraries.missing = "products by our own kernels";
  EXPECT_EQ(make_cuda_device(make_host_runtime(), gpu_facts(), std::move(libraries))->remark(),
            "products by our own kernels");
  EXPECT_EQ(make_cuda_device(make_host_runtime(), gpu_facts())->remark(), "");
}

// The plan books the process's context, so memory that asking has taken counts as free, unless its size is unknown.
TEST(CudaDevice, TheDefaultBudgetIsWhatWasFreeBeforeTheContext) {
  const HostRuntimeLimits limits;
  EXPECT_EQ(cuda_memory(0).free_bytes, limits.total_bytes - kHostRuntimeContext);
  EXPECT_EQ(default_budget("cuda:0", ""), limits.total_bytes);
  HostRuntimeLimits silent;
  silent.context_bytes = kHostRuntimeContext;
  const DeviceMemory untold = memory_without_arena(*make_host_runtime(silent), NvmlTable{});
  EXPECT_EQ(untold.free_bytes, silent.total_bytes - kHostRuntimeContext);
  EXPECT_EQ(untold.outside_arena_bytes, std::nullopt);
}

// Only the driver's figure for this process counts; without one nothing is known.
TEST(CudaDevice, TellsWhatThisProcessHoldsBesideItsArena) {
  HostRuntimeLimits limits;
  limits.context_bytes = 100 << 20;
  limits.held_by_others = 1 << 30;
  limits.stream_bytes = 2 << 20;
  CudaLibraries telling, of_others, silent;
  telling.nvml = telling_nvml();
  of_others.nvml = telling_nvml(true);
  const std::unique_ptr<Device> device = make_cuda_device(make_host_runtime(limits), gpu_facts(), std::move(telling));
  EXPECT_EQ(device->memory().outside_arena_bytes, 102 << 20);
  device->create_stream(Tier::host);
  device->reserve_arena(Tier::device, 1 << 20);
  EXPECT_EQ(device->memory().outside_arena_bytes, 104 << 20);
  EXPECT_EQ(device->memory().free_bytes, limits.total_bytes - (int64_t{1} << 30) - (105 << 20));
  for (CudaLibraries* libraries : {&of_others, &silent})
    EXPECT_EQ(
        make_cuda_device(make_host_runtime(limits), gpu_facts(), std::move(*libraries))->memory().outside_arena_bytes,
        std::nullopt);
}

TEST(CudaDevice, RefusesAnArenaThatOthersLeaveNoRoomFor) {
  HostRuntimeLimits limits;
  limits.total_bytes = 1 << 20;
  limits.held_by_others = 1 << 19;
  const std::unique_ptr<Device> device = make_cuda_device(make_host_runtime(limits), gpu_facts());
  try {
    device->reserve_arena(Tier::device, 1 << 20);
    FAIL() << "no refusal";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::does_not_fit);
    EXPECT_NE(std::string(error.what()).find("512 KiB free of 1.00 MiB"), std::string::npos) << error.what();
  }
}

TEST(CudaDevice, RefusesAPlanForANewerDevice) {
  HostRuntimeLimits limits;
  limits.capability = 75;
  EXPECT_THROW(make_cuda_device(make_host_runtime(limits), gpu_facts()), Error);
}

}  // namespace
}  // namespace headroom
