// CPU kernels of cast.
#include "ops/cast/convert.h"
#include "ops/stream/scalar_access.h"

namespace headroom {
namespace {

std::unique_ptr<CpuKernel> cast_simd(const KernelSpec&) {
  return kernel_of([](const KernelCall& call) {
    const TensorView &x = call.inputs[0], &y = call.outputs[0];
    convert_in_parallel(x.data, x.dtype, y.data, y.dtype, x.count());
  });
}

std::unique_ptr<CpuKernel> cast_reference(const KernelSpec&) {
  return kernel_of([](const KernelCall& call) {
    for (int64_t i = 0; i < call.inputs[0].count(); ++i)
      write_element(call.outputs[0], i, read_element(call.inputs[0], i));
  });
}

}  // namespace

void register_cast_cpu(CpuKernels& kernels) { kernels.add("cast", simd_and_reference<cast_simd, cast_reference>()); }

}  // namespace headroom
