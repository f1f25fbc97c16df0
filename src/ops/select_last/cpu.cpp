// CPU kernel of select_last.
#include <algorithm>
#include <cstring>

#include "ops/stream/scalar_access.h"

namespace headroom {
namespace {

std::unique_ptr<CpuKernel> select_kernel(const KernelSpec&) {
  return kernel_of([](const KernelCall& call) {
    const TensorView& x = call.inputs[0];
    const int64_t row = std::clamp<int64_t>(call.inputs[1].as<int32_t>()[0], 0, x.dims[1] - 1);
    const int64_t bytes = x.dims[2] * dtype_bytes(x.dtype);
    std::memcpy(call.outputs[0].data, x.as<std::byte>() + row * bytes, static_cast<size_t>(bytes));
  });
}

}  // namespace

void register_select_last_cpu(CpuKernels& kernels) { kernels.add("select_last", reference_only<select_kernel>()); }

}  // namespace headroom
