// The output projection and the loss, chunk by chunk of rows.
#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "ops/linear_cross_entropy/cpu_chunk.h"
#include "ops/linear_cross_entropy/tiled.h"

namespace headroom {
namespace {

class LossKernel final : public CpuKernel {
 public:
  LossKernel(const KernelSpec& spec, ChunkLossOffer offer)
      : shape_(loss_shape(spec.call())),
        options_(loss_options(spec)),
        dtype_(spec.inputs[LossInputs::x].dtype),
        chunk_(offer.chunk),
        loss_(std::move(offer.loss)) {}

  void run(const KernelCall& call) const override {
    const Targets targets{call.inputs[LossInputs::labels].as<int32_t>(), shape_.sequence, shape_.shift};
    const int64_t counted = check_labels(targets);
    LossSums found;
    bool overwrite = options_.weight_carried && call.trip == 0;
    if (options_.bias_carried && call.trip == 0) std::fill_n(bias_sums(call), shape_.vocabulary, 0.0f);
    for (int64_t first = 0; first < shape_.rows; first += chunk_) {
      const LossChunk chunk{first, std::min(chunk_, shape_.rows - first), targets, overwrite};
      if (has_target(chunk)) {
        const LossSums more = loss_->run(call, chunk);
        found.loss += more.loss;
        found.hits += more.hits;
        overwrite = false;
      } else if (options_.gradient) {
        const int64_t row_bytes = shape_.hidden * dtype_bytes(dtype_);
        std::memset(call.outputs[LossGradOutputs::dx].as<std::byte>() + first * row_bytes, 0,
                    static_cast<size_t>(chunk.rows * row_bytes));
      }
    }
    if (overwrite)
      std::memset(call.outputs[LossGradOutputs::accumulator].data, 0,
                  static_cast<size_t>(call.outputs[LossGradOutputs::accumulator].count() * 4));
    add_sums(call.outputs[options_.gradient ? 1 : 0].as<double>(), found, counted, shape_.hits,
             !options_.loss_carried || call.trip != 0);
  }

 private:
  // Returns the number of targets. The host only gives labels that the model accepts (data/batch_reader.h).
  int64_t check_labels(const Targets& targets) const {
    int64_t counted = 0;
    for (int64_t row = 0; row < shape_.rows; ++row) {
      const int32_t target = targets.at(row);
      if (target == Targets::kNone) continue;
      require_label(target, row, shape_.sequence, shape_.shift, shape_.vocabulary);
      ++counted;
    }
    return counted;
  }

  static bool has_target(const LossChunk& chunk) {
    for (int64_t row = chunk.first; row < chunk.first + chunk.rows; ++row)
      if (chunk.targets.at(row) != Targets::kNone) return true;
    return false;
  }

  LossShape shape_;
  LossOptions options_;
  DType dtype_;
  int64_t chunk_;
  std::unique_ptr<ChunkLoss> loss_;
};

KernelOffer make_loss(const KernelSpec& spec, ChunkLossOffer offer) {
  if (!offer.loss) return {nullptr, std::move(offer.refusal)};
  return {std::make_unique<LossKernel>(spec, std::move(offer)), {}};
}

template <MatmulMaker make>
KernelOffer make_products(const KernelSpec& spec, const DeviceFacts& facts) {
  if (runs_sliced(spec.call(), facts, loss_options(spec).gradient))
    return make_loss(spec, make_sliced_loss(spec, facts, make));
  return make_loss(spec, make_product_loss(spec, facts, make, simd_softmax_loss()));
}

// Plain loops need no workspace.
KernelOffer make_reference(const KernelSpec& spec, const DeviceFacts& facts) {
  DeviceFacts plain = facts;
  plain.capabilities = {};
  return make_loss(spec, make_product_loss(spec, plain, make_reference_matmul, plain_softmax_loss));
}

KernelOffer make_tiles(const KernelSpec& spec, const DeviceFacts& facts) {
  return make_loss(spec, make_tiled_loss(spec, facts));
}

}  // namespace

void register_linear_cross_entropy_cpu(CpuKernels& kernels) {
  for (const char* op : {"linear_cross_entropy", "linear_cross_entropy_grad"})
    kernels.add(op, {{"amx_tiles", make_tiles},
                     {"amx", make_products<make_amx_matmul>},
                     {"onednn", make_products<make_onednn_matmul>},
                     {"simd", make_products<make_simd_matmul>},
                     {"reference", make_reference}});
}

}  // namespace headroom
