// CPU kernels of next_batch, allocate and host_stage.
#include "base/error.h"
#include "ops/stream/scalar_access.h"

namespace headroom {
namespace {

std::unique_ptr<CpuKernel> batch_kernel(const KernelSpec&) {
  return kernel_of([](const KernelCall& call) {
    HR_CHECK(call.host, "next_batch runs without a host");
    const TensorView &ids = call.outputs[0], &labels = call.outputs[1];
    const size_t count = static_cast<size_t>(ids.count());
    call.host->next_batch(call.trip, {ids.as<int32_t>(), count}, {labels.as<int32_t>(), count}, ids.dims[0],
                          ids.dims[1]);
    if (call.outputs.size() == 2) return;
    const TensorView& starts = call.outputs[2];
    call.host->next_segments(call.trip, {starts.as<int32_t>(), count}, ids.dims[0], ids.dims[1]);
  });
}

// Space alone: there is nothing to do.
std::unique_ptr<CpuKernel> space_kernel(const KernelSpec&) {
  return kernel_of([](const KernelCall&) {});
}

}  // namespace

void register_host_cpu(CpuKernels& kernels) {
  kernels.add("next_batch", reference_only<batch_kernel>());
  kernels.add("allocate", reference_only<space_kernel>());
  kernels.add("host_stage", reference_only<space_kernel>());
}

}  // namespace headroom
