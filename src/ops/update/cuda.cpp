// CUDA kernels of elementwise updates.
#include <algorithm>

#include "ops/cuda/kernel.h"
#include "ops/update/cuda_kernels.h"
#include "ops/update/table.h"

namespace headroom {
namespace {

std::unique_ptr<CudaKernel> make_update(const KernelSpec& spec, const CudaContext& context) {
  const UpdatePlan plan(spec);
  cuda::UpdateArgs args;
  args.count = count_of(spec.outputs[0]);
  std::copy(plan.number, plan.number + kUpdateNumbers, args.number);
  args.tensor = plan.tensor;
  args.decay = plan.decay;
  args.rate = plan.rate;
  return cuda_kernel_of([args, plan, weight = float_type(spec.outputs[0].dtype),
                         multiprocessors = context.multiprocessors](const KernelCall& call, CudaStream stream) {
    cuda::UpdateArgs a = args;
    a.w = call.outputs[0].data;
    a.first = first_element(call);
    a.g = call.inputs[UpdateOpInputs::gradient].as<float>();
    for (size_t k = 0; k < plan.states; ++k) {
      if (plan.in_blocks) {
        a.codes[k] = call.outputs[1 + 2 * k].as<uint8_t>();
        a.absmax[k] = call.outputs[2 + 2 * k].as<float>();
      } else {
        a.states[k] = call.outputs[1 + k].as<float>();
      }
    }
    a.copy = narrow_copy(call, plan.copy);
    a.hyper = call.inputs[plan.hyper].as<float>();
    a.clip = call.inputs[plan.clip()].as<float>();
    cuda::launch_update(plan.formula, weight, a, plan.in_blocks, multiprocessors, stream);
  });
}

}  // namespace

void register_update_cuda(CudaKernels& kernels) {
  for (const UpdateRow& row : update_rows()) kernels.add(row.name, one_cuda_kernel<make_update>());
}

}  // namespace headroom
