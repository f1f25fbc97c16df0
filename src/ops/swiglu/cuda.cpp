// CUDA kernels of swiglu and swiglu_grad.
#include "ops/cuda/kernel.h"
#include "ops/swiglu/activation.h"
#include "ops/swiglu/cuda_kernels.h"

namespace headroom {
namespace {

cuda::GateFunction gate_function(const Attrs& attrs) {
  const GateActivation activation = gate_activation(attrs);
  if (activation == GateActivation::silu) return cuda::GateFunction::silu;
  return activation == GateActivation::gelu ? cuda::GateFunction::gelu : cuda::GateFunction::gelu_tanh;
}

std::unique_ptr<CudaKernel> make_forward(const KernelSpec& spec, const CudaContext& context) {
  return cuda_kernel_of([type = float_type(spec.outputs[0].dtype), function = gate_function(spec.attrs),
                         count = count_of(spec.outputs[0]),
                         multiprocessors = context.multiprocessors](const KernelCall& call, CudaStream stream) {
    cuda::launch_swiglu(type, function, call.inputs[0].data, call.inputs[1].data, call.outputs[0].data, count,
                        multiprocessors, stream);
  });
}

std::unique_ptr<CudaKernel> make_grad(const KernelSpec& spec, const CudaContext& context) {
  return cuda_kernel_of([type = float_type(spec.outputs[0].dtype), function = gate_function(spec.attrs),
                         count = count_of(spec.outputs[0]),
                         multiprocessors = context.multiprocessors](const KernelCall& call, CudaStream stream) {
    cuda::launch_swiglu_grad(type, function, call.inputs[0].data, call.inputs[1].data, call.inputs[2].data,
                             call.outputs[0].data, call.outputs[1].data, count, multiprocessors, stream);
  });
}

}  // namespace

void register_swiglu_cuda(CudaKernels& kernels) {
  kernels.add("swiglu", one_cuda_kernel<make_forward>());
  kernels.add("swiglu_grad", one_cuda_kernel<make_grad>());
}

}  // namespace headroom
