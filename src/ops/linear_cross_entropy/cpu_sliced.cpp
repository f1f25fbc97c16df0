// The loss of many rows, slice by slice of the vocabulary: a pass for the softmax of each row, and for the gradient a
// second one, which computes the logits again.
#include <algorithm>

#include "base/error.h"
#include "ops/cast/convert.h"
#include "ops/linear_cross_entropy/cpu_chunk.h"
#include "ops/linear_cross_entropy/sliced.h"

namespace headroom {
namespace {

// The products of one size of slice.
struct SliceProducts {
  LossSlices size;
  std::unique_ptr<Matmul> logits, dx_first, dx_adding, dw_first, dw_adding;
};

class SlicedLossKernel final : public ChunkLoss {
 public:
  SlicedLossKernel(const KernelSpec& spec, const LossShape& shape, const DeviceFacts& facts)
      : shape_(shape),
        options_(loss_options(spec)),
        dtype_(spec.inputs[LossInputs::x].dtype),
        facts_(facts),
        slices_(loss_slices(shape, dtype_, options_.gradient)),
        workspace_(slice_workspace(shape, slices_, dtype_, facts, options_.gradient, options_.trains)),
        softmax_(simd_slice_softmax()) {}

  int64_t rows() const { return slices_.rows; }

  // Creates the products. Returns the reason if one is refused, else an empty string.
  std::string prepare(MatmulMaker make) {
    std::string refusal;
    const auto take = [&](std::unique_ptr<Matmul>& to, const MatmulSpec& spec) {
      MatmulOffer offer = make(spec, facts_, workspace_);
      to = std::move(offer.matmul);
      if (!to && refusal.empty()) refusal = offer.refusal;
    };
    each_slice_size(shape_, slices_, [&](const LossSlices& size) {
      SliceProducts products;
      products.size = size;
      take(products.logits, slice_logits_product(shape_, dtype_, size));
      if (options_.gradient) take(products.dx_first, slice_dx_product(shape_, dtype_, size, false));
      if (options_.gradient) take(products.dx_adding, slice_dx_product(shape_, dtype_, size, true));
      if (options_.weight_carried) take(products.dw_first, slice_dw_product(shape_, dtype_, size, false));
      if (options_.trains) take(products.dw_adding, slice_dw_product(shape_, dtype_, size, true));
      products_.push_back(std::move(products));
    });
    return refusal;
  }

  LossSums run(const KernelCall& call, const LossChunk& chunk) const override {
    Carver carver(call.scratch.data());
    const SlicedLoss scratch = sliced_loss(carver, shape_, slices_, dtype_, options_.gradient, workspace_);
    const Pass pass{call, chunk, scratch};
    std::fill_n(scratch.softmax, chunk.rows, RowSoftmax{});
    each_slice(
        [&](int64_t first, int64_t entries) { softmax_.add(logits_of(pass, first, entries), first, scratch.softmax); });
    if (options_.gradient) {
      each_slice([&](int64_t first, int64_t entries) { add_gradients(pass, first, entries); });
      if (dtype_ != DType::f32)
        convert_in_parallel(scratch.dx, DType::f32,
                            row_of(call.outputs[LossGradOutputs::dx], chunk.first, shape_.hidden), dtype_,
                            chunk.rows * shape_.hidden);
    }
    return sums_of(pass);
  }

 private:
  struct Pass {
    const KernelCall& call;
    const LossChunk& chunk;
    const SlicedLoss& scratch;
  };

  template <typename Body>
  void each_slice(Body body) const {
    for (int64_t first = 0; first < shape_.vocabulary; first += slices_.entries)
      body(first, std::min(slices_.entries, shape_.vocabulary - first));
  }

  const SliceProducts& products_of(int64_t rows, int64_t entries) const {
    return *std::find_if(products_.begin(), products_.end(), [&](const SliceProducts& products) {
      return products.size.rows == rows && products.size.entries == entries;
    });
  }

