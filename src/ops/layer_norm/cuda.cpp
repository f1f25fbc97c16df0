// CUDA kernels of layer_norm and layer_norm_grad.
#include "ops/cuda/kernel.h"
#include "ops/layer_norm/cuda_kernels.h"
#include "ops/layer_norm/cuda_scratch.h"
#include "ops/layer_norm/operands.h"
#include "ops/layer_norm/trained.h"

namespace headroom {
namespace {

std::unique_ptr<CudaKernel> make_norm(const KernelSpec& spec, const CudaContext&) {
  cuda::LayerNormArgs args;
  args.width = spec.inputs[LayerNormInputs::x].dims.back();
  args.rows = count_of(spec.inputs[LayerNormInputs::x]) / args.width;
  args.eps = static_cast<float>(spec.attrs.real("eps"));
  return cuda_kernel_of([args, x = float_type(spec.inputs[LayerNormInputs::x].dtype),
                         y = float_type(spec.outputs[0].dtype)](const KernelCall& call, CudaStream stream) {
    cuda::LayerNormArgs a = args;
    a.x = call.inputs[LayerNormInputs::x].data;
    a.w = call.inputs[LayerNormInputs::weight].as<float>();
    a.b = call.inputs[LayerNormInputs::bias].as<float>();
    a.y = call.outputs[0].data;
    cuda::launch_layer_norm(x, y, a, stream);
  });
}

// The attributes of a gradient node.
struct GradPlan {
  bool weight = false, bias = false, addend = false;
  bool weight_carried = false, bias_carried = false;

  explicit GradPlan(const Attrs& attrs)
      : weight((attrs.integer("train") & kTrainsWeight) != 0),
        bias((attrs.integer("train") & kTrainsBias) != 0),
        addend(attrs.integer("addend") != 0),
        weight_carried(attrs.text("accumulate", "always") == "carried"),
        bias_carried(attrs.text("accumulate_bias", "always") == "carried") {}
};

std::unique_ptr<CudaKernel> make_grad(const KernelSpec& spec, const CudaContext&) {
  const GradPlan plan(spec.attrs);
  HR_CHECK((!plan.weight && !plan.bias) ||
               spec.scratch_bytes >= layer_norm_grad_cuda_scratch(spec.inputs[LayerNormGradInputs::x]),
           "layer_norm_grad: {} bytes of scratch", spec.scratch_bytes);
  cuda::LayerNormGradArgs args;
  args.width = spec.inputs[LayerNormGradInputs::x].dims.back();
  args.rows = count_of(spec.inputs[LayerNormGradInputs::x]) / args.width;
  args.eps = static_cast<float>(spec.attrs.real("eps"));
  return cuda_kernel_of(
      [args, plan, x = float_type(spec.inputs[LayerNormGradInputs::x].dtype),
       dy = float_type(spec.inputs[LayerNormGradInputs::dy].dtype)](const KernelCall& call, CudaStream stream) {
        cuda::LayerNormGradArgs a = args;
        a.x = call.inputs[LayerNormGradInputs::x].data;
        a.w = call.inputs[LayerNormGradInputs::weight].as<float>();
        a.dy = call.inputs[LayerNormGradInputs::dy].data;
        a.addend = plan.addend ? call.inputs.back().data : nullptr;
        a.dx = call.outputs[0].data;
        const bool train = plan.weight || plan.bias;
        a.partial = train ? reinterpret_cast<float*>(call.scratch.data()) : nullptr;
        cuda::NormAccumulator weight{plan.weight, plan.weight_carried && call.trip == 0, nullptr};
        cuda::NormAccumulator bias{plan.bias, plan.bias_carried && call.trip == 0, nullptr};
        if (plan.weight) weight.acc = call.outputs[1].as<float>();
        if (plan.bias) bias.acc = call.outputs.back().as<float>();
        cuda::launch_layer_norm_grad(x, dy, a, weight, bias, stream);
      });
}

}  // namespace

void register_layer_norm_cuda(CudaKernels& kernels) {
  kernels.add("layer_norm", one_cuda_kernel<make_norm>());
  kernels.add("layer_norm_grad", one_cuda_kernel<make_grad>());
}

}  // namespace headroom
