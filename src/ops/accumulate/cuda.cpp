// CUDA kernels of accumulate and zero_fill.
#include "ops/accumulate/cuda_kernels.h"
#include "ops/cuda/kernel.h"

namespace headroom {
namespace {

std::unique_ptr<CudaKernel> make_accumulate(const KernelSpec& spec, const CudaContext& context) {
  return cuda_kernel_of([wide = spec.outputs[0].dtype == DType::f64,
                         carried = spec.attrs.text("accumulate", "always") == "carried",
                         count = count_of(spec.outputs[0]),
                         multiprocessors = context.multiprocessors](const KernelCall& call, CudaStream stream) {
    cuda::launch_accumulate(wide, carried && call.trip == 0, call.inputs[0].data, call.outputs[0].data, count,
                            multiprocessors, stream);
  });
}

std::unique_ptr<CudaKernel> make_zero_fill(const KernelSpec& spec, const CudaContext& context) {
  return cuda_kernel_of(
      [bytes = storage_bytes(spec.outputs[0]), services = context.services](const KernelCall& call, CudaStream stream) {
        services->fill(call.outputs[0].data, 0, bytes, stream);
      });
}

}  // namespace

void register_accumulate_cuda(CudaKernels& kernels) {
  kernels.add("accumulate", one_cuda_kernel<make_accumulate>());
  kernels.add("zero_fill", one_cuda_kernel<make_zero_fill>());
}

}  // namespace headroom
