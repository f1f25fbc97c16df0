// CPU kernels of swiglu and swiglu_grad.
#include "base/threads.h"
#include "ops/gelu/formulas.h"
#include "ops/stream/scalar_access.h"
#include "ops/swiglu/simd.h"

namespace headroom {
namespace {

constexpr int64_t kGrain = 2048;

std::unique_ptr<CpuKernel> forward_simd(const KernelSpec& spec) {
  return kernel_of([activation = gate_activation(spec.attrs)](const KernelCall& call) {
    SwigluArrays arrays;
    arrays.gate = call.inputs[0].data;
    arrays.up = call.inputs[1].data;
    arrays.h = call.outputs[0].data;
    arrays.dtype = call.outputs[0].dtype;
    arrays.activation = activation;
    parallel_for(call.outputs[0].count(), kGrain,
                 [&](int64_t begin, int64_t end, int) { swiglu_range(arrays, begin, end); });
  });
}

ActivationAt activate(GateActivation activation, double x) {
  if (activation == GateActivation::silu) return silu(x);
  return activation == GateActivation::gelu ? gelu_exact(x) : gelu_by_tanh(x);
}

std::unique_ptr<CpuKernel> forward_reference(const KernelSpec& spec) {
  return kernel_of([activation = gate_activation(spec.attrs)](const KernelCall& call) {
    for (int64_t i = 0; i < call.outputs[0].count(); ++i)
      write_element(call.outputs[0], i,
                    activate(activation, read_element(call.inputs[0], i)).value * read_element(call.inputs[1], i));
  });
}

std::unique_ptr<CpuKernel> grad_simd(const KernelSpec& spec) {
  return kernel_of([activation = gate_activation(spec.attrs)](const KernelCall& call) {
    SwigluArrays arrays;
    arrays.gate = call.inputs[0].data;
    arrays.up = call.inputs[1].data;
    arrays.dh = call.inputs[2].data;
    arrays.dgate = call.outputs[0].data;
    arrays.dup = call.outputs[1].data;
    arrays.dtype = call.outputs[0].dtype;
    arrays.activation = activation;
    parallel_for(call.outputs[0].count(), kGrain,
                 [&](int64_t begin, int64_t end, int) { swiglu_range(arrays, begin, end); });
  });
}

std::unique_ptr<CpuKernel> grad_reference(const KernelSpec& spec) {
  return kernel_of([activation = gate_activation(spec.attrs)](const KernelCall& call) {
    for (int64_t i = 0; i < call.outputs[0].count(); ++i) {
      const ActivationAt at = activate(activation, read_element(call.inputs[0], i));
      const double up = read_element(call.inputs[1], i);
      const double dh = read_element(call.inputs[2], i);
      write_element(call.outputs[0], i, dh * up * at.slope);
      write_element(call.outputs[1], i, dh * at.value);
    }
  });
}

}  // namespace

void register_swiglu_cpu(CpuKernels& kernels) {
  kernels.add("swiglu", simd_and_reference<forward_simd, forward_reference>());
  kernels.add("swiglu_grad", simd_and_reference<grad_simd, grad_reference>());
}

}  // namespace headroom
