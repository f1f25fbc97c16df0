// CUDA kernel of add.
#include "ops/add/cuda_kernels.h"
#include "ops/cuda/kernel.h"

namespace headroom {
namespace {

std::unique_ptr<CudaKernel> make_add(const KernelSpec& spec, const CudaContext& context) {
  return cuda_kernel_of([type = float_type(spec.outputs[0].dtype), count = count_of(spec.outputs[0]),
                         multiprocessors = context.multiprocessors](const KernelCall& call, CudaStream stream) {
    cuda::launch_add(type, call.inputs[0].data, call.inputs[1].data, call.outputs[0].data, count, multiprocessors,
                     stream);
  });
}

}  // namespace

void register_add_cuda(CudaKernels& kernels) { kernels.add("add", one_cuda_kernel<make_add>()); }

}  // namespace headroom
