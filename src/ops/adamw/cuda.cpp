// CUDA kernel of adamw.
#include "ops/adamw/cuda_kernels.h"
#include "ops/cuda/kernel.h"

namespace headroom {
namespace {

std::unique_ptr<CudaKernel> make_adamw(const KernelSpec& spec, const CudaContext& context) {
  cuda::AdamWArgs args;
  args.count = count_of(spec.outputs[0]);
  args.beta1 = spec.attrs.real("beta1");
  args.beta2 = spec.attrs.real("beta2");
  args.eps = spec.attrs.real("eps");
  args.tensor = static_cast<uint64_t>(spec.attrs.integer("tensor"));
  args.decay = spec.attrs.integer("decay") != 0;
  return cuda_kernel_of([args, weight = float_type(spec.outputs[0].dtype), multiprocessors = context.multiprocessors](
                            const KernelCall& call, CudaStream stream) {
    cuda::AdamWArgs a = args;
    a.w = call.outputs[0].data;
    a.g = call.inputs[1].as<float>();
    a.m = call.outputs[1].as<float>();
    a.v = call.outputs[2].as<float>();
    a.shadow = call.outputs.size() == 4 ? call.outputs[3].data : nullptr;
    a.hyper = call.inputs[4].as<float>();
    a.clip = call.inputs[5].as<float>();
    cuda::launch_adamw(weight, a, multiprocessors, stream);
  });
}

}  // namespace

void register_adamw_cuda(CudaKernels& kernels) { kernels.add("adamw", one_cuda_kernel<make_adamw>()); }

}  // namespace headroom
