// CUDA kernels of the linear layer: each op is one product, or one of two products.
#include <algorithm>
#include <array>

#include "base/block_codes.h"
#include "ops/cast/cuda_convert.h"
#include "ops/cuda/kernel.h"
#include "ops/linear/cuda_codes.h"
#include "ops/linear/cuda_fp8_product.h"
#include "ops/linear/cuda_kernels.h"
#include "ops/linear/cuda_product.h"
#include "ops/linear/cuda_scratch.h"
#include "ops/linear/cuda_sum_scratch.h"
#include "ops/linear/fp8.h"
#include "ops/linear/scratch.h"

namespace headroom {
namespace {

// Guaranteed alignment of addresses in bytes: rows inside a tensor have no more.
constexpr int64_t kAlignment = 16;

// Why a kernel does not support these attributes and inputs of an op; empty when it does.
template <size_t N>
std::string refusal_of(const KernelSpec& spec, const std::array<std::string_view, N>& known, size_t inputs) {
  for (const auto& [name, value] : spec.attrs.items())
    if (std::find(known.begin(), known.end(), name) == known.end()) return fmt::format("attribute {}", name);
  if (spec.inputs.size() != inputs) return fmt::format("{} inputs", spec.inputs.size());
  return {};
}

CudaProductSpec dense(const MatmulSpec& spec) { return {spec, 0, 0, 0, kAlignment}; }

const void* input_at(const KernelCall& call, size_t index) { return index == 0 ? nullptr : call.inputs[index].data; }

// The wide product of a spec, and p q as a product added to its result.
MatmulSpec wide_part(MatmulSpec spec) {
  spec.low_rank = 0;
  spec.rounds_b = false;
  spec.b_storage = {};
  return spec;
}
MatmulSpec low_rank_part(MatmulSpec spec) {
  spec.size.depth = spec.low_rank;
  spec.b_transposed = spec.q_transposed;
  spec.bias = false;
  spec.addend = true;
  return wide_part(spec);
}

// A weight in blocks of codes, in the device's form.
cuda::CodedOperand coded_operand(const MatmulSpec& spec, const void* weight) {
  const Storage& storage = spec.b_storage;
  cuda::CodedOperand operand;
  operand.elements = spec.size.depth * spec.size.cols;
  const StorageLayout layout = storage_layout(storage, operand.elements);
  operand.codes = static_cast<const uint8_t*>(weight);
  operand.scales = operand.codes + layout.scales;
  if (storage.scale_block != 0)
    operand.outer_scales = reinterpret_cast<const float*>(operand.codes + layout.scale_scales);
  operand.outer_count = layout.scale_scale_count;
  operand.block = storage.block;
  operand.scale_block = storage.scale_block;
  operand.bits = storage.payload_bits;
  std::copy_n(code_values(storage.codes).begin(), 16, operand.table);
  return operand;
}

// The weight of linear and linear_dx as it is multiplied: as it is stored, or the copy that is made of it at the front
// of the scratch, rounded for narrow operands or decoded.
const void* multiplied_weight(const MatmulSpec& spec, const KernelCall& call, int multiprocessors, CudaStream stream) {
  const void* const stored = call.inputs[LinearInputs::weight].data;
  if (!copies_b(spec)) return stored;
  if (!spec.b_storage.dense())
    cuda::launch_decode(coded_operand(spec, stored), float_type(spec.operand), call.scratch.data(), multiprocessors,
                        stream);
  else
    cuda::launch_cast(cuda::FloatType::f32, float_type(spec.operand), stored, call.scratch.data(),
                      spec.size.depth * spec.size.cols, multiprocessors, stream);
  return call.scratch.data();
}

// Kernel of linear and linear_dx: one product, or two with the low-rank operands p and q. The front of the scratch
// holds a copy of the weight: an f32 weight rounded for narrow operands, or a decoded one.
class ProductKernel final : public CudaKernel {
 public:
  ProductKernel(const MatmulSpec& spec, const LinearOperands& at, int multiprocessors)
      : spec_(spec), at_(at), multiprocessors_(multiprocessors) {}

