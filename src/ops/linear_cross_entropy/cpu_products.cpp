// The loss of a chunk of rows: logits, softmax, and in the gradient two more products.
#include <algorithm>

#include "base/error.h"
#include "base/threads.h"
#include "ops/add/simd.h"
#include "ops/linear_cross_entropy/cpu_chunk.h"

namespace headroom {
namespace {

// The products of a chunk of `rows` rows; a shorter last chunk has its own.
struct ChunkProducts {
  int64_t rows = 0;
  std::unique_ptr<Matmul> logits, dx, dw_first, dw_adding;
};

class ProductLoss final : public ChunkLoss {
 public:
  ProductLoss(const LossShape& shape, const LossScratch& scratch, const LossOptions& options, DType dtype,
              SoftmaxLoss softmax)
      : shape_(shape), scratch_(scratch), options_(options), dtype_(dtype), softmax_(softmax) {}

  // Creates the products. Returns the reason if one is refused, else an empty string.
  std::string prepare(MatmulMaker make, const DeviceFacts& facts) {
    const int64_t tail = shape_.rows % shape_.chunk;
    for (int64_t rows : {shape_.chunk, tail}) {
      if (rows == 0) continue;
      ChunkProducts products;
      products.rows = rows;
      std::string refusal =
          take(products.logits, make(logits_product(shape_, dtype_, rows), facts, scratch_.workspace));
      if (options_.gradient)
        refusal += take(products.dx, make(loss_dx_product(shape_, dtype_, rows), facts, scratch_.workspace));
      if (options_.weight_carried)
        refusal +=
            take(products.dw_first, make(loss_dw_product(shape_, dtype_, rows, false), facts, scratch_.workspace));
      if (options_.trains)
        refusal +=
            take(products.dw_adding, make(loss_dw_product(shape_, dtype_, rows, true), facts, scratch_.workspace));
      if (!refusal.empty()) return refusal;
      products_.push_back(std::move(products));
    }
    return {};
  }

  LossSums run(const KernelCall& call, const LossChunk& chunk) const override {
    const ChunkProducts& products = chunk.rows == products_.front().rows ? products_.front() : products_.back();
    const void* x = row_of(call.inputs[LossGradInputs::x], chunk.first, shape_.hidden);
    const void* w = call.inputs[LossGradInputs::weight].data;
    std::byte* workspace = call.scratch.data() + scratch_.logits + scratch_.losses;
    const LossRows rows = rows_of(call, chunk);
    products.logits->run(
        {x, w, rows.logits, static_cast<const float*>(loss_bias(shape_, options_, call)), nullptr, workspace});
    softmax_(rows);
    if (options_.gradient)
      products.dx->run({rows.logits, w, row_of(call.outputs[LossGradOutputs::dx], chunk.first, shape_.hidden), nullptr,
                        nullptr, workspace});
    if (options_.trains_bias) add_columns(rows, bias_sums(call));
    if (options_.trains) {
      float* sums = call.outputs[LossGradOutputs::accumulator].as<float>();
      const Matmul& dw = chunk.overwrite ? *products.dw_first : *products.dw_adding;
      dw.run({shape_.out_in ? rows.logits : x, shape_.out_in ? x : rows.logits, sums, nullptr, sums, workspace});
    }
    LossSums found;
    for (int64_t row = 0; row < rows.rows; ++row) found.loss += rows.losses[row];
    for (int64_t row = 0; rows.hits != nullptr && row < rows.rows; ++row) found.hits += rows.hits[row];
    return found;
  }

 private:
  static std::string take(std::unique_ptr<Matmul>& to, MatmulOffer offer) {
    to = std::move(offer.matmul);
    return to ? std::string() : offer.refusal;
  }

  LossRows rows_of(const KernelCall& call, const LossChunk& chunk) const {
    LossRows rows;
    rows.logits = reinterpret_cast<float*>(call.scratch.data());
    rows.rows = chunk.rows;
    rows.vocabulary = shape_.vocabulary;
    rows.targets = chunk.targets;
    rows.first_row = chunk.first;
    rows.losses = reinterpret_cast<double*>(call.scratch.data() + scratch_.logits);
    if (shape_.hits) rows.hits = rows.losses + shape_.chunk;
    rows.gradient = options_.gradient;
    rows.dtype = dtype_;
    rows.scale = options_.gradient ? *call.inputs[LossGradInputs::scale].as<float>() : 1.0f;
    rows.softcap = options_.softcap;
    return rows;
  }

  LossShape shape_;
  LossScratch scratch_;
  LossOptions options_;
  DType dtype_;
  SoftmaxLoss softmax_;
  std::vector<ChunkProducts> products_;
};

}  // namespace

void add_sums(double* sums, const LossSums& found, int64_t counted, bool hits, bool adds) {
  sums[0] = adds ? sums[0] + found.loss : found.loss;
  sums[1] = adds ? sums[1] + static_cast<double>(counted) : static_cast<double>(counted);
  if (hits) sums[2] = adds ? sums[2] + found.hits : found.hits;
}

void require_label(int32_t target, int64_t row, int64_t sequence, bool shift, int64_t vocabulary) {
  HR_CHECK(target >= 0 && target < vocabulary,
           "label {} at position {} of sequence {} is outside the vocabulary of {} tokens", target,
           row % sequence + int64_t{shift}, row / sequence, vocabulary);
}

void add_columns(const LossRows& rows, float* sums) {
  parallel_for(rows.vocabulary, 256, [&](int64_t begin, int64_t end, int) {
    for (int64_t row = 0; row < rows.rows; ++row)
      accumulate_floats(gradient_row<std::byte>(rows, row) + begin * dtype_bytes(rows.dtype), rows.dtype, sums + begin,
                        end - begin);
  });
}

ChunkLossOffer make_product_loss(const KernelSpec& spec, const DeviceFacts& facts, MatmulMaker make,
                                 SoftmaxLoss softmax) {
  const LossOptions options = loss_options(spec);
  LossShape shape = loss_shape(spec.call());
  const auto scratch = [&] {
    return product_loss_scratch(shape, spec.inputs[LossInputs::x].dtype, facts, options.gradient, options.trains);
  };
  while (shape.chunk > 1 && scratch().total() > spec.scratch_bytes) shape.chunk = (shape.chunk + 1) / 2;
  if (const int64_t needed = scratch().total(); needed > spec.scratch_bytes)
    return {nullptr, 0, fmt::format("needs {} bytes of scratch, {} are booked", needed, spec.scratch_bytes)};
  auto loss = std::make_unique<ProductLoss>(shape, scratch(), options, spec.inputs[LossInputs::x].dtype, softmax);
  std::string refusal = loss->prepare(make, facts);
  if (!refusal.empty()) return {nullptr, 0, std::move(refusal)};
  return {std::move(loss), shape.chunk, {}};
}

}  // namespace headroom
