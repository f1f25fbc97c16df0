// CUDA kernels of the elementwise ops.
#include "ops/cuda/kernel.h"
#include "ops/elementwise/cuda_kernels.h"
#include "ops/elementwise/table.h"

namespace headroom {
namespace {

std::unique_ptr<CudaKernel> make_elementwise(const KernelSpec& spec, const CudaContext& context) {
  const PreparedFormula prepared = prepared_formula(spec.op, spec.attrs);
  const auto compute = [prepared, x_type = float_type(spec.inputs.front().dtype),
                        y_type = float_type(spec.outputs.front().dtype), count = count_of(spec.outputs.front()),
                        multiprocessors = context.multiprocessors](const KernelCall& call, CudaStream stream) {
    cuda::ElementwiseOperands operands;
    for (size_t i = 0; i < call.inputs.size(); ++i) operands.in[i] = call.inputs[i].data;
    for (size_t i = 0; i < call.outputs.size(); ++i) operands.out[i] = call.outputs[i].data;
    operands.count = count;
    if (prepared.draws) {
      operands.hyper = call.inputs.back().as<float>();
      operands.tensor = prepared.tensor;
      operands.draws = {0, call.trip * count, prepared.below};
    }
    cuda::launch_elementwise(prepared.formula, x_type, y_type, static_cast<float>(prepared.constant), operands,
                             multiprocessors, stream);
  };
  return cuda_kernel_of(compute, !prepared.draws);
}

}  // namespace

void register_elementwise_cuda(CudaKernels& kernels) {
  for (const std::string_view op : elementwise_kernels()) kernels.add(op, one_cuda_kernel<make_elementwise>());
}

}  // namespace headroom