  // Prepares the products; returns the reason when one is refused.
  std::string prepare(CudaProductMaker wide, CudaProductMaker low, const CudaContext& context, int64_t booked) {
    const int64_t workspace = booked - cuda_copied_bytes(spec_);
    std::string refusal = take(wide_, wide(dense(wide_part(spec_)), context, workspace));
    if (at_.low_rank != 0 && refusal.empty())
      refusal = take(low_, low(dense(low_rank_part(spec_)), context, workspace));
    if (refusal.empty())
      HR_CHECK(wide_->workspace_bytes() <= workspace, "a product of {} bytes of workspace, {} are booked",
               wide_->workspace_bytes(), workspace);
    return refusal;
  }

  void enqueue(const KernelCall& call, CudaStream stream) const override {
    void* const y = call.outputs[0].data;
    void* const workspace = call.scratch.data() + cuda_copied_bytes(spec_);
    wide_->run({call.inputs[LinearInputs::left].data, multiplied_weight(spec_, call, multiprocessors_, stream), y,
                input_at(call, at_.bias), input_at(call, at_.last), workspace},
               stream);
    if (low_)
      low_->run({input_at(call, at_.low_rank), input_at(call, at_.low_rank + 1), y, nullptr, y, workspace}, stream);
  }

 private:
  static std::string take(std::shared_ptr<const CudaProduct>& to, CudaProductOffer offer) {
    to = std::move(offer.call);
    return to ? std::string() : std::move(offer.refusal);
  }

  MatmulSpec spec_;
  LinearOperands at_;
  int multiprocessors_;
  std::shared_ptr<const CudaProduct> wide_, low_;
};

CudaOffer product_kernel(CudaProductMaker wide, CudaProductMaker low, const MatmulSpec& spec, const KernelSpec& kernel,
                         const CudaContext& context) {
  auto product = std::make_unique<ProductKernel>(spec, linear_operands(kernel.attrs), context.multiprocessors);
  std::string refusal = product->prepare(wide, low, context, kernel.scratch_bytes);
  if (!refusal.empty()) return {nullptr, std::move(refusal)};
  return {std::move(product), {}};
}

constexpr std::array<std::string_view, 7> kLinearAttrs{"batch_invariant", "bias",     "dtype",   "layout",
                                                       "low_rank",        "multiply", "residual"};

// Why kernels other than headroom's own tiles, which sum in one order whatever the number of rows, are refused.
std::string invariance_refusal(const KernelSpec& spec) {
  return is_batch_invariant(spec.attrs) ? "sums in an order that depends on the rows" : std::string();
}

static_assert(cuda::kFewRows == kCudaFewRows);

// The product of few rows without its addresses.
cuda::DeviceProduct row_product(const MatmulSpec& m) {
  cuda::DeviceProduct product{float_type(m.operand), float_type(m.result), false,       m.b_transposed,
                              m.size.rows,           m.size.cols,          m.size.depth};
  const CudaProductSpec stored = dense(m);
  product.a_step = stored.a_step();
  product.b_step = stored.b_step();
  return product;
}

CudaOffer make_few_rows(const KernelSpec& spec, const CudaContext& context) {
  const LinearOperands at = linear_operands(spec.attrs);
  if (std::string refusal = refusal_of(spec, kLinearAttrs, at.count); !refusal.empty()) return {nullptr, refusal};
  if (std::string refusal = invariance_refusal(spec); !refusal.empty()) return {nullptr, refusal};
  const MatmulSpec m = linear_product(spec.call());
  if (!m.b_storage.dense()) return {nullptr, "the weight is stored in blocks of codes"};
  if (m.size.rows > cuda::kFewRows) return {nullptr, fmt::format("more than {} rows", cuda::kFewRows)};
  return {cuda_kernel_of([m, wide = row_product(wide_part(m)), low = row_product(low_rank_part(m)), at,
                          multiprocessors = context.multiprocessors](const KernelCall& call, CudaStream stream) {
            cuda::DeviceProduct p = wide;
            p.a = call.inputs[LinearInputs::left].data;
            p.b = multiplied_weight(m, call, multiprocessors, stream);
            p.c = call.outputs[0].data;
            p.bias = static_cast<const float*>(input_at(call, at.bias));
            p.addend = input_at(call, at.last);
            cuda::launch_row_product(p, stream);
            if (at.low_rank == 0) return;
            p = low;
            p.a = call.inputs[at.low_rank].data;
            p.b = call.inputs[at.low_rank + 1].data;
            p.c = call.outputs[0].data;
            p.addend = p.c;
            cuda::launch_row_product(p, stream);
          }),
          {}};
}

template <CudaProductMaker make>
CudaOffer make_linear(const KernelSpec& spec, const CudaContext& context) {
  const size_t inputs = linear_operands(spec.attrs).count;
  if (std::string refusal = refusal_of(spec, kLinearAttrs, inputs); !refusal.empty()) return {nullptr, refusal};
  if (make == make_library_product)
    if (std::string refusal = invariance_refusal(spec); !refusal.empty()) return {nullptr, refusal};
  return product_kernel(make, make, linear_product(spec.call()), spec, context);
}

constexpr std::array<std::string_view, 5> kInputGradientAttrs{"addend", "dtype", "layout", "low_rank", "multiply"};

template <CudaProductMaker make>
CudaOffer make_linear_dx(const KernelSpec& spec, const CudaContext& context) {
  const size_t inputs = linear_operands(spec.attrs).count;
  if (std::string refusal = refusal_of(spec, kInputGradientAttrs, inputs); !refusal.empty()) return {nullptr, refusal};
  return product_kernel(make, make, linear_dx_product(spec.call()), spec, context);
}

class WeightGradientKernel final : public CudaKernel {
 public:
  // `first` overwrites the accumulator; nullptr when no trip does that.
  WeightGradientKernel(std::shared_ptr<const CudaProduct> first, std::shared_ptr<const CudaProduct> adding, bool out_in)
      : first_(std::move(first)), adding_(std::move(adding)), out_in_(out_in) {}

