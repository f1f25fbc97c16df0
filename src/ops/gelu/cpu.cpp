// CPU kernels of gelu and gelu_grad.
#include "base/threads.h"
#include "ops/gelu/formulas.h"
#include "ops/gelu/simd.h"
#include "ops/stream/scalar_access.h"

namespace headroom {
namespace {

// gelu (one input) and gelu_grad (two) alike.
std::unique_ptr<CpuKernel> simd(const KernelSpec& spec) {
  return kernel_of([tanh = spec.attrs.text("approximate", "none") == "tanh"](const KernelCall& call) {
    const void* dy = call.inputs.size() == 2 ? call.inputs[1].data : nullptr;
    const GeluArrays arrays{call.inputs[0].data, dy, call.outputs[0].data, call.outputs[0].dtype, tanh};
    parallel_for(call.outputs[0].count(), 2048,
                 [&](int64_t begin, int64_t end, int) { gelu_range(arrays, begin, end); });
  });
}

std::unique_ptr<CpuKernel> reference(const KernelSpec& spec) {
  return kernel_of([tanh = spec.attrs.text("approximate", "none") == "tanh"](const KernelCall& call) {
    const bool grad = call.inputs.size() == 2;
    for (int64_t i = 0; i < call.outputs[0].count(); ++i) {
      const double x = read_element(call.inputs[0], i);
      const ActivationAt at = tanh ? gelu_by_tanh(x) : gelu_exact(x);
      write_element(call.outputs[0], i, grad ? read_element(call.inputs[1], i) * at.slope : at.value);
    }
  });
}

}  // namespace

void register_gelu_cpu(CpuKernels& kernels) {
  kernels.add("gelu", simd_and_reference<simd, reference>());
  kernels.add("gelu_grad", simd_and_reference<simd, reference>());
}

}  // namespace headroom
