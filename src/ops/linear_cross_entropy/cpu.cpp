// The output projection and the loss, chunk by chunk of rows: logits, softmax, and in the gradient two more products.
#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/threads.h"
#include "ops/add/simd.h"
#include "ops/cpu/kernel.h"
#include "ops/cpu/matmul.h"
#include "ops/linear_cross_entropy/cpu_softmax.h"
#include "ops/linear_cross_entropy/loss_options.h"
#include "ops/linear_cross_entropy/shape.h"

namespace headroom {
namespace {

// The products of a chunk of `rows` rows; the last chunk has its own.
struct ChunkProducts {
  int64_t rows = 0;
  std::unique_ptr<Matmul> logits, dx, dw_first, dw_adding;
};

class LossKernel final : public CpuKernel {
 public:
  LossKernel(const LossShape& shape, const LossScratch& scratch, const LossOptions& options, DType dtype,
             SoftmaxLoss softmax)
      : shape_(shape), scratch_(scratch), options_(options), dtype_(dtype), softmax_(softmax) {}

  // Creates the products; the reason when one is refused.
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

  void run(const KernelCall& call) const override {
    const int64_t counted = check_labels(call);
    Sums found;
    bool overwrite = options_.weight_carried && call.trip == 0;
    if (options_.bias_carried && call.trip == 0) std::fill_n(bias_sums(call), shape_.vocabulary, 0.0f);
    for (int64_t first = 0; first < shape_.rows; first += shape_.chunk) {
      const ChunkProducts& products = shape_.rows - first >= shape_.chunk ? products_.front() : products_.back();
      if (has_target(call, first, products.rows)) {
        run_chunk(call, products, first, overwrite, found);
        overwrite = false;
      } else if (options_.gradient) {
        std::memset(row_of(call.outputs[0], first), 0, static_cast<size_t>(products.rows * row_bytes()));
      }
    }
    if (overwrite) std::memset(call.outputs[2].data, 0, static_cast<size_t>(call.outputs[2].count() * 4));
    double* sums = call.outputs[options_.gradient ? 1 : 0].as<double>();
    const bool adds = !options_.loss_carried || call.trip != 0;
    sums[0] = adds ? sums[0] + found.loss : found.loss;
    sums[1] = adds ? sums[1] + static_cast<double>(counted) : static_cast<double>(counted);
    if (shape_.hits) sums[2] = adds ? sums[2] + found.hits : found.hits;
  }

 private:
  struct Sums {
    double loss = 0, hits = 0;
  };

  static std::string take(std::unique_ptr<Matmul>& to, MatmulOffer offer) {
    to = std::move(offer.matmul);
    return to ? std::string() : offer.refusal;
  }

  Targets targets(const KernelCall& call) const {
    return {call.inputs[2].as<int32_t>(), shape_.sequence, shape_.shift};
  }
  // The bias comes after all other inputs but its own accumulator, which is last; so is its output.
  const float* bias(const KernelCall& call) const {
    return shape_.bias ? call.inputs[call.inputs.size() - 1 - size_t{options_.trains_bias}].as<float>() : nullptr;
  }
  float* bias_sums(const KernelCall& call) const { return call.outputs.back().as<float>(); }
  // Adds the columns of a chunk's dlogits, row after row.
  void add_columns(const KernelCall& call, const std::byte* gradients, int64_t rows) const {
    const int64_t size = dtype_bytes(dtype_);
    float* const sums = bias_sums(call);
    parallel_for(shape_.vocabulary, 256, [&](int64_t begin, int64_t end, int) {
      for (int64_t row = 0; row < rows; ++row)
        accumulate_floats(gradients + (row * shape_.vocabulary + begin) * size, dtype_, sums + begin, end - begin);
    });
  }
  int64_t row_bytes() const { return shape_.hidden * dtype_bytes(dtype_); }
  std::byte* row_of(const TensorView& tensor, int64_t row) const {
    return static_cast<std::byte*>(tensor.data) + row * row_bytes();
  }