  void enqueue(const KernelCall& call, CudaStream stream) const override {
    const void* const x = call.inputs[LinearGradInputs::x].data;
    const void* const dy = call.inputs[LinearGradInputs::dy].data;
    void* const sums = call.outputs[0].data;
    const CudaProductArguments arguments{out_in_ ? dy : x, out_in_ ? x : dy, sums, nullptr, sums, call.scratch.data()};
    const bool overwrites = first_ && call.trip == 0;
    if (overwrites || (first_ && launch_mode() == LaunchMode::load)) first_->run(arguments, stream);
    if (!overwrites || launch_mode() == LaunchMode::load) adding_->run(arguments, stream);
  }

 private:
  std::shared_ptr<const CudaProduct> first_;
  std::shared_ptr<const CudaProduct> adding_;
  bool out_in_;
};

constexpr std::array<std::string_view, 3> kWeightGradientAttrs{"accumulate", "layout", "multiply"};

CudaOffer weight_gradient(CudaProductMaker make, const KernelSpec& spec, const CudaContext& context) {
  if (std::string refusal = refusal_of(spec, kWeightGradientAttrs, 3); !refusal.empty()) return {nullptr, refusal};
  CudaProductOffer first, adding = make(dense(linear_dw_product(spec.call(), true)), context, spec.scratch_bytes);
  if (!adding.call) return {nullptr, adding.refusal};
  if (spec.attrs.text("accumulate", "always") == "carried") {
    first = make(dense(linear_dw_product(spec.call(), false)), context, spec.scratch_bytes);
    if (!first.call) return {nullptr, first.refusal};
  }
  return {std::make_unique<WeightGradientKernel>(std::move(first.call), std::move(adding.call), is_out_in(spec.attrs)),
          {}};
}

template <CudaProductMaker make>
CudaOffer make_linear_dw(const KernelSpec& spec, const CudaContext& context) {
  return weight_gradient(make, spec, context);
}

// fp8 products, for calls that ask for them: gradients in e5m2, other operands in e4m3. Low-rank products stay in bf16.
constexpr CudaProductMaker kOfValues = make_fp8_product_of<Fp8Format::e4m3, Fp8Format::e4m3>,
                           kOfGradient = make_fp8_product_of<Fp8Format::e5m2, Fp8Format::e4m3>,
                           kByGradient = make_fp8_product_of<Fp8Format::e4m3, Fp8Format::e5m2>;

// Like refusal_of(); also refuses when fp8 is not asked for.
template <size_t N>
std::string refusal_in_fp8(const KernelSpec& spec, const std::array<std::string_view, N>& known, size_t inputs) {
  std::string refusal = refusal_of(spec, known, inputs);
  if (refusal.empty() && spec.attrs.text("multiply") != kMultiplyFp8) refusal = "fp8 is not asked for";
  if (refusal.empty()) refusal = invariance_refusal(spec);  // all rows share one scale
  return refusal;
}

CudaOffer make_linear_fp8(const KernelSpec& spec, const CudaContext& context) {
  const size_t inputs = linear_operands(spec.attrs).count;
  if (std::string refusal = refusal_in_fp8(spec, kLinearAttrs, inputs); !refusal.empty()) return {nullptr, refusal};
  return product_kernel(kOfValues, make_library_product, linear_product(spec.call()), spec, context);
}

CudaOffer make_linear_dx_fp8(const KernelSpec& spec, const CudaContext& context) {
  const size_t inputs = linear_operands(spec.attrs).count;
  if (std::string refusal = refusal_in_fp8(spec, kInputGradientAttrs, inputs); !refusal.empty())
    return {nullptr, refusal};
  return product_kernel(kOfGradient, make_library_product, linear_dx_product(spec.call()), spec, context);
}

CudaOffer make_linear_dw_fp8(const KernelSpec& spec, const CudaContext& context) {
  if (std::string refusal = refusal_in_fp8(spec, kWeightGradientAttrs, 3); !refusal.empty()) return {nullptr, refusal};
  return weight_gradient(is_out_in(spec.attrs) ? kOfGradient : kByGradient, spec, context);
}

std::unique_ptr<CudaKernel> make_bias_grad(const KernelSpec& spec, const CudaContext&) {
  const int64_t cols = count_of(spec.outputs[0]), rows = cols == 0 ? 0 : count_of(spec.inputs[0]) / cols;
  const int64_t needed = cuda::sum_scratch_bytes(rows, cols);
  HR_CHECK(needed <= spec.scratch_bytes, "bias_grad needs {} bytes of scratch, {} are booked", needed,
           spec.scratch_bytes);
  return cuda_kernel_of([type = float_type(spec.inputs[0].dtype), cols, rows,
                         carried = spec.attrs.text("accumulate", "always") == "carried"](const KernelCall& call,
                                                                                         CudaStream stream) {
    cuda::launch_sum_over_rows(type, call.inputs[0].data, rows, cols, cols, static_cast<float*>(call.outputs[0].data),
                               carried && call.trip == 0, call.scratch.data(), stream);
  });
}

}  // namespace

void register_linear_cuda(CudaKernels& kernels) {
  kernels.add("linear", {{"rows", make_few_rows},
                         {"fp8", make_linear_fp8},
                         {"cublaslt", make_linear<make_library_product>},
                         {"mma", make_linear<make_mma_product>},
                         {"plain", make_linear<make_tiled_product>}});
  kernels.add("linear_dx", {{"fp8", make_linear_dx_fp8},
                            {"cublaslt", make_linear_dx<make_library_product>},
                            {"mma", make_linear_dx<make_mma_product>},
                            {"plain", make_linear_dx<make_tiled_product>}});
  kernels.add("linear_dw", {{"fp8", make_linear_dw_fp8},
                            {"cublaslt", make_linear_dw<make_library_product>},
                            {"mma", make_linear_dw<make_mma_product>},
                            {"plain", make_linear_dw<make_tiled_product>}});
  kernels.add("bias_grad", one_cuda_kernel<make_bias_grad>());
}

}  // namespace headroom
