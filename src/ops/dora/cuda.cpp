// CUDA kernels of row_lengths, magnitude and magnitude_grad.
#include "base/error.h"
#include "ops/cuda/kernel.h"
#include "ops/dora/cuda_kernels.h"
#include "ops/dora/cuda_scratch.h"

namespace headroom {
namespace {

std::unique_ptr<CudaKernel> make_lengths(const KernelSpec& spec, const CudaContext&) {
  const ConcreteType& weight = spec.inputs[RowLengthsInputs::weight];
  HR_CHECK(weight.storage.dense(), "row_lengths of a weight in codes has no CUDA kernel");
  const RowLengthsShape shape = row_lengths_shape(spec.call());
  return cuda_kernel_of(
      [shape, factor = static_cast<float>(spec.attrs.real("factor")),
       types = std::array{float_type(weight.dtype), float_type(spec.inputs[RowLengthsInputs::a].dtype)}](
          const KernelCall& call, CudaStream stream) {
        const cuda::RowLengthsArgs args{call.inputs[RowLengthsInputs::weight].data,
                                        call.inputs[RowLengthsInputs::a].data,
                                        call.inputs[RowLengthsInputs::b].data,
                                        call.outputs[0].as<float>(),
                                        shape.outs,
                                        shape.ins,
                                        shape.rank,
                                        factor};
        cuda::launch_row_lengths(types[0], types[1], args, stream);
      });
}

std::unique_ptr<CudaKernel> make_magnitude(const KernelSpec& spec, const CudaContext& context) {
  return cuda_kernel_of([at = MagnitudeInputs(spec.attrs), z = float_type(spec.inputs[0].dtype),
                         y = float_type(spec.outputs[0].dtype),
                         multiprocessors = context.multiprocessors](const KernelCall& call, CudaStream stream) {
    cuda::MagnitudeArgs args;
    args.z = call.inputs[MagnitudeInputs::z].data;
    args.magnitude = call.inputs[MagnitudeInputs::magnitude].as<float>();
    args.lengths = call.inputs[MagnitudeInputs::lengths].as<float>();
    args.bias = at.bias != 0 ? call.inputs[at.bias].as<float>() : nullptr;
    args.residual = at.residual != 0 ? call.inputs[at.residual].data : nullptr;
    args.y = call.outputs[0].data;
    args.width = call.inputs[MagnitudeInputs::z].dims.back();
    args.rows = call.inputs[MagnitudeInputs::z].count() / args.width;
    cuda::launch_magnitude(z, y, args, multiprocessors, stream);
  });
}

std::unique_ptr<CudaKernel> make_grad(const KernelSpec& spec, const CudaContext&) {
  const ConcreteType &dy = spec.inputs[MagnitudeGradInputs::dy], &z = spec.inputs[MagnitudeGradInputs::z];
  HR_CHECK(spec.scratch_bytes >= magnitude_grad_cuda_scratch(z), "magnitude_grad: {} bytes of scratch",
           spec.scratch_bytes);
  const bool carried = spec.attrs.text("accumulate", "always") == "carried";
  return cuda_kernel_of([carried, rows = magnitude_rows(z), z_type = float_type(z.dtype),
                         dy_type = float_type(dy.dtype)](const KernelCall& call, CudaStream stream) {
    cuda::MagnitudeGradArgs args;
    args.dy = call.inputs[MagnitudeGradInputs::dy].data;
    args.z = call.inputs[MagnitudeGradInputs::z].data;
    args.magnitude = call.inputs[MagnitudeGradInputs::magnitude].as<float>();
    args.lengths = call.inputs[MagnitudeGradInputs::lengths].as<float>();
    args.dz = call.outputs[0].data;
    args.partial = reinterpret_cast<float*>(call.scratch.data());
    args.rows = rows[0] * rows[1];
    args.width = rows[2];
    cuda::launch_magnitude_grad(z_type, dy_type, args, carried && call.trip == 0, call.outputs[1].as<float>(), stream);
  });
}

}  // namespace

void register_dora_cuda(CudaKernels& kernels) {
  kernels.add("row_lengths", one_cuda_kernel<make_lengths>());
  kernels.add("magnitude", one_cuda_kernel<make_magnitude>());
  kernels.add("magnitude_grad", one_cuda_kernel<make_grad>());
}

}  // namespace headroom
