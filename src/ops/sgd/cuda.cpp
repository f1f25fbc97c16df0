// CUDA kernel of sgd.
#include "ops/cuda/kernel.h"
#include "ops/sgd/cuda_kernels.h"

namespace headroom {
namespace {

std::unique_ptr<CudaKernel> make_sgd(const KernelSpec& spec, const CudaContext& context) {
  cuda::SgdArgs args;
  args.count = count_of(spec.outputs[0]);
  args.momentum = static_cast<float>(spec.attrs.real("momentum", 0));
  args.nesterov = spec.attrs.integer("nesterov") != 0;
  args.decay = spec.attrs.integer("decay") != 0;
  args.tensor = static_cast<uint64_t>(spec.attrs.integer("tensor"));
  const bool momentum = spec.attrs.real("momentum", 0) > 0;
  return cuda_kernel_of([args, momentum, weight = float_type(spec.outputs[0].dtype),
                         multiprocessors = context.multiprocessors](const KernelCall& call, CudaStream stream) {
    const size_t hyper = momentum ? 3 : 2, copy = momentum ? 2 : 1;
    cuda::SgdArgs a = args;
    a.w = call.outputs[0].data;
    a.g = call.inputs[1].as<float>();
    a.buffer = momentum ? call.outputs[1].as<float>() : nullptr;
    a.copy = call.outputs.size() > copy ? call.outputs[copy].data : nullptr;
    a.hyper = call.inputs[hyper].as<float>();
    a.clip = call.inputs[hyper + 1].as<float>();
    cuda::launch_sgd(weight, a, multiprocessors, stream);
  });
}

}  // namespace

void register_sgd_cuda(CudaKernels& kernels) { kernels.add("sgd", one_cuda_kernel<make_sgd>()); }

}  // namespace headroom
