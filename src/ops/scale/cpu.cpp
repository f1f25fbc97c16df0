// CPU kernels of scale.
#include "base/threads.h"
#include "ops/scale/simd.h"
#include "ops/stream/scalar_access.h"

namespace headroom {
namespace {

std::unique_ptr<CpuKernel> simd(const KernelSpec& spec) {
  return kernel_of([factor = static_cast<float>(spec.attrs.real("factor"))](const KernelCall& call) {
    const TensorView &x = call.inputs[0], &y = call.outputs[0];
    parallel_for(y.count(), 4096,
                 [&](int64_t begin, int64_t end, int) { scale_range(x.data, y.data, y.dtype, factor, begin, end); });
  });
}

std::unique_ptr<CpuKernel> reference(const KernelSpec& spec) {
  return kernel_of([factor = spec.attrs.real("factor")](const KernelCall& call) {
    for (int64_t i = 0; i < call.outputs[0].count(); ++i)
      write_element(call.outputs[0], i, factor * read_element(call.inputs[0], i));
  });
}

}  // namespace

void register_scale_cpu(CpuKernels& kernels) { kernels.add("scale", simd_and_reference<simd, reference>()); }

}  // namespace headroom