  // Computes the logits of a slice.
  LossRows logits_of(const Pass& pass, int64_t first, int64_t entries) const {
    const auto* const bias = static_cast<const float*>(loss_bias(shape_, options_, pass.call));
    products_of(pass.chunk.rows, entries)
        .logits->run({row_of(pass.call.inputs[LossInputs::x], pass.chunk.first, shape_.hidden),
                      row_of(pass.call.inputs[LossInputs::weight], first, shape_.hidden), pass.scratch.logits,
                      bias ? bias + first : nullptr, nullptr, pass.scratch.workspace});
    LossRows rows;
    rows.logits = pass.scratch.logits;
    rows.rows = pass.chunk.rows;
    rows.vocabulary = entries;
    rows.targets = pass.chunk.targets;
    rows.first_row = pass.chunk.first;
    rows.gradient = options_.gradient;
    rows.dtype = dtype_;
    rows.scale = options_.gradient ? *pass.call.inputs[LossGradInputs::scale].as<float>() : 1.0f;
    rows.softcap = options_.softcap;
    return rows;
  }

  // Adds a slice's share of dx, and its rows of dw and of the bias's gradient.
  void add_gradients(const Pass& pass, int64_t first, int64_t entries) const {
    const SliceProducts& products = products_of(pass.chunk.rows, entries);
    const LossRows rows = logits_of(pass, first, entries);
    softmax_.write_gradient(rows, first, pass.scratch.softmax);
    void* const dx =
        dtype_ == DType::f32
            ? static_cast<void*>(row_of(pass.call.outputs[LossGradOutputs::dx], pass.chunk.first, shape_.hidden))
            : pass.scratch.dx;
    const Matmul& add_dx = first == 0 ? *products.dx_first : *products.dx_adding;
    add_dx.run({rows.logits, row_of(pass.call.inputs[LossInputs::weight], first, shape_.hidden), dx, nullptr, dx,
                pass.scratch.workspace});
    if (options_.trains_bias) add_columns(rows, bias_sums(pass.call) + first);
    if (!options_.trains) return;
    float* const sums = pass.call.outputs[LossGradOutputs::accumulator].as<float>() + first * shape_.hidden;
    const Matmul& add_dw = pass.chunk.overwrite ? *products.dw_first : *products.dw_adding;
    add_dw.run({rows.logits, row_of(pass.call.inputs[LossInputs::x], pass.chunk.first, shape_.hidden), sums, nullptr,
                sums, pass.scratch.workspace});
  }

  LossSums sums_of(const Pass& pass) const {
    LossSums found;
    for (int64_t row = 0; row < pass.chunk.rows; ++row) {
      if (pass.chunk.targets.at(pass.chunk.first + row) == Targets::kNone) continue;
      const RowSoftmax& softmax = pass.scratch.softmax[row];
      found.loss += softmax.loss();
      found.hits += shape_.hits && softmax.hit() ? 1 : 0;
    }
    return found;
  }

  LossShape shape_;
  LossOptions options_;
  DType dtype_;
  DeviceFacts facts_;
  LossSlices slices_;
  int64_t workspace_;  // bytes
  SliceSoftmax softmax_;
  std::vector<SliceProducts> products_;
};

}  // namespace

ChunkLossOffer make_sliced_loss(const KernelSpec& spec, const DeviceFacts& facts, MatmulMaker make) {
  const LossOptions options = loss_options(spec);
  const LossShape shape = loss_shape(spec.call());
  const int64_t needed =
      sliced_scratch(shape, spec.inputs[LossInputs::x].dtype, facts, options.gradient, options.trains);
  if (needed > spec.scratch_bytes)
    return {nullptr, 0, fmt::format("needs {} bytes of scratch, {} are booked", needed, spec.scratch_bytes)};
  auto loss = std::make_unique<SlicedLossKernel>(spec, shape, facts);
  if (std::string refusal = loss->prepare(make); !refusal.empty()) return {nullptr, 0, std::move(refusal)};
  const int64_t rows = loss->rows();
  return {std::move(loss), rows, {}};
}

}  // namespace headroom
