// CPU kernels of next_batch, allocate and host_stage.
#include "base/error.h"
#include "ops/host/operands.h"
#include "ops/stream/scalar_access.h"

namespace headroom {
namespace {

std::span<int32_t> elements(const TensorView& view) { return {view.as<int32_t>(), static_cast<size_t>(view.count())}; }

std::unique_ptr<CpuKernel> batch_kernel(const KernelSpec& spec) {
  const bool types = spec.attrs.integer("types") != 0, lengths = spec.attrs.integer("lengths") != 0;
  const bool segments = spec.attrs.integer("segments") != 0;
  return kernel_of([types, lengths, segments](const KernelCall& call) {
    HR_CHECK(call.host, "next_batch runs without a host");
    const TensorView &ids = call.outputs[BatchOutputs::ids], &labels = call.outputs[BatchOutputs::labels];
    call.host->next_batch(call.trip, elements(ids), elements(labels), ids.dims[0], ids.dims[1]);
    if (types)
      call.host->next_types(call.trip, elements(call.outputs[BatchOutputs::optional]), ids.dims[0], ids.dims[1]);
    if (lengths)
      call.host->next_lengths(call.trip, elements(call.outputs[BatchOutputs::optional + size_t{types}]), ids.dims[0],
                              ids.dims[1]);
    if (segments) call.host->next_segments(call.trip, elements(call.outputs.back()), ids.dims[0], ids.dims[1]);
  });
}

// Only reserves space: nothing to compute.
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
