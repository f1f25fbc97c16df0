// CUDA kernels of adafactor.
#include "ops/adafactor/cuda_kernels.h"
#include "ops/adafactor/plan.h"
#include "ops/adafactor/shape.h"
#include "ops/cuda/kernel.h"

namespace headroom {
namespace {

cuda::AdafactorArgs args_of(const AdafactorPlan& plan, const AdafactorShape& shape) {
  cuda::AdafactorArgs args;
  args.matrices = shape.matrices;
  args.rows = shape.rows;
  args.cols = shape.cols;
  args.fresh_index = kFreshShare;
  args.rate_index = plan.relative ? kRelativeRate : kLearningRate;
  args.eps1 = static_cast<float>(plan.eps1);
  args.beta1 = static_cast<float>(plan.beta1);
  args.least_scale = static_cast<float>(plan.eps2);
  args.most_update = static_cast<float>(plan.clip);
  args.tensor = plan.tensor;
  args.factored = plan.factored;
  args.scales = plan.scales;
  args.decay = plan.decay;
  return args;
}

std::unique_ptr<CudaKernel> make_adafactor(const KernelSpec& spec, const CudaContext& context) {
  const AdafactorShape shape(spec.outputs[0].dims);
  const AdafactorPlan plan(spec.attrs, shape.factored);
  HR_CHECK(spec.scratch_bytes >= shape.scratch_bytes(), "adafactor: {} bytes of scratch", spec.scratch_bytes);
  return cuda_kernel_of([plan, shape, args = args_of(plan, shape), weight = float_type(spec.outputs[0].dtype),
                         multiprocessors = context.multiprocessors](const KernelCall& call, CudaStream stream) {
    cuda::AdafactorArgs a = args;
    a.w = call.outputs[0].data;
    a.g = call.inputs[AdafactorInputs::gradient].as<float>();
    a.row_squares = plan.factored ? call.outputs[1].as<float>() : nullptr;
    a.col_squares = call.outputs[plan.cols_state()].as<float>();
    a.moment = plan.moment ? call.outputs[plan.moment_state()].as<float>() : nullptr;
    a.copy = narrow_copy(call, plan.copy);
    a.hyper = call.inputs[plan.hyper].as<float>();
    a.clip = call.inputs[plan.factor()].as<float>();
    float* const scratch = reinterpret_cast<float*>(call.scratch.data());
    a.row_factors = scratch + shape.row_factors();
    a.col_factors = scratch + shape.col_factors();
    a.row_sums = scratch + shape.row_sums();
    a.whole = scratch + shape.whole();
    cuda::launch_adafactor(weight, a, multiprocessors, stream);
  });
}

}  // namespace

void register_adafactor_cuda(CudaKernels& kernels) { kernels.add("adafactor", one_cuda_kernel<make_adafactor>()); }

}  // namespace headroom
