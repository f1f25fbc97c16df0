// CUDA kernels of gelu and gelu_grad.
#include "ops/cuda/kernel.h"
#include "ops/gelu/cuda_kernels.h"

namespace headroom {
namespace {

bool by_tanh(const Attrs& attrs) { return attrs.text("approximate", "none") == "tanh"; }

std::unique_ptr<CudaKernel> make_forward(const KernelSpec& spec, const CudaContext& context) {
  return cuda_kernel_of([type = float_type(spec.outputs[0].dtype), tanh = by_tanh(spec.attrs),
                         count = count_of(spec.outputs[0]),
                         multiprocessors = context.multiprocessors](const KernelCall& call, CudaStream stream) {
    cuda::launch_gelu(type, tanh, call.inputs[0].data, call.outputs[0].data, count, multiprocessors, stream);
  });
}

std::unique_ptr<CudaKernel> make_grad(const KernelSpec& spec, const CudaContext& context) {
  return cuda_kernel_of([type = float_type(spec.outputs[0].dtype), tanh = by_tanh(spec.attrs),
                         count = count_of(spec.outputs[0]),
                         multiprocessors = context.multiprocessors](const KernelCall& call, CudaStream stream) {
    cuda::launch_gelu_grad(type, tanh, call.inputs[0].data, call.inputs[1].data, call.outputs[0].data, count,
                           multiprocessors, stream);
  });
}

}  // namespace

void register_gelu_cuda(CudaKernels& kernels) {
  kernels.add("gelu", one_cuda_kernel<make_forward>());
  kernels.add("gelu_grad", one_cuda_kernel<make_grad>());
}

}  // namespace headroom
