// CPU kernels of gelu and gelu_grad.
#include <cmath>
#include <numbers>

#include "base/threads.h"
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

struct ValueAndSlope {
  double value = 0;
  double slope = 0;
};

ValueAndSlope exact(double x) {
  const double integral = 0.5 * std::erfc(-x / std::numbers::sqrt2);
  const double density = std::exp(-x * x / 2) * std::numbers::inv_sqrtpi / std::numbers::sqrt2;
  return {x * integral, integral + x * density};
}

ValueAndSlope by_tanh(double x) {
  const double root = std::sqrt(2 / std::numbers::pi);
  const double t = std::tanh(root * (x + 0.044715 * x * x * x));
  return {0.5 * x * (1 + t), 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * root * (1 + 3 * 0.044715 * x * x)};
}

std::unique_ptr<CpuKernel> reference(const KernelSpec& spec) {
  return kernel_of([tanh = spec.attrs.text("approximate", "none") == "tanh"](const KernelCall& call) {
    const bool grad = call.inputs.size() == 2;
    for (int64_t i = 0; i < call.outputs[0].count(); ++i) {
      const double x = read_element(call.inputs[0], i);
      const ValueAndSlope at = tanh ? by_tanh(x) : exact(x);
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