  // The number of targets. The host gives no label that names nothing (data/batch_reader.h).
  int64_t check_labels(const KernelCall& call) const {
    const Targets wanted = targets(call);
    int64_t counted = 0;
    for (int64_t row = 0; row < shape_.rows; ++row) {
      const int32_t target = wanted.at(row);
      if (target == Targets::kNone) continue;
      HR_CHECK(target >= 0 && target < shape_.vocabulary,
               "label {} at position {} of sequence {} is outside the vocabulary of {} tokens", target,
               row % shape_.sequence + int64_t{shape_.shift}, row / shape_.sequence, shape_.vocabulary);
      ++counted;
    }
    return counted;
  }

  bool has_target(const KernelCall& call, int64_t first, int64_t rows) const {
    for (int64_t row = first; row < first + rows; ++row)
      if (targets(call).at(row) != Targets::kNone) return true;
    return false;
  }

  // Adds the chunk's rows in their order.
  void run_chunk(const KernelCall& call, const ChunkProducts& products, int64_t first, bool overwrite,
                 Sums& found) const {
    const void* x = row_of(call.inputs[0], first);
    const void* w = call.inputs[1].data;
    std::byte* workspace = call.scratch.data() + scratch_.logits + scratch_.losses;
    LossRows rows;
    rows.logits = reinterpret_cast<float*>(call.scratch.data());
    rows.rows = products.rows;
    rows.vocabulary = shape_.vocabulary;
    rows.targets = targets(call);
    rows.first_row = first;
    rows.losses = reinterpret_cast<double*>(call.scratch.data() + scratch_.logits);
    if (shape_.hits) rows.hits = rows.losses + shape_.chunk;
    rows.gradient = options_.gradient;
    rows.dtype = dtype_;
    rows.scale = options_.gradient ? *call.inputs[3].as<float>() : 1.0f;
    rows.softcap = options_.softcap;
    products.logits->run({x, w, rows.logits, bias(call), nullptr, workspace});
    softmax_(rows);
    if (options_.gradient)
      products.dx->run({rows.logits, w, row_of(call.outputs[0], first), nullptr, nullptr, workspace});
    if (options_.trains_bias) add_columns(call, reinterpret_cast<const std::byte*>(rows.logits), products.rows);
    if (options_.trains) {
      float* sums = call.outputs[2].as<float>();
      const Matmul& dw = overwrite ? *products.dw_first : *products.dw_adding;
      dw.run({shape_.out_in ? rows.logits : x, shape_.out_in ? x : rows.logits, sums, nullptr, sums, workspace});
    }
    double loss = 0;
    for (int64_t row = 0; row < products.rows; ++row) loss += rows.losses[row];
    found.loss += loss;
    for (int64_t row = 0; rows.hits != nullptr && row < products.rows; ++row) found.hits += rows.hits[row];
  }

  LossShape shape_;
  LossScratch scratch_;
  LossOptions options_;
  DType dtype_;
  SoftmaxLoss softmax_;
  std::vector<ChunkProducts> products_;
};

template <MatmulMaker make, bool plain>
KernelOffer make_loss(const KernelSpec& spec, const DeviceFacts& facts) {
  const LossOptions options = loss_options(spec);
  const LossScratch scratch = loss_scratch(spec.call(), facts, options.gradient);
  if (scratch.total() > spec.scratch_bytes)
    return {nullptr, fmt::format("needs {} bytes of scratch, {} are booked", scratch.total(), spec.scratch_bytes)};
  auto kernel = std::make_unique<LossKernel>(loss_shape(spec.call()), scratch, options, spec.inputs[0].dtype,
                                             plain ? plain_softmax_loss : simd_softmax_loss());
  std::string refusal = kernel->prepare(make, facts);
  if (!refusal.empty()) return {nullptr, std::move(refusal)};
  return {std::move(kernel), {}};
}

}  // namespace

void register_linear_cross_entropy_cpu(CpuKernels& kernels) {
  for (const char* op : {"linear_cross_entropy", "linear_cross_entropy_grad"})
    kernels.add(op, {{"amx", make_loss<make_amx_matmul, false>},
                     {"onednn", make_loss<make_onednn_matmul, false>},
                     {"simd", make_loss<make_simd_matmul, false>},
                     {"reference", make_loss<make_reference_matmul, true>}});
}

}  // namespace headroom
