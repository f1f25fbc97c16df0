// CUDA kernels of the experts' linear layers.
#include "ops/cast/cuda_convert.h"
#include "ops/cuda/kernel.h"
#include "ops/cuda/mma_refusal.h"
#include "ops/moe_linear/cuda_kernels.h"
#include "ops/moe_linear/products.h"

namespace headroom {
namespace {

using cuda::ExpertProduct;

// For y of (x, w, offsets [, addend]), dx of (dy, w, offsets [, addend]) or acc of (x, dy, offsets, acc).
ExpertShape shape_of(const KernelSpec& spec, ExpertProduct product) {
  return product == ExpertProduct::weight_gradient ? gradient_shape(spec.call()) : rows_shape(spec.call());
}

// The arguments without the addresses.
cuda::ExpertArgs args_of(const KernelSpec& spec, ExpertProduct product) {
  const ExpertShape shape = shape_of(spec, product);
  constexpr int64_t kMost = int64_t{1} << 30;
  HR_CHECK(shape.rows < kMost && shape.outs < kMost && shape.ins < kMost, "{} rows of experts, {} x {}", shape.rows,
           shape.outs, shape.ins);
  cuda::ExpertArgs args;
  args.product = product;
  args.type = float_type(spec.inputs.front().dtype);
  args.result_type = float_type(spec.outputs[0].dtype);
  args.experts = static_cast<int32_t>(shape.experts);
  args.outs = static_cast<int32_t>(shape.outs);
  args.ins = static_cast<int32_t>(shape.ins);
  args.rows = shape.rows;
  return args;
}

void set_addresses(cuda::ExpertArgs& args, const KernelCall& call, bool adds) {
  if (args.product == ExpertProduct::weight_gradient) {
    args.wide = call.inputs[ExpertGradInputs::dy].data;
    args.other = call.inputs[ExpertGradInputs::x].data;
    args.offsets = call.inputs[ExpertGradInputs::offsets].as<int32_t>();
    if (adds) args.addend = call.inputs[ExpertGradInputs::accumulator].data;
  } else {
    args.wide = call.inputs[ExpertInputs::rows].data;
    args.other = call.inputs[ExpertInputs::weight].data;
    args.offsets = call.inputs[ExpertInputs::offsets].as<int32_t>();
    if (adds) args.addend = call.inputs[ExpertInputs::addend].data;
  }
  args.result = call.outputs[0].data;
}

using Launch = void (*)(const cuda::ExpertArgs& args, CudaStream stream);

// f32 weights for narrow rows are first rounded, into the scratch.
CudaOffer offer_of(const KernelSpec& spec, const CudaContext& context, ExpertProduct product, Launch launch) {
  const bool rounds = product != ExpertProduct::weight_gradient &&
                      spec.inputs[ExpertInputs::rows].dtype != spec.inputs[ExpertInputs::weight].dtype;
  const bool addend = product == ExpertProduct::weight_gradient || spec.attrs.integer("addend") != 0;
  return {
      cuda_kernel_of(
          [args = args_of(spec, product), launch, rounds, addend, weights = count_of(spec.inputs[ExpertInputs::weight]),
           narrow = float_type(spec.inputs[ExpertInputs::rows].dtype), multiprocessors = context.multiprocessors,
           carried = spec.attrs.text("accumulate", "always") == "carried"](const KernelCall& call, CudaStream stream) {
            cuda::ExpertArgs own = args;
            set_addresses(own, call, addend && !(carried && call.trip == 0));
            if (rounds) {
              cuda::launch_cast(cuda::FloatType::f32, narrow, own.other, call.scratch.data(), weights, multiprocessors,
                                stream);
              own.other = call.scratch.data();
            }
            launch(own, stream);
          }),
      {}};
}

template <ExpertProduct product>
CudaOffer make_plain(const KernelSpec& spec, const CudaContext& context) {
  return offer_of(spec, context, product, cuda::launch_expert_product);
}

template <ExpertProduct product>
CudaOffer make_mma(const KernelSpec& spec, const CudaContext& context) {
  const ExpertShape shape = shape_of(spec, product);
  const int64_t wide = product == ExpertProduct::forward ? shape.ins : shape.outs;  // elements of a row of x or dy
  std::string refusal =
      mma_product_refusal(context, cuda::expert_mma_shared(), spec.inputs[ExpertInputs::rows].dtype, {wide, shape.ins});
  if (!refusal.empty()) return {nullptr, std::move(refusal)};
  return offer_of(spec, context, product, cuda::launch_expert_mma);
}

// As on the CPU: the weights are read once, in memory order.
CudaOffer make_few_rows(const KernelSpec& spec, const CudaContext& context) {
  const std::vector<int64_t>& dims = spec.inputs[ExpertInputs::rows].dims;
  const int64_t rows = element_count(dims) / dims.back(),
                tokens = dims.size() < 2 ? rows : rows / dims[dims.size() - 2];
  if (tokens > 8) return {nullptr, "more than eight tokens"};
  if (spec.attrs.integer("batch_invariant") != 0) return {nullptr, "sums in an order that depends on the rows"};
  return offer_of(spec, context, ExpertProduct::forward, cuda::launch_expert_few_rows);
}

}  // namespace

void register_moe_linear_cuda(CudaKernels& kernels) {
  kernels.add("expert_linear", {{"rows", make_few_rows},
                                {"mma", make_mma<ExpertProduct::forward>},
                                {"plain", make_plain<ExpertProduct::forward>}});
  kernels.add("expert_linear_dx",
              {{"mma", make_mma<ExpertProduct::input_gradient>}, {"plain", make_plain<ExpertProduct::input_gradient>}});
  kernels.add("expert_linear_dw", {{"mma", make_mma<ExpertProduct::weight_gradient>},
                                   {"plain", make_plain<ExpertProduct::weight_gradient>}});
}

}  // namespace headroom
