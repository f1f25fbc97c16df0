// CUDA kernels of sum_squares, clip_coefficient and loss_scale.
#include "ops/cuda/kernel.h"
#include "ops/reduce/cuda_kernels.h"
#include "ops/reduce/cuda_scratch.h"

namespace headroom {
namespace {

std::unique_ptr<CudaKernel> make_squares(const KernelSpec& spec, const CudaContext&) {
  const int64_t count = count_of(spec.inputs[0]);
  HR_CHECK(spec.scratch_bytes >= sum_squares_cuda_scratch(count), "sum_squares: {} bytes of scratch",
           spec.scratch_bytes);
  return cuda_kernel_of(
      [count, first = spec.attrs.text("accumulate", "always") == "first"](const KernelCall& call, CudaStream stream) {
        cuda::launch_sum_squares(call.inputs[0].as<float>(), count, reinterpret_cast<double*>(call.scratch.data()),
                                 first, call.outputs[0].as<double>(), stream);
      });
}

std::unique_ptr<CudaKernel> make_clip(const KernelSpec& spec, const CudaContext&) {
  return cuda_kernel_of([scaled = spec.attrs.integer("scaled") != 0](const KernelCall& call, CudaStream stream) {
    cuda::launch_clip_coefficient(call.inputs[0].as<double>(), call.inputs[1].as<float>(), scaled,
                                  call.outputs[0].as<float>(), stream);
  });
}

std::unique_ptr<CudaKernel> make_loss_scale(const KernelSpec&, const CudaContext&) {
  return cuda_kernel_of([](const KernelCall& call, CudaStream stream) {
    cuda::launch_loss_scale(call.inputs[0].as<float>(), call.outputs[0].as<float>(), stream);
  });
}

}  // namespace

void register_reduce_cuda(CudaKernels& kernels) {
  kernels.add("sum_squares", one_cuda_kernel<make_squares>());
  kernels.add("clip_coefficient", one_cuda_kernel<make_clip>());
  kernels.add("loss_scale", one_cuda_kernel<make_loss_scale>());
}

}  // namespace headroom
