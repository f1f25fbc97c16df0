// CUDA kernels of rms_norm and rms_norm_grad.
#include "ops/cuda/kernel.h"
#include "ops/rms_norm/cuda_kernels.h"
#include "ops/rms_norm/cuda_scratch.h"
#include "ops/rms_norm/operands.h"

namespace headroom {
namespace {

std::unique_ptr<CudaKernel> make_norm(const KernelSpec& spec, const CudaContext&) {
  cuda::RmsNormArgs args;
  args.width = spec.inputs[RmsNormInputs::weight].dims[0];
  args.rows = count_of(spec.inputs[RmsNormInputs::x]) / args.width;
  args.eps = static_cast<float>(spec.attrs.real("eps"));
  args.unit = spec.attrs.integer("unit") != 0 ? 1.0f : 0.0f;
  const bool residual = spec.attrs.integer("residual") != 0;
  return cuda_kernel_of([args, residual, x = float_type(spec.inputs[RmsNormInputs::x].dtype),
                         y = float_type(spec.outputs[0].dtype)](const KernelCall& call, CudaStream stream) {
    cuda::RmsNormArgs a = args;
    a.x = call.inputs[RmsNormInputs::x].data;
    a.w = call.inputs[RmsNormInputs::weight].as<float>();
    a.residual = residual ? call.inputs[RmsNormInputs::residual].data : nullptr;
    a.y = call.outputs[0].data;
    cuda::launch_rms_norm(x, y, a, stream);
  });
}

std::unique_ptr<CudaKernel> make_grad(const KernelSpec& spec, const CudaContext&) {
  const bool train = spec.attrs.integer("train") != 0, addend = spec.attrs.integer("addend") != 0;
  const bool carried = spec.attrs.text("accumulate", "always") == "carried";
  const bool narrow = spec.attrs.integer("narrow") != 0;
  HR_CHECK(!train || spec.scratch_bytes >= rms_norm_grad_cuda_scratch(spec.inputs[RmsNormGradInputs::x],
                                                                      spec.inputs[RmsNormGradInputs::weight]),
           "rms_norm_grad: {} bytes of scratch", spec.scratch_bytes);
  cuda::RmsNormGradArgs args;
  args.width = spec.inputs[RmsNormGradInputs::weight].dims[0];
  args.rows = count_of(spec.inputs[RmsNormGradInputs::x]) / args.width;
  args.eps = static_cast<float>(spec.attrs.real("eps"));
  args.unit = spec.attrs.integer("unit") != 0 ? 1.0f : 0.0f;
  return cuda_kernel_of(
      [args, train, addend, carried, narrow, x = float_type(spec.inputs[RmsNormGradInputs::x].dtype),
       dy = float_type(spec.inputs[RmsNormGradInputs::dy].dtype)](const KernelCall& call, CudaStream stream) {
        cuda::RmsNormGradArgs a = args;
        a.x = call.inputs[RmsNormGradInputs::x].data;
        a.w = call.inputs[RmsNormGradInputs::weight].as<float>();
        a.dy = call.inputs[RmsNormGradInputs::dy].data;
        a.addend = addend ? call.inputs.back().data : nullptr;
        a.dx = call.outputs[0].data;
        a.narrow = narrow ? call.outputs.back().data : nullptr;
        a.partial = train ? reinterpret_cast<float*>(call.scratch.data()) : nullptr;
        cuda::launch_rms_norm_grad(x, dy, a, train, carried && call.trip == 0,
                                   train ? call.outputs[1].as<float>() : nullptr, stream);
      });
}

}  // namespace

void register_rms_norm_cuda(CudaKernels& kernels) {
  kernels.add("rms_norm", one_cuda_kernel<make_norm>());
  kernels.add("rms_norm_grad", one_cuda_kernel<make_grad>());
}

}  // namespace headroom
