// CUDA kernels of the elementwise ops.
#include "ops/cuda/kernel.h"
#include "ops/elementwise/cuda_kernels.h"
#include "ops/elementwise/table.h"

namespace headroom {
namespace {

std::unique_ptr<CudaKernel> make_elementwise(const KernelSpec& spec, const CudaContext& context) {
  const ElementwiseRow& row = elementwise_row(spec.op);
  const double constant = row.constant.empty() ? 1 : spec.attrs.real(row.constant);
  return cuda_kernel_of([formula = row.formula(spec.op, spec.attrs), type = float_type(spec.outputs[0].dtype),
                         constant = static_cast<float>(constant), count = count_of(spec.outputs[0]),
                         multiprocessors = context.multiprocessors](const KernelCall& call, CudaStream stream) {
    cuda::ElementwiseOperands operands;
    for (size_t i = 0; i < call.inputs.size(); ++i) operands.in[i] = call.inputs[i].data;
    for (size_t i = 0; i < call.outputs.size(); ++i) operands.out[i] = call.outputs[i].data;
    operands.count = count;
    cuda::launch_elementwise(formula, type, constant, operands, multiprocessors, stream);
  });
}

}  // namespace

void register_elementwise_cuda(CudaKernels& kernels) {
  for (const ElementwiseRow& row : elementwise_rows()) kernels.add(row.name, one_cuda_kernel<make_elementwise>());
}

}  // namespace headroom
