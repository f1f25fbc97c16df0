// CUDA kernel of dropout.
#include <cmath>

#include "ops/cuda/kernel.h"
#include "ops/dropout/cuda_kernels.h"

namespace headroom {
namespace {

std::unique_ptr<CudaKernel> make_dropout(const KernelSpec& spec, const CudaContext& context) {
  const double rate = spec.attrs.real("rate");
  cuda::DropoutArgs args;
  args.count = count_of(spec.outputs[0]);
  args.tensor = static_cast<uint64_t>(spec.attrs.integer("tensor"));
  args.below = static_cast<uint32_t>(std::lround(rate * 0x1p31));
  args.scale = static_cast<float>(1 / (1 - rate));
  const auto draw = [args, x_type = float_type(spec.inputs[0].dtype), y_type = float_type(spec.outputs[0].dtype),
                     multiprocessors = context.multiprocessors](const KernelCall& call, CudaStream stream) {
    cuda::DropoutArgs a = args;
    a.x = call.inputs[0].data;
    a.hyper = call.inputs[1].as<float>();
    a.y = call.outputs[0].data;
    a.first = call.trip * a.count;
    cuda::launch_dropout(x_type, y_type, a, multiprocessors, stream);
  };
  return cuda_kernel_of(draw, false);
}

}  // namespace

void register_dropout_cuda(CudaKernels& kernels) { kernels.add("dropout", one_cuda_kernel<make_dropout>()); }

}  // namespace headroom
