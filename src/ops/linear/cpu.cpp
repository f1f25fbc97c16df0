// CPU kernels of the linear layer: each op is one product of ops/cpu/matmul.h, or two variants of it.
#include "base/threads.h"
#include "ops/cpu/kernel.h"
#include "ops/cpu/matmul.h"
#include "ops/linear/cpu_int8_blocks.h"
#include "ops/linear/cpu_rows.h"
#include "ops/linear/scratch.h"
#include "ops/stream/float_types.h"

namespace headroom {
namespace {

const void* data_or_null(const KernelCall& call, size_t input) {
  return input != 0 ? call.inputs[input].data : nullptr;
}

class ProductKernel final : public CpuKernel {
 public:
  ProductKernel(std::unique_ptr<Matmul> matmul, const LinearOperands& inputs)
      : matmul_(std::move(matmul)), inputs_(inputs) {}

  void run(const KernelCall& call) const override {
    matmul_->run({call.inputs[LinearInputs::left].data, call.inputs[LinearInputs::weight].data, call.outputs[0].data,
                  static_cast<const float*>(data_or_null(call, inputs_.bias)), data_or_null(call, inputs_.last),
                  call.scratch.data(), data_or_null(call, inputs_.low_rank),
                  inputs_.low_rank != 0 ? call.inputs[inputs_.low_rank + 1].data : nullptr});
  }

 private:
  std::unique_ptr<Matmul> matmul_;
  LinearOperands inputs_;
};

template <MatmulMaker make>
KernelOffer make_linear(const KernelSpec& spec, const DeviceFacts& facts) {
  if (multiplies_int8_blocks(spec.attrs)) return {nullptr, kInBlocks};
  if (make != make_reference_matmul && is_batch_invariant(spec.attrs))
    return {nullptr, "its sums depend on the number of rows"};
  MatmulOffer offer = make(linear_product(spec.call()), facts, spec.scratch_bytes);
  if (!offer.matmul) return {nullptr, offer.refusal};
  return {std::make_unique<ProductKernel>(std::move(offer.matmul), linear_operands(spec.attrs)), {}};
}

template <MatmulMaker make>
KernelOffer make_linear_dx(const KernelSpec& spec, const DeviceFacts& facts) {
  MatmulOffer offer = make(linear_dx_product(spec.call()), facts, spec.scratch_bytes);
  if (!offer.matmul) return {nullptr, offer.refusal};
  return {std::make_unique<ProductKernel>(std::move(offer.matmul), linear_operands(spec.attrs)), {}};
}

KernelOffer make_linear_reference(const KernelSpec& spec, const DeviceFacts& facts) {
  return multiplies_int8_blocks(spec.attrs) ? make_linear_int8_blocks_reference(spec, facts)
                                            : make_linear<make_reference_matmul>(spec, facts);
}

class WeightGradientKernel final : public CpuKernel {
 public:
  // `first` overwrites the accumulator; nullptr if no trip does.
  WeightGradientKernel(std::unique_ptr<Matmul> first, std::unique_ptr<Matmul> adding, bool out_in)
      : first_(std::move(first)), adding_(std::move(adding)), out_in_(out_in) {}

  void run(const KernelCall& call) const override {
    const Matmul& matmul = first_ && call.trip == 0 ? *first_ : *adding_;
    const void* x = call.inputs[LinearGradInputs::x].data;
    const void* dy = call.inputs[LinearGradInputs::dy].data;
    float* sums = call.outputs[0].as<float>();
    matmul.run({out_in_ ? dy : x, out_in_ ? x : dy, sums, nullptr, sums, call.scratch.data()});
  }

 private:
  std::unique_ptr<Matmul> first_;
  std::unique_ptr<Matmul> adding_;
  bool out_in_;
};

template <MatmulMaker make>
KernelOffer make_linear_dw(const KernelSpec& spec, const DeviceFacts& facts) {
  MatmulOffer first, adding = make(linear_dw_product(spec.call(), true), facts, spec.scratch_bytes);
  if (!adding.matmul) return {nullptr, adding.refusal};
  if (spec.attrs.text("accumulate", "always") == "carried") {
    first = make(linear_dw_product(spec.call(), false), facts, spec.scratch_bytes);
    if (!first.matmul) return {nullptr, first.refusal};
  }
  return {
      std::make_unique<WeightGradientKernel>(std::move(first.matmul), std::move(adding.matmul), is_out_in(spec.attrs)),
      {}};
}

// Sums each column over its rows, in order; the threads divide the columns.
template <typename T>
void sum_columns(const KernelCall& call, bool overwrite) {
  const T* dy = call.inputs[0].as<T>();
  float* sums = call.outputs[0].as<float>();
  const int64_t cols = call.outputs[0].count();
  const int64_t rows = cols == 0 ? 0 : call.inputs[0].count() / cols;
  parallel_for(cols, 64, [&](int64_t begin, int64_t end, int) {
    constexpr int64_t kBlock = 64;
    for (int64_t col = begin; col < end; col += kBlock) {
      const int64_t width = std::min(kBlock, end - col);
      float block[kBlock] = {};
      for (int64_t row = 0; row < rows; ++row)
        for (int64_t i = 0; i < width; ++i) block[i] += static_cast<float>(dy[row * cols + col + i]);
      for (int64_t i = 0; i < width; ++i) sums[col + i] = overwrite ? block[i] : sums[col + i] + block[i];
    }
  });
}

KernelOffer make_bias_grad(const KernelSpec& spec, const DeviceFacts&) {
  const bool carried = spec.attrs.text("accumulate", "always") == "carried";
  return {kernel_of([carried, dtype = spec.inputs[0].dtype](const KernelCall& call) {
            const bool overwrite = carried && call.trip == 0;
            with_float(dtype, [&](auto type) { sum_columns<decltype(type)>(call, overwrite); });
          }),
          {}};
}

}  // namespace

void register_linear_cpu(CpuKernels& kernels) {
  kernels.add("linear", {{"int8-blocks", make_linear_int8_blocks},
                         {"rows", make_linear_rows},
                         {"amx", make_linear<make_amx_matmul>},
                         {"onednn", make_linear<make_onednn_matmul>},
                         {"int8-amx", make_linear<make_amx_int8_matmul>},
                         {"int8-vnni", make_linear<make_vnni_int8_matmul>},
                         {"int8", make_linear<make_int8_matmul>},
                         {"simd", make_linear<make_simd_matmul>},
                         {"reference", make_linear_reference}});
  kernels.add("linear_dx", {{"amx", make_linear_dx<make_amx_matmul>},
                            {"onednn", make_linear_dx<make_onednn_matmul>},
                            {"int8-amx", make_linear_dx<make_amx_int8_matmul>},
                            {"int8-vnni", make_linear_dx<make_vnni_int8_matmul>},
                            {"int8", make_linear_dx<make_int8_matmul>},
                            {"simd", make_linear_dx<make_simd_matmul>},
                            {"reference", make_linear_dx<make_reference_matmul>}});
  kernels.add("linear_dw", {{"amx", make_linear_dw<make_amx_matmul>},
                            {"onednn", make_linear_dw<make_onednn_matmul>},
                            {"int8-amx", make_linear_dw<make_amx_int8_matmul>},
                            {"int8-vnni", make_linear_dw<make_vnni_int8_matmul>},
                            {"int8", make_linear_dw<make_int8_matmul>},
                            {"simd", make_linear_dw<make_simd_matmul>},
                            {"reference", make_linear_dw<make_reference_matmul>}});
  kernels.add("bias_grad", {{"reference", make_bias_grad}});
}

}  // namespace headroom
