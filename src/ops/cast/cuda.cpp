// CUDA kernel of cast.
#include "ops/cast/cuda_kernels.h"
#include "ops/cuda/kernel.h"

namespace headroom {
namespace {

std::unique_ptr<CudaKernel> make_cast(const KernelSpec& spec, const CudaContext& context) {
  return cuda_kernel_of([x = float_type(spec.inputs[0].dtype), y = float_type(spec.outputs[0].dtype),
                         count = count_of(spec.outputs[0]),
                         multiprocessors = context.multiprocessors](const KernelCall& call, CudaStream stream) {
    cuda::launch_cast(x, y, call.inputs[0].data, call.outputs[0].data, count, multiprocessors, stream);
  });
}

}  // namespace

void register_cast_cuda(CudaKernels& kernels) { kernels.add("cast", one_cuda_kernel<make_cast>()); }

}  // namespace headroom
