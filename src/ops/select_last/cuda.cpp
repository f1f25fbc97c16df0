// CUDA kernels of select_last and select_rows.
#include "ops/cuda/kernel.h"
#include "ops/select_last/cuda_kernels.h"

namespace headroom {
namespace {

std::unique_ptr<CudaKernel> make_select(const KernelSpec& spec, const CudaContext& context) {
  return cuda_kernel_of([type = float_type(spec.inputs[0].dtype), seq = spec.inputs[0].dims[1],
                         width = spec.inputs[0].dims[2],
                         multiprocessors = context.multiprocessors](const KernelCall& call, CudaStream stream) {
    cuda::launch_select_last(type, call.inputs[0].data, call.inputs[1].as<int32_t>(), call.outputs[0].data, seq, width,
                             multiprocessors, stream);
  });
}

std::unique_ptr<CudaKernel> make_select_rows(const KernelSpec& spec, const CudaContext& context) {
  return cuda_kernel_of([type = float_type(spec.inputs[0].dtype), rows = spec.inputs[1].dims[0],
                         held = spec.inputs[0].dims[0], width = spec.inputs[0].dims[2],
                         multiprocessors = context.multiprocessors](const KernelCall& call, CudaStream stream) {
    cuda::launch_select_rows(type, call.inputs[0].data, call.inputs[1].as<int32_t>(), call.outputs[0].data, rows, held,
                             width, multiprocessors, stream);
  });
}

}  // namespace

void register_select_last_cuda(CudaKernels& kernels) {
  kernels.add("select_last", one_cuda_kernel<make_select>());
  kernels.add("select_rows", one_cuda_kernel<make_select_rows>());
}

}  // namespace headroom
