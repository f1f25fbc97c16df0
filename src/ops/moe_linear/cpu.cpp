// Kernels of the experts' linear layers: one product per expert, over the rows that the router sent to it.
#include <cstring>

#include "base/threads.h"
#include "ops/cpu/blocked_matmul.h"
#include "ops/cpu/kernel.h"
#include "ops/moe_linear/cpu_rows.h"
#include "ops/moe_linear/products.h"
#include "ops/stream/float_types.h"
#include "ops/stream/scalar_access.h"

namespace headroom {
namespace {

std::byte* at(const TensorView& view, int64_t element) {
  return view.as<std::byte>() + element * dtype_bytes(view.dtype);
}

// body(expert, first row, rows) for every expert.
template <typename Body>
void each_expert(const int32_t* offsets, const ExpertShape& shape, const Body& body) {
  check_offsets(offsets, shape);
  for (int64_t e = 0; e < shape.experts; ++e) body(e, int64_t{offsets[e]}, int64_t{offsets[e + 1]} - offsets[e]);
}

// Each expert's rows of inputs[0] times its matrix of inputs[1]: y or dx.
class RowsKernel final : public CpuKernel {
 public:
  RowsKernel(const KernelSpec& spec, const MatmulSpec& product, TileKernel kernel, int threads)
      : shape_(rows_shape(spec.call())), product_(product), kernel_(kernel), threads_(threads) {}

  void run(const KernelCall& call) const override {
    MatmulSpec product = product_;
    each_expert(call.inputs[ExpertInputs::offsets].as<int32_t>(), shape_,
                [&](int64_t expert, int64_t first, int64_t rows) {
                  if (rows == 0) return;
                  product.size.rows = rows;
                  const int64_t to = first * product.size.cols;
                  const void* addend = product.addend ? at(call.inputs[ExpertInputs::addend], to) : nullptr;
                  run_blocked_matmul(product, kernel_, threads_,
                                     {at(call.inputs[ExpertInputs::rows], first * product.size.depth),
                                      at(call.inputs[ExpertInputs::weight], expert * shape_.outs * shape_.ins),
                                      at(call.outputs[0], to), nullptr, addend, call.scratch.data()});
                });
  }

 private:
  ExpertShape shape_;
  MatmulSpec product_;
  TileKernel kernel_;
  int threads_;
};

class WeightGradientKernel final : public CpuKernel {
 public:
  WeightGradientKernel(const KernelSpec& spec, TileKernel kernel, int threads)
      : shape_(gradient_shape(spec.call())),
        product_(expert_dw_product(spec.call(), 1, true)),
        accumulate_(spec.attrs.text("accumulate", "always")),
        kernel_(kernel),
        threads_(threads) {}

  void run(const KernelCall& call) const override {
    MatmulSpec product = product_;
    product.addend = !overwrites(accumulate_, call.trip);
    each_expert(
        call.inputs[ExpertGradInputs::offsets].as<int32_t>(), shape_, [&](int64_t expert, int64_t first, int64_t rows) {
          float* sums = call.outputs[0].as<float>() + expert * shape_.outs * shape_.ins;
          if (rows == 0) {
            if (!product.addend) clear(sums);
            return;
          }
          product.size.depth = rows;
          run_blocked_matmul(
              product, kernel_, threads_,
              {at(call.inputs[ExpertGradInputs::dy], first * shape_.outs),
               at(call.inputs[ExpertGradInputs::x], first * shape_.ins), sums, nullptr, sums, call.scratch.data()});
        });
  }

 private:
  void clear(float* sums) const {
    parallel_for(shape_.outs * shape_.ins, 4096, [&](int64_t begin, int64_t end, int) {
      std::memset(sums + begin, 0, static_cast<size_t>(end - begin) * sizeof(float));
    });
  }

