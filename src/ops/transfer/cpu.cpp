// CPU kernels of transfers. Device and host are the same memory: copies are complete when their start returns, and so
// are the collectives, which the host's process group runs. Tokens are written as 1.
#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/threads.h"
#include "ops/stream/scalar_access.h"

namespace headroom {
namespace {

void complete(const KernelCall& call) { call.outputs[1].as<int32_t>()[0] = 1; }

HostPort& group(const KernelCall& call) {
  HR_CHECK(call.host, "a collective runs without a host");
  return *call.host;
}

int64_t bytes_of(const TensorView& view) { return view.count() * dtype_bytes(view.dtype); }

// Copies on the team; does nothing if both are the same storage.
void copy_bytes(const TensorView& from, const TensorView& to, int64_t bytes) {
  if (from.data == to.data) return;
  parallel_for(bytes, 1 << 16, [&](int64_t begin, int64_t end, int) {
    std::memcpy(to.as<std::byte>() + begin, from.as<std::byte>() + begin, static_cast<size_t>(end - begin));
  });
}

KernelOffer offer_copy(const KernelSpec& spec, const DeviceFacts&) {
  if (spec.attrs.text("to") == "disk" || spec.attrs.text("from") == "disk")
    return {nullptr, "the CPU cannot address the disk"};
  return {kernel_of([bytes = storage_bytes(spec.inputs[0])](const KernelCall& call) {
            copy_bytes(call.inputs[0], call.outputs[0], bytes);
            complete(call);
          }),
          {}};
}

std::unique_ptr<CpuKernel> wait_kernel(const KernelSpec&) {
  return kernel_of([](const KernelCall&) {});
}

std::unique_ptr<CpuKernel> gather_kernel(const KernelSpec&) {
  return kernel_of([](const KernelCall& call) {
    const TensorView &local = call.inputs[0], &full = call.outputs[0];
    group(call).all_gather({local.as<const std::byte>(), static_cast<size_t>(bytes_of(local))},
                           {full.as<std::byte>(), static_cast<size_t>(bytes_of(full))});
    complete(call);
  });
}

std::unique_ptr<CpuKernel> scatter_kernel(const KernelSpec&) {
  return kernel_of([](const KernelCall& call) {
    const TensorView &full = call.inputs[0], &local = call.outputs[0];
    group(call).reduce_scatter({full.as<const float>(), static_cast<size_t>(full.count())},
                               {local.as<float>(), static_cast<size_t>(local.count())});
    complete(call);
  });
}

std::unique_ptr<CpuKernel> reduce_kernel(const KernelSpec&) {
  return kernel_of([](const KernelCall& call) {
    const TensorView& y = call.outputs[0];
    copy_bytes(call.inputs[0], y, bytes_of(y));
    const size_t count = static_cast<size_t>(y.count());
    if (y.dtype == DType::f64)
      group(call).all_reduce_f64({y.as<double>(), count});
    else
      group(call).all_reduce({y.as<float>(), count});
    complete(call);
  });
}

}  // namespace

void register_transfer_cpu(CpuKernels& kernels) {
  kernels.add("copy_start", {{"reference", offer_copy}});
  kernels.add("wait", reference_only<wait_kernel>());
  kernels.add("all_gather_start", reference_only<gather_kernel>());
  kernels.add("reduce_scatter_start", reference_only<scatter_kernel>());
  kernels.add("all_reduce_start", reference_only<reduce_kernel>());
}

}  // namespace headroom
