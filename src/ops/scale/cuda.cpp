// CUDA kernel of scale.
#include "ops/cuda/kernel.h"
#include "ops/scale/cuda_kernels.h"

namespace headroom {
namespace {

std::unique_ptr<CudaKernel> make_scale(const KernelSpec& spec, const CudaContext& context) {
  return cuda_kernel_of([type = float_type(spec.outputs[0].dtype),
                         factor = static_cast<float>(spec.attrs.real("factor")), count = count_of(spec.outputs[0]),
                         multiprocessors = context.multiprocessors](const KernelCall& call, CudaStream stream) {
    cuda::launch_scale(type, factor, call.inputs[0].data, call.outputs[0].data, count, multiprocessors, stream);
  });
}

}  // namespace

void register_scale_cuda(CudaKernels& kernels) { kernels.add("scale", one_cuda_kernel<make_scale>()); }

}  // namespace headroom
