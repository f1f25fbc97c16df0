// CPU kernels of select_last and select_rows.
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

std::unique_ptr<CpuKernel> select_rows_kernel(const KernelSpec&) {
  return kernel_of([](const KernelCall& call) {
    const TensorView &x = call.inputs[0], &index = call.inputs[1];
    const int64_t bytes = x.dims[2] * dtype_bytes(x.dtype);
    for (int64_t i = 0; i < index.dims[0]; ++i) {
      const int64_t wanted = index.as<int32_t>()[i], row = wanted >= 0 && wanted < x.dims[0] ? wanted : 0;
      std::memcpy(call.outputs[0].as<std::byte>() + i * bytes, x.as<std::byte>() + row * bytes,
                  static_cast<size_t>(bytes));
    }
  });
}

}  // namespace

void register_select_last_cpu(CpuKernels& kernels) {
  kernels.add("select_last", reference_only<select_kernel>());
  kernels.add("select_rows", reference_only<select_rows_kernel>());
}

}  // namespace headroom
