// The sizes behind the loss on AMX tiles, shared by rules and kernels. Logits exist for 32 rows and 32 entries of the
// vocabulary at a time; a chunk keeps only the numerators of its softmax, in bf16.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "ops/cpu/scratch.h"
#include "ops/linear_cross_entropy/shape.h"
#include "ops/linear_cross_entropy/sliced.h"

namespace headroom {

// A last strip that is only partly filled costs as much as a whole one: little if there are many strips.
inline bool cuts_well(int64_t vocabulary) { return vocabulary % 32 == 0 || vocabulary > 1024; }

// Whether a call runs on tiles: x in bf16, w stored [vocabulary, hidden] with rows of whole tiles, nothing between
// product and softmax.
inline bool runs_tiled(const OpCall& call, const DeviceFacts& facts) {
  const LossShape s = loss_shape(call);
  return facts.capabilities.has(kAmx) && call.inputs[LossInputs::x].dtype == DType::bf16 && s.out_in &&
         s.hidden % 32 == 0 && cuts_well(s.vocabulary) && !s.bias && call.attrs.real("softcap", 0) == 0;
}

// How a chunk is cut: a cell is one thread's range of the vocabulary, which is processed in blocks. Counts are in tiles
// of 32 (rows, hidden) or strips of 32 entries (vocabulary).
struct TiledLoss {
  bool gradient = false, trains = false;
  bool rounds = false;  // w is f32
  int64_t rows = 0, hidden = 0, strips = 0;
  int64_t tail = 0;  // entries of the last strip, 0: it is whole
  int64_t cells = 1, cell_strips = 0, block = 0;
};

inline TiledLoss cut_tiled_loss(const OpCall& call, bool gradient, int threads) {
  const LossShape s = loss_shape(call);
  TiledLoss cut;
  cut.gradient = gradient;
  cut.trains = gradient && call.attrs.integer("train_weight") != 0;
  cut.rounds = s.rounds_weight;
  cut.rows = matmul_blocks::ceil_div(s.chunk, 32);
  cut.hidden = s.hidden / 32;
  cut.strips = matmul_blocks::ceil_div(s.vocabulary, 32);
  cut.tail = s.vocabulary % 32;
  cut.cell_strips = matmul_blocks::ceil_div(cut.strips, std::max(1, threads));
  cut.cells = matmul_blocks::ceil_div(cut.strips, cut.cell_strips);
  // A block of w and its transpose share the second-level cache.
  constexpr int64_t kBlockBytes = int64_t{5} << 17;
  cut.block = matmul_blocks::even_piece(cut.cell_strips, std::max<int64_t>(8, kBlockBytes / (s.hidden * 64)));
  return cut;
}

constexpr int64_t kLossTile = 32 * 32;      // sums
constexpr int64_t kLossStep = 2 * 32 * 32;  // bytes of two tiles of bf16

// Scratch of a chunk that all cells share. `rows` are tiles of 32 rows; the last one may be padded.
struct TiledChunk {
  std::byte* x;           // [rows][hidden] right operands
  std::byte* numerators;  // [strips][rows] left operands: exp(logit - the cell's reference), 0 at targets
  int32_t* targets;       // per row: the entry of the vocabulary, or -1
  float* chosen;          // per row: the target's logit
  float* slopes;          // per row: the gradient of the loss with respect to the target's logit
  double* losses;         // per row
  double* hits;           // per row
};

inline TiledChunk tiled_chunk(Carver& carver, const TiledLoss& cut) {
  const int64_t rows = cut.rows * 32;
  TiledChunk chunk{};
  chunk.x = carver.take<std::byte>(cut.rows * cut.hidden * kLossStep);
  chunk.numerators = carver.take<std::byte>(cut.trains ? cut.strips * cut.rows * kLossStep : 0);
  chunk.targets = carver.take<int32_t>(rows);
  chunk.chosen = carver.take<float>(rows);
  chunk.slopes = carver.take<float>(rows);
  chunk.losses = carver.take<double>(rows);
  chunk.hits = carver.take<double>(rows);
  return chunk;
}

// Scratch of a cell.
struct TiledCell {
  float* logits;       // two tiles, the current one and the one before
  float* references;   // per row, in the base-2 domain
  float* largest;      // per row
  double* sums;        // per row: of the numerators
  float* factors;      // per row: numerator -> gradient
  uint16_t* rounded;   // [block][32 hidden]: a block of f32 w, or one whose last strip is padded
  std::byte* weight;   // [hidden][block] left operands: a block of w, transposed
  std::byte* columns;  // [block] right operands: numerators of 32 rows
  float* dx;           // [rows][hidden] tiles, transposed, before the factors
  uint16_t* staged;    // 32 rows of x with their factors
  std::byte* scaled;   // [hidden][rows] right operands: x with its factors
  float* last_sums;    // [32][32 hidden]: the sums of a padded last strip
};

inline TiledCell tiled_cell(Carver& carver, const TiledLoss& cut) {
  const int64_t rows = cut.rows * 32;
  TiledCell cell{};
  cell.logits = carver.take<float>(2 * kLossTile);
  cell.references = carver.take<float>(rows);
  cell.largest = carver.take<float>(rows);
  cell.sums = carver.take<double>(rows);
  cell.rounded = carver.take<uint16_t>(cut.rounds || cut.tail > 0 ? cut.block * cut.hidden * 32 * 32 : 0);
  if (!cut.gradient) return cell;
  cell.factors = carver.take<float>(rows);
  cell.weight = carver.take<std::byte>(cut.hidden * cut.block * kLossStep);
  cell.columns = carver.take<std::byte>(cut.block * kLossStep);
  cell.dx = carver.take<float>(cut.rows * cut.hidden * kLossTile);
  if (!cut.trains) return cell;
  cell.staged = carver.take<uint16_t>(cut.hidden * 32 * 32);
  cell.scaled = carver.take<std::byte>(cut.hidden * cut.rows * kLossStep);
  cell.last_sums = carver.take<float>(cut.tail > 0 ? cut.hidden * kLossTile : 0);
  return cell;
}

inline int64_t tiled_scratch(const TiledLoss& cut) {
  Carver chunk, cell;
  tiled_chunk(chunk, cut);
  tiled_cell(cell, cut);
  return chunk.used() + cut.cells * cell.used();
}

inline bool runs_sliced(const OpCall& call, const DeviceFacts& facts, bool gradient) {
  return !runs_tiled(call, facts) &&
         slices_vocabulary(loss_shape(call), call.inputs[LossInputs::x].dtype, facts, gradient);
}

// Scratch of the loss on the CPU. With tiles it is also enough for the products of at least one row at a time, in case
// the system does not let the process use tiles.
inline int64_t loss_scratch(const OpCall& call, const DeviceFacts& facts, bool gradient) {
  const bool trains = gradient && call.attrs.integer("train_weight") != 0;
  const DType dtype = call.inputs[LossInputs::x].dtype;
  LossShape shape = loss_shape(call);
  if (runs_sliced(call, facts, gradient)) return sliced_scratch(shape, dtype, facts, gradient, trains);
  const bool tiled = runs_tiled(call, facts);
  if (tiled) shape.chunk = 1;
  const int64_t products = product_loss_scratch(shape, dtype, facts, gradient, trains).total();
  return tiled ? std::max(products, tiled_scratch(cut_tiled_loss(call, gradient, facts.threads))) : products;
}

}  // namespace headroom
