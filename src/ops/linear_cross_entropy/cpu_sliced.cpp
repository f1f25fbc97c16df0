// The loss of many rows, slice by slice of the vocabulary: a pass for the softmax of each row, and for the gradient a
// second one, which computes the logits again.
#include <algorithm>

#include "base/error.h"
#include "ops/cast/convert.h"
#include "ops/linear_cross_entropy/cpu_chunk.h"
#include "ops/linear_cross_entropy/cpu_slice_products.h"

namespace headroom {
namespace {

class SlicedLossKernel final : public ChunkLoss {
 public:
  SlicedLossKernel(const KernelSpec& spec, const LossShape& shape, const DeviceFacts& facts)
      : shape_(shape),
        options_(loss_options(spec)),
        dtype_(spec.inputs[LossInputs::x].dtype),
        facts_(facts),
        slices_(loss_slices(shape, dtype_, options_.gradient)),
        workspace_(slice_workspace(shape, slices_, dtype_, facts, options_.gradient, options_.trains)),
        products_(shape, options_, slices_, dtype_),
        softmax_(simd_slice_softmax()) {}

  int64_t rows() const { return slices_.rows; }

  // Creates the products. Returns the reason if one is refused, else an empty string.
  std::string prepare(MatmulMaker make) { return products_.prepare(make, facts_, workspace_); }

  LossSums run(const KernelCall& call, const LossChunk& chunk) const override {
    Carver carver(call.scratch.data());
    const SlicedLoss scratch = sliced_loss(carver, shape_, slices_, dtype_, options_.gradient, workspace_);
    const Pass pass{call, chunk, scratch};
    std::fill_n(scratch.softmax, chunk.rows, RowSoftmax{});
    each_slice([&](const Entries& entries) {
      softmax_.add(products_.logits_of(operands_of(pass, entries)), entries.first, scratch.softmax);
    });
    if (options_.gradient) {
      each_slice([&](const Entries& entries) { add_gradients(pass, entries); });
      if (dtype_ != DType::f32)
        convert_in_parallel(scratch.dx, DType::f32,
                            row_of(call.outputs[LossGradOutputs::dx], chunk.first, shape_.hidden), dtype_,
                            chunk.rows * shape_.hidden);
    }
    return sums_of(pass);
  }

 private:
  // Of the vocabulary.
  struct Entries {
    int64_t first = 0, count = 0;
  };
  struct Pass {
    const KernelCall& call;
    const LossChunk& chunk;
    const SlicedLoss& scratch;
  };

  template <typename Body>
  void each_slice(Body body) const {
    for (int64_t first = 0; first < shape_.vocabulary; first += slices_.entries)
      body(Entries{first, std::min(slices_.entries, shape_.vocabulary - first)});
  }

  SliceOperands operands_of(const Pass& pass, const Entries& entries) const {
    const auto* const bias = static_cast<const float*>(loss_bias(shape_, options_, pass.call));
    return {pass.chunk.first,
            pass.chunk.rows,
            entries.count,
            pass.chunk.targets,
            row_of(pass.call.inputs[LossInputs::x], pass.chunk.first, shape_.hidden),
            row_of(pass.call.inputs[LossInputs::weight], entries.first, shape_.hidden),
            bias ? bias + entries.first : nullptr,
            options_.gradient ? *pass.call.inputs[LossGradInputs::scale].as<float>() : 1.0f,
            pass.scratch.logits,
            pass.scratch.workspace};
  }

  // Adds a slice's share of dx, and its rows of dw and of the bias's gradient.
  void add_gradients(const Pass& pass, const Entries& entries) const {
    const SliceOperands operands = operands_of(pass, entries);
    const LossRows rows = products_.logits_of(operands);
    softmax_.write_gradient(rows, entries.first, pass.scratch.softmax);
    float* const dx =
        dtype_ == DType::f32
            ? reinterpret_cast<float*>(row_of(pass.call.outputs[LossGradOutputs::dx], pass.chunk.first, shape_.hidden))
            : pass.scratch.dx;
    products_.add_dx(operands, dx, entries.first > 0);
    if (options_.trains_bias) add_columns(rows, bias_sums(pass.call) + entries.first);
    if (!options_.trains) return;
    float* const sums = pass.call.outputs[LossGradOutputs::accumulator].as<float>() + entries.first * shape_.hidden;
    products_.add_dw(operands, sums, !pass.chunk.overwrite);
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
  SliceProducts products_;
  SliceSoftmax softmax_;
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
