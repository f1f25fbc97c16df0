// CPU kernels of add.
#include "base/threads.h"
#include "ops/add/simd.h"
#include "ops/stream/scalar_access.h"

namespace headroom {
namespace {

std::unique_ptr<CpuKernel> add_simd(const KernelSpec&) {
  return kernel_of([](const KernelCall& call) {
    const TensorView &a = call.inputs[0], &b = call.inputs[1], &y = call.outputs[0];
    const int64_t bytes = dtype_bytes(a.dtype);
    parallel_for(a.count(), 4096, [&](int64_t begin, int64_t end, int) {
      add_floats(a.as<std::byte>() + begin * bytes, b.as<std::byte>() + begin * bytes,
                 y.as<std::byte>() + begin * bytes, a.dtype, end - begin);
    });
  });
}

std::unique_ptr<CpuKernel> add_reference(const KernelSpec&) {
  return kernel_of([](const KernelCall& call) {
    for (int64_t i = 0; i < call.outputs[0].count(); ++i)
      write_element(call.outputs[0], i, read_element(call.inputs[0], i) + read_element(call.inputs[1], i));
  });
}

}  // namespace

void register_add_cpu(CpuKernels& kernels) { kernels.add("add", simd_and_reference<add_simd, add_reference>()); }

}  // namespace headroom
