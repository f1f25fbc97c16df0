// How the gradient of attention is cut into units, query tiles and key tiles; the arithmetic is the engine's.
//
// A unit is a contiguous share of the (query head, query tile) pairs of one kv head. It sums dk and dv in fp32 over its
// pairs in a fixed order; then the units of a kv head are added in order. Shares depend on the shape and segments of
// one batch row and on the team's size, so that repeated runs, and a row computed in another batch, give the same bits.
//
// An Engine is built per unit from (const GradCall&, std::byte* block) and has
//   static int64_t bytes(const AttentionShape&)      bytes of its block
//   static constexpr int64_t kColumns                queries of a tile, a multiple of kStrip
//   static constexpr int64_t kKeys                   keys of a step, a multiple of 32
//   void begin(const void* k, const void* v)         starts a kv head at its first rows; clears the sums
//   void load_queries(const QueryTile&)
//   void announce(const QueryTile& next)             what load_queries will read after this tile; a hint
//   void step(int64_t tile, int64_t count, std::span<const StripStep>)   keys [tile, tile + count), a step per strip
//   void store_queries(void* dq, int64_t rows)
//   void end()                                       the unit's sums are complete
// and its block starts with dk and dv, laid out as in grad_simd_block once end() has run. Recomputation of the
// probabilities and the order of the five products follow FlashAttention-2 (Dao 2023).
#pragma once

#include <array>
#include <span>

#include "ops/attention/forward_driver.h"

namespace headroom {

struct GradCall {
  AttentionShape shape;
  DType dtype = DType::f32;
  int threads = 1;  // the number of threads for which the scratch was booked
  const void* q = nullptr;
  const void* k = nullptr;
  const void* v = nullptr;
  const void* o = nullptr;
  const float* lse = nullptr;
  const void* grad_o = nullptr;
  void* dq = nullptr;
  void* dk = nullptr;
  void* dv = nullptr;
  std::byte* scratch = nullptr;
  RowMask mask = {};
  ScoreDropout dropout = {};
};

// At most kColumns consecutive queries of one head; rows are heads * dim elements apart.
struct QueryTile {
  const void* q = nullptr;
  const void* o = nullptr;
  const void* grad_o = nullptr;
  const float* lse = nullptr;
  void* dq = nullptr;
  int64_t first = 0;  // its first query
  int64_t rows = 0;
  int64_t scores = 0;  // its first row of scores
};

// Adds the units of `groups` kv heads from `first_group` and writes dk and dv. Units are `unit_bytes` apart.
void join_units(const GradCall& call, int64_t first_group, const GradWave& wave, int64_t unit_bytes);

// Splits the (head, tile) pairs of one kv head into `parts` contiguous shares with about the same number of visible
// (query, key) pairs.
class GradShares {
 public:
  GradShares(const AttentionShape& shape, int64_t columns, int64_t parts)
      : shape_(shape), columns_(columns), parts_(parts), tiles_((shape.queries + columns - 1) / columns) {
    total_ = visible_pairs_of(shape, 0, shape.queries) * static_cast<double>(shape.group());
  }

  // Calls visit(head within the group, first query, rows) for the pairs of a share, in order.
  template <typename Visit>
  void for_each(int64_t part, Visit visit) const {
    double before = 0;
    for (int64_t head = 0; head < shape_.group(); ++head) {
      for (int64_t tile = 0; tile < tiles_; ++tile) {
        const int64_t rows = std::min(columns_, shape_.queries - tile * columns_);
        const double pairs = visible_pairs_of(shape_, tile * columns_, rows);
        const double middle = (before + 0.5 * pairs) / total_ * static_cast<double>(parts_);
        before += pairs;
        if (std::min(parts_ - 1, static_cast<int64_t>(middle)) == part) visit(head, tile * columns_, rows);
      }
    }
  }

 private:
  AttentionShape shape_;
  int64_t columns_;
  int64_t parts_;
  int64_t tiles_;
  double total_ = 1;
};

template <typename Engine>
void run_query_tile(Engine& engine, const AttentionShape& shape, const QueryTile& queries) {
  std::array<StripStep, Engine::kColumns / kStrip> steps;
  engine.load_queries(queries);
  const int64_t query = queries.first, end = shape.keys_end(query + queries.rows - 1);
  for (int64_t tile = shape.keys_begin(query) / Engine::kKeys * Engine::kKeys; tile < end; tile += Engine::kKeys) {
    const int64_t count = std::min(Engine::kKeys, end - tile);
    for (int64_t strip = 0; strip * kStrip < Engine::kColumns; ++strip) {
      const int64_t left = std::min(kStrip, queries.rows - strip * kStrip);
      steps[static_cast<size_t>(strip)] =
          left > 0 ? strip_step(shape, query + strip * kStrip, left, tile, count) : StripStep{};
    }
    engine.step(tile, count, steps);
  }
  engine.store_queries(queries.dq, queries.rows);
}

template <typename Engine>
void run_unit(const GradCall& call, int64_t group, int64_t parts, int64_t part, std::byte* block) {
  const int64_t row = group / call.shape.kv_heads;
  const AttentionShape shape = call.shape.of_row(call.mask, row);
  const GradShares shares(shape, Engine::kColumns, parts);
  const int64_t kv_head = group % shape.kv_heads, bytes = dtype_bytes(call.dtype);
  const int64_t kv_offset = (row * shape.keys * shape.kv_heads + kv_head) * shape.dim * bytes;
  Engine engine(call, block);
  engine.begin(static_cast<const std::byte*>(call.k) + kv_offset, static_cast<const std::byte*>(call.v) + kv_offset);
  const auto tile_at = [&](int64_t head, int64_t query, int64_t rows) {
    const int64_t offset = ((row * shape.queries + query) * shape.heads + head) * shape.dim * bytes;
    const int64_t scores = (row * shape.heads + head) * shape.queries + query;
    return QueryTile{static_cast<const std::byte*>(call.q) + offset,
                     static_cast<const std::byte*>(call.o) + offset,
                     static_cast<const std::byte*>(call.grad_o) + offset,
                     call.lse + scores,
                     static_cast<std::byte*>(call.dq) + offset,
                     query,
                     rows,
                     scores};
  };
  QueryTile held;
  shares.for_each(part, [&](int64_t group_head, int64_t query, int64_t rows) {
    const QueryTile tile = tile_at(kv_head * shape.group() + group_head, query, rows);
    engine.announce(tile);
    if (held.rows > 0) run_query_tile(engine, shape, held);
    held = tile;
  });
  if (held.rows > 0) run_query_tile(engine, shape, held);
  engine.end();
}

template <typename Engine>
void run_grad(const GradCall& call) {
  const AttentionShape& shape = call.shape;
  const GradWave wave = grad_wave(shape, call.threads);
  const int64_t bytes = Engine::bytes(shape);
  for (int64_t group = 0; group < shape.batch * shape.kv_heads; group += wave.groups) {
    parallel_for(wave.units(), 1, [&](int64_t begin, int64_t end, int) {
      for (int64_t unit = begin; unit < end; ++unit)
        run_unit<Engine>(call, group + unit / wave.parts, wave.parts, unit % wave.parts, call.scratch + unit * bytes);
    });
    join_units(call, group, wave, bytes);
  }
}

}  // namespace headroom