  ExpertShape shape_;
  MatmulSpec product_;
  std::string accumulate_;
  TileKernel kernel_;
  int threads_;
};

using TileMaker = TileOffer (*)(const MatmulSpec&, const DeviceFacts&);

// Tiles for products up to the size of `most`; refused if they would need more scratch than is booked.
template <TileMaker make>
TileOffer offer_within(const MatmulSpec& most, const KernelSpec& spec, const DeviceFacts& facts) {
  TileOffer offer = make(most, facts);
  if (!offer.refusal.empty()) return offer;
  const int64_t needed = most_blocked_bytes(most, offer.kernel.traits, facts.threads);
  if (needed > spec.scratch_bytes)
    offer.refusal = fmt::format("needs {} bytes of scratch, {} are booked", needed, spec.scratch_bytes);
  return offer;
}

template <TileMaker make, auto Product>
KernelOffer make_rows(const KernelSpec& spec, const DeviceFacts& facts) {
  if (spec.attrs.integer("batch_invariant") != 0) return {nullptr, "sums in an order that depends on the rows"};
  const MatmulSpec most = Product(spec.call(), rows_shape(spec.call()).rows);
  TileOffer offer = offer_within<make>(most, spec, facts);
  if (!offer.refusal.empty()) return {nullptr, std::move(offer.refusal)};
  return {std::make_unique<RowsKernel>(spec, most, offer.kernel, facts.threads), {}};
}

template <TileMaker make>
KernelOffer make_weight_gradient(const KernelSpec& spec, const DeviceFacts& facts) {
  const MatmulSpec most = expert_dw_product(spec.call(), gradient_shape(spec.call()).rows, true);
  TileOffer offer = offer_within<make>(most, spec, facts);
  if (!offer.refusal.empty()) return {nullptr, std::move(offer.refusal)};
  return {std::make_unique<WeightGradientKernel>(spec, offer.kernel, facts.threads), {}};
}

double rounded_to(DType dtype, double number) {
  with_narrow(dtype, [&](auto type) { number = static_cast<float>(decltype(type)(static_cast<float>(number))); });
  return number;
}

// y or dx by plain loops; `forward` says which.
template <bool forward>
std::unique_ptr<CpuKernel> rows_reference(const KernelSpec& spec) {
  const bool addend = spec.attrs.integer("addend") != 0,
             rounds = spec.inputs[ExpertInputs::rows].dtype != spec.inputs[ExpertInputs::weight].dtype;
  return kernel_of([shape = rows_shape(spec.call()), addend, rounds,
                    dtype = spec.inputs[ExpertInputs::rows].dtype](const KernelCall& call) {
    const int64_t cols = forward ? shape.outs : shape.ins, depth = forward ? shape.ins : shape.outs;
    each_expert(call.inputs[ExpertInputs::offsets].as<int32_t>(), shape,
                [&](int64_t expert, int64_t first, int64_t rows) {
                  const int64_t matrix = expert * shape.outs * shape.ins;
                  for (int64_t i = first * cols; i < (first + rows) * cols; ++i) {
                    double sum = addend ? read_element(call.inputs[ExpertInputs::addend], i) : 0;
                    for (int64_t k = 0; k < depth; ++k) {
                      const int64_t weight = matrix + (forward ? i % cols * shape.ins + k : k * shape.ins + i % cols);
                      const double factor = read_element(call.inputs[ExpertInputs::weight], weight);
                      sum += read_element(call.inputs[ExpertInputs::rows], i / cols * depth + k) *
                             (rounds ? rounded_to(dtype, factor) : factor);
                    }
                    write_element(call.outputs[0], i, sum);
                  }
                });
  });
}

std::unique_ptr<CpuKernel> weight_gradient_reference(const KernelSpec& spec) {
  return kernel_of([shape = gradient_shape(spec.call()),
                    accumulate = std::string(spec.attrs.text("accumulate", "always"))](const KernelCall& call) {
    const bool overwrite = overwrites(accumulate, call.trip);
    each_expert(call.inputs[ExpertGradInputs::offsets].as<int32_t>(), shape,
                [&](int64_t expert, int64_t first, int64_t rows) {
                  for (int64_t i = 0; i < shape.outs * shape.ins; ++i) {
                    const int64_t to = expert * shape.outs * shape.ins + i;
                    double sum = overwrite ? 0 : read_element(call.outputs[0], to);
                    for (int64_t row = first; row < first + rows; ++row)
                      sum += read_element(call.inputs[ExpertGradInputs::dy], row * shape.outs + i / shape.ins) *
                             read_element(call.inputs[ExpertGradInputs::x], row * shape.ins + i % shape.ins);
                    write_element(call.outputs[0], to, sum);
                  }
                });
  });
}

template <auto Reference>
KernelOffer make_reference(const KernelSpec& spec, const DeviceFacts&) {
  return {Reference(spec), {}};
}

}  // namespace

void register_moe_linear_cpu(CpuKernels& kernels) {
  kernels.add("expert_linear", {{"rows", make_expert_rows},
                                {"amx", make_rows<offer_amx_tiles, expert_product>},
                                {"simd", make_rows<offer_simd_tiles, expert_product>},
                                {"reference", make_reference<rows_reference<true>>}});
  kernels.add("expert_linear_dx", {{"amx", make_rows<offer_amx_tiles, expert_dx_product>},
                                   {"simd", make_rows<offer_simd_tiles, expert_dx_product>},
                                   {"reference", make_reference<rows_reference<false>>}});
  kernels.add("expert_linear_dw", {{"amx", make_weight_gradient<offer_amx_tiles>},
                                   {"simd", make_weight_gradient<offer_simd_tiles>},
                                   {"reference", make_reference<weight_gradient_reference>}});
}

}  // namespace headroom
