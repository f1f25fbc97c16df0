// CPU kernels of swiglu and swiglu_grad.
#include "base/threads.h"
#include "ops/gelu/formulas.h"
#include "ops/stream/scalar_access.h"
#include "ops/swiglu/bf16.h"
#include "ops/swiglu/simd.h"

namespace headroom {
namespace {

constexpr int64_t kGrain = 2048;

using Range = void (*)(const SwigluArrays&, int64_t begin, int64_t end);

template <Range range>
std::unique_ptr<CpuKernel> forward(const KernelSpec& spec) {
  return kernel_of([activation = gate_activation(spec.attrs)](const KernelCall& call) {
    SwigluArrays arrays;
    arrays.gate = call.inputs[0].data;
    arrays.up = call.inputs[1].data;
    arrays.h = call.outputs[0].data;
    arrays.dtype = call.outputs[0].dtype;
    arrays.activation = activation;
    parallel_for(call.outputs[0].count(), kGrain, [&](int64_t begin, int64_t end, int) { range(arrays, begin, end); });
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

template <Range range>
std::unique_ptr<CpuKernel> grad(const KernelSpec& spec) {
  return kernel_of([activation = gate_activation(spec.attrs)](const KernelCall& call) {
    SwigluArrays arrays;
    arrays.gate = call.inputs[0].data;
    arrays.up = call.inputs[1].data;
    arrays.dh = call.inputs[2].data;
    arrays.dgate = call.outputs[0].data;
    arrays.dup = call.outputs[1].data;
    arrays.dtype = call.outputs[0].dtype;
    arrays.activation = activation;
    parallel_for(call.outputs[0].count(), kGrain, [&](int64_t begin, int64_t end, int) { range(arrays, begin, end); });
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

template <std::unique_ptr<CpuKernel> (*make)(const KernelSpec&)>
KernelOffer bf16_kernel(const KernelSpec& spec, const DeviceFacts& facts) {
  if (facts.isa < 513) return {nullptr, "the machine has no AVX512_BF16"};
  if (spec.outputs[0].dtype != DType::bf16 || gate_activation(spec.attrs) != GateActivation::silu)
    return {nullptr, "takes bf16 and silu"};
  return {make(spec), {}};
}

void add(CpuKernels& kernels, std::string_view op, KernelFactory bf16, std::vector<KernelCandidate> others) {
  others.insert(others.begin(), {"avx512_bf16", bf16});
  kernels.add(op, std::move(others));
}

}  // namespace

void register_swiglu_cpu(CpuKernels& kernels) {
  add(kernels, "swiglu", bf16_kernel<forward<swiglu_bf16_range>>,
      simd_and_reference<forward<swiglu_range>, forward_reference>());
  add(kernels, "swiglu_grad", bf16_kernel<grad<swiglu_bf16_range>>,
      simd_and_reference<grad<swiglu_range>, grad_reference>());
}

}  // namespace headroom
