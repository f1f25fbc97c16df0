// CUDA kernels of the experts' linear layers.
#include "ops/cuda/kernel.h"
#include "ops/moe_linear/cuda_kernels.h"
#include "ops/moe_linear/products.h"

namespace headroom {
namespace {

// The sizes; `matrix` has w's shape.
cuda::ExpertArgs args_of(cuda::ExpertProduct product, const ConcreteType& wide, const ConcreteType& matrix) {
  const ExpertShape shape = expert_shape(wide, matrix);
  constexpr int64_t kMost = int64_t{1} << 30;
  HR_CHECK(shape.rows < kMost && shape.outs < kMost && shape.ins < kMost, "{} rows of experts, {} x {}", shape.rows,
           shape.outs, shape.ins);
  cuda::ExpertArgs args;
  args.product = product;
  args.experts = static_cast<int32_t>(shape.experts);
  args.outs = static_cast<int32_t>(shape.outs);
  args.ins = static_cast<int32_t>(shape.ins);
  args.rows = shape.rows;
  return args;
}

using Launch = void (*)(cuda::FloatType type, cuda::FloatType result, const cuda::ExpertArgs& args, CudaStream stream);

// y of (x, w, offsets), or dx of (dy, w, offsets [, addend]).
CudaOffer rows_offer(const KernelSpec& spec, cuda::ExpertProduct product, Launch launch) {
  return {cuda_kernel_of([args = args_of(product, spec.inputs[0], spec.inputs[1]), launch,
                          type = float_type(spec.inputs[0].dtype),
                          result = float_type(spec.outputs[0].dtype)](const KernelCall& call, CudaStream stream) {
            cuda::ExpertArgs own = args;
            own.wide = call.inputs[0].data;
            own.other = call.inputs[1].data;
            own.offsets = call.inputs[2].as<int32_t>();
            if (call.inputs.size() == 4) own.addend = call.inputs[3].data;
            own.result = call.outputs[0].data;
            launch(type, result, own, stream);
          }),
          {}};
}

CudaOffer make_forward(const KernelSpec& spec, const CudaContext&) {
  return rows_offer(spec, cuda::ExpertProduct::forward, cuda::launch_expert_product);
}

// As on the CPU: the weights are read once, as they are stored.
CudaOffer make_few_rows(const KernelSpec& spec, const CudaContext&) {
  const std::vector<int64_t>& dims = spec.inputs[0].dims;
  const int64_t rows = element_count(dims) / dims.back(),
                tokens = dims.size() < 2 ? rows : rows / dims[dims.size() - 2];
  if (tokens > 8) return {nullptr, "more than eight tokens"};
  return rows_offer(spec, cuda::ExpertProduct::forward, cuda::launch_expert_few_rows);
}

CudaOffer make_input_gradient(const KernelSpec& spec, const CudaContext&) {
  return rows_offer(spec, cuda::ExpertProduct::input_gradient, cuda::launch_expert_product);
}

// acc of (x, dy, offsets, acc)
CudaOffer make_weight_gradient(const KernelSpec& spec, const CudaContext&) {
  return {cuda_kernel_of([args = args_of(cuda::ExpertProduct::weight_gradient, spec.inputs[0], spec.inputs[3]),
                          accumulate = std::string(spec.attrs.text("accumulate", "always")),
                          type = float_type(spec.inputs[0].dtype)](const KernelCall& call, CudaStream stream) {
            cuda::ExpertArgs own = args;
            own.wide = call.inputs[1].data;
            own.other = call.inputs[0].data;
            own.offsets = call.inputs[2].as<int32_t>();
            own.result = call.outputs[0].data;
            if (accumulate != "carried" || call.trip != 0) own.addend = own.result;
            cuda::launch_expert_product(type, cuda::FloatType::f32, own, stream);
          }),
          {}};
}

}  // namespace

void register_moe_linear_cuda(CudaKernels& kernels) {
  kernels.add("expert_linear", {{"rows", make_few_rows}, {"plain", make_forward}});
  kernels.add("expert_linear_dx", {{"plain", make_input_gradient}});
  kernels.add("expert_linear_dw", {{"plain", make_weight_gradient}});
}

}  // namespace headroom
