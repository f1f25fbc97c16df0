// CUDA kernels of a group of linear layers: those of linear, one layer after another.
#include "ops/cuda/kernel.h"
#include "ops/linear_group/member_calls.h"

namespace headroom {
namespace {

std::unique_ptr<CudaKernel> make_each(const KernelSpec& spec, const CudaContext& context) {
  std::vector<std::unique_ptr<CudaKernel>> layers;
  for (size_t i = 0; i < spec.outputs.size(); ++i)
    layers.push_back(make_cuda_kernel(member_spec(spec, i, context.facts), context));
  return cuda_kernel_of([layers = std::move(layers)](const KernelCall& call, CudaStream stream) {
    each_member(call, [&](size_t i, const KernelCall& member) { layers[i]->enqueue(member, stream); });
  });
}

}  // namespace

void register_linear_group_cuda(CudaKernels& kernels) { kernels.add("linear_group", one_cuda_kernel<make_each>()); }

}  // namespace headroom
