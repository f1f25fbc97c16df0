// The loss of a chunk of rows on AMX tiles. Each thread computes its share of the vocabulary; the sums of the shares
// are joined row by row, in order. Then dx is computed from all shares, and dw share by share.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/error.h"
#include "base/threads.h"
#include "ops/cpu/amx.h"
#include "ops/linear_cross_entropy/cpu_chunk.h"
#include "ops/linear_cross_entropy/cpu_tiled_pass.h"

#ifdef HEADROOM_HAS_AMX

namespace headroom {
namespace {

constexpr int64_t kMostCells = 256;

class TiledLossKernel final : public ChunkLoss {
 public:
  TiledLossKernel(const KernelSpec& spec, const TiledLoss& cut, const TileKernel& tiles)
      : shape_(loss_shape(spec.call())), options_(loss_options(spec)), cut_(cut), tiles_(tiles) {}

  LossSums run(const KernelCall& call, const LossChunk& chunk) const override {
    TiledPass passes[kMostCells];
    place(call, chunk, passes);
    const uint16_t* const x = call.inputs[LossGradInputs::x].as<uint16_t>() + chunk.first * shape_.hidden;
    start_rows(passes[0], chunk, x);
    on_cells(passes, run_vocabulary);
    const float scale = options_.gradient ? *call.inputs[LossGradInputs::scale].as<float>() : 1.0f;
    const LossSums found = join(passes, chunk.rows, scale);
    if (!options_.gradient) return found;
    uint16_t* const dx = call.outputs[LossGradOutputs::dx].as<uint16_t>() + chunk.first * shape_.hidden;
    parallel_for(passes[0].cut.rows, 1, [&](int64_t begin, int64_t end, int) {
      for (int64_t tile = begin; tile < end; ++tile) store_dx(passes, cut_.cells, chunk.rows, tile, dx);
    });
    if (!options_.trains) return found;
    float* const sums = call.outputs[LossGradOutputs::accumulator].as<float>();
    on_cells(passes, [&](const TiledPass& pass) {
      for (int64_t tile = 0; tile < pass.cut.rows; ++tile) scale_rows(pass, x, chunk.rows, tile);
      multiply_numerators(pass, chunk.overwrite, sums);
      add_targets(pass, x, chunk.rows, sums);
    });
    return found;
  }

 private:
  void place(const KernelCall& call, const LossChunk& chunk, TiledPass* passes) const {
    Carver carver(call.scratch.data());
    const TiledChunk shared = tiled_chunk(carver, cut_);
    for (int64_t cell = 0; cell < cut_.cells; ++cell) {
      TiledPass& pass = passes[cell];
      pass.cut = cut_;
      pass.cut.rows = matmul_blocks::ceil_div(chunk.rows, 32);
      pass.chunk = shared;
      pass.cell = tiled_cell(carver, cut_);
      pass.tiles = &tiles_;
      pass.w = call.inputs[LossGradInputs::weight].data;
      pass.first = cell * cut_.cell_strips;
      pass.last = std::min(cut_.strips, pass.first + cut_.cell_strips);
    }
  }

  template <typename Body>
  void on_cells(const TiledPass* passes, Body body) const {
    parallel_for(cut_.cells, 1, [&](int64_t begin, int64_t end, int) {
      tiles_.enter();
      for (int64_t cell = begin; cell < end; ++cell) body(passes[cell]);
      tiles_.leave();
    });
  }

  // Writes the targets of the rows, and the rows as right operands.
  void start_rows(const TiledPass& pass, const LossChunk& chunk, const uint16_t* x) const {
    for (int64_t row = 0; row < pass.cut.rows * 32; ++row) {
      const int32_t target = row < chunk.rows ? chunk.targets.at(chunk.first + row) : Targets::kNone;
      pass.chunk.targets[row] = target == Targets::kNone ? -1 : target;
    }
    parallel_for(pass.cut.rows, 1, [&](int64_t begin, int64_t end, int) {
      const int64_t strip = cut_.hidden * kLossStep;
      tiles_.pack_b({x, DType::bf16, shape_.hidden, false, begin * 32, std::min(chunk.rows, end * 32) - begin * 32, 0,
                     shape_.hidden, pass.chunk.x + begin * strip, strip});
    });
  }

