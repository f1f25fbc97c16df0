// CPU kernels of softcap and softcap_grad.
#include <cmath>

#include "base/threads.h"
#include "ops/softcap/simd.h"
#include "ops/stream/scalar_access.h"

namespace headroom {
namespace {

// softcap (one input) and softcap_grad (two) alike.
std::unique_ptr<CpuKernel> simd(const KernelSpec& spec) {
  return kernel_of([cap = static_cast<float>(spec.attrs.real("cap"))](const KernelCall& call) {
    const void* dy = call.inputs.size() == 2 ? call.inputs[1].data : nullptr;
    const SoftcapArrays arrays{call.inputs[0].data, dy, call.outputs[0].data, call.outputs[0].dtype, cap};
    parallel_for(call.outputs[0].count(), 2048,
                 [&](int64_t begin, int64_t end, int) { softcap_range(arrays, begin, end); });
  });
}

std::unique_ptr<CpuKernel> reference(const KernelSpec& spec) {
  return kernel_of([cap = spec.attrs.real("cap")](const KernelCall& call) {
    const bool grad = call.inputs.size() == 2;
    for (int64_t i = 0; i < call.outputs[0].count(); ++i) {
      const double part = read_element(call.inputs[0], i) / cap;
      write_element(call.outputs[0], i,
                    grad ? read_element(call.inputs[1], i) * (1 - part * part) : cap * std::tanh(part));
    }
  });
}

}  // namespace

void register_softcap_cpu(CpuKernels& kernels) {
  kernels.add("softcap", simd_and_reference<simd, reference>());
  kernels.add("softcap_grad", simd_and_reference<simd, reference>());
}

}  // namespace headroom
