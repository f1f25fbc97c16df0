// CUDA kernels of softcap and softcap_grad.
#include "ops/cuda/kernel.h"
#include "ops/softcap/cuda_kernels.h"

namespace headroom {
namespace {

std::unique_ptr<CudaKernel> make_forward(const KernelSpec& spec, const CudaContext& context) {
  return cuda_kernel_of([type = float_type(spec.outputs[0].dtype), cap = static_cast<float>(spec.attrs.real("cap")),
                         count = count_of(spec.outputs[0]),
                         multiprocessors = context.multiprocessors](const KernelCall& call, CudaStream stream) {
    cuda::launch_softcap(type, cap, call.inputs[0].data, call.outputs[0].data, count, multiprocessors, stream);
  });
}

std::unique_ptr<CudaKernel> make_grad(const KernelSpec& spec, const CudaContext& context) {
  return cuda_kernel_of([type = float_type(spec.outputs[0].dtype), cap = static_cast<float>(spec.attrs.real("cap")),
                         count = count_of(spec.outputs[0]),
                         multiprocessors = context.multiprocessors](const KernelCall& call, CudaStream stream) {
    cuda::launch_softcap_grad(type, cap, call.inputs[0].data, call.inputs[1].data, call.outputs[0].data, count,
                              multiprocessors, stream);
  });
}

}  // namespace

void register_softcap_cuda(CudaKernels& kernels) {
  kernels.add("softcap", one_cuda_kernel<make_forward>());
  kernels.add("softcap_grad", one_cuda_kernel<make_grad>());
}

}  // namespace headroom