  LossSums join(const TiledPass* passes, int64_t rows, float scale) const {
    const TiledChunk& chunk = passes[0].chunk;
    parallel_for(rows, 32, [&](int64_t begin, int64_t end, int) {
      for (int64_t row = begin; row < end; ++row) join_row(passes, row, scale);
    });
    LossSums found;
    for (int64_t row = 0; row < rows; ++row) {
      found.loss += chunk.losses[row];
      found.hits += chunk.hits[row];
    }
    return found;
  }

  // In the base-2 domain: the logarithm of the sum of all shares, and from it the loss, the gradient with respect to
  // the target's logit, and the factors of the shares.
  void join_row(const TiledPass* passes, int64_t row, float scale) const {
    const TiledChunk& chunk = passes[0].chunk;
    chunk.losses[row] = chunk.hits[row] = 0;
    if (chunk.targets[row] < 0) return;
    double reference = -std::numeric_limits<double>::infinity(), sum = 0;
    float largest = -std::numeric_limits<float>::infinity();
    for (int64_t cell = 0; cell < cut_.cells; ++cell) {
      reference = std::max(reference, static_cast<double>(passes[cell].cell.references[row]));
      largest = std::max(largest, passes[cell].cell.largest[row]);
    }
    for (int64_t cell = 0; cell < cut_.cells; ++cell) {
      const TiledCell& at = passes[cell].cell;
      sum += at.sums[row] * std::exp2(static_cast<double>(at.references[row]) - reference);
    }
    const double logarithm = reference + std::log2(sum);
    const double chosen = static_cast<double>(chunk.chosen[row]) * static_cast<double>(std::numbers::log2e_v<float>);
    chunk.losses[row] = (logarithm - chosen) * std::numbers::ln2;
    chunk.hits[row] = chunk.chosen[row] >= largest ? 1 : 0;
    if (!options_.gradient) return;
    chunk.slopes[row] = scale * static_cast<float>(std::exp2(chosen - logarithm) - 1.0);
    for (int64_t cell = 0; cell < cut_.cells; ++cell) {
      const TiledCell& at = passes[cell].cell;
      at.factors[row] = scale * static_cast<float>(std::exp2(static_cast<double>(at.references[row]) - logarithm));
    }
  }

  LossShape shape_;
  LossOptions options_;
  TiledLoss cut_;
  TileKernel tiles_;
};

}  // namespace

ChunkLossOffer make_tiled_loss(const KernelSpec& spec, const DeviceFacts& facts) {
  if (!runs_tiled(spec.call(), facts)) return {nullptr, 0, "the operands are not bf16 in whole tiles"};
  const LossShape shape = loss_shape(spec.call());
  const TileOffer offer = offer_amx_tiles(logits_product(shape, DType::bf16, shape.chunk), facts);
  if (!offer.refusal.empty()) return {nullptr, 0, offer.refusal};
  const TiledLoss cut = cut_tiled_loss(spec.call(), loss_options(spec).gradient, facts.threads);
  if (cut.cells > kMostCells) return {nullptr, 0, fmt::format("{} threads", cut.cells)};
  if (const int64_t needed = tiled_scratch(cut); needed > spec.scratch_bytes)
    return {nullptr, 0, fmt::format("needs {} bytes of scratch, {} are booked", needed, spec.scratch_bytes)};
  return {std::make_unique<TiledLossKernel>(spec, cut, offer.kernel), shape.chunk, {}};
}

}  // namespace headroom

#else

namespace headroom {
ChunkLossOffer make_tiled_loss(const KernelSpec&, const DeviceFacts&) { return {nullptr, 0, "the machine has no AMX"}; }
}  // namespace headroom

#endif
