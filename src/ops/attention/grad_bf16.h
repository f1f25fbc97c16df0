// The gradient engine with bf16 products and fp32 sums, for bf16 storage.
#pragma once

#include "ops/attention/bf16_products.h"
#include "ops/attention/grad_driver.h"
#include "ops/attention/rows_ahead.h"

namespace headroom {

// `Products` is Bf16Amx or Bf16Dot.
template <typename Products>
class Bf16Grad {
 public:
  static constexpr int64_t kColumns = kGradStripsBf16 * kStrip;
  static constexpr int64_t kKeys = kGradKeysBf16;

  Bf16Grad(const GradCall& call, std::byte* block);
  ~Bf16Grad() { Products::leave(); }
  Bf16Grad(const Bf16Grad&) = delete;
  Bf16Grad& operator=(const Bf16Grad&) = delete;
  static int64_t bytes(const AttentionShape& shape) { return block_bytes(grad_bf16_block, shape); }

  void begin(const void* k, const void* v);
  void load_queries(const QueryTile& tile);
  void announce(const QueryTile& next);
  void step(int64_t tile, int64_t count, std::span<const StripStep> steps);
  void store_queries(void* dq, int64_t rows);
  void end();

 private:
  // The keys [begin, end) of the tile with the strips [first, last).
  struct Range {
    int64_t begin = kGradKeysBf16;
    int64_t end = 0;
    int64_t first = kGradStripsBf16;
    int64_t last = 0;
  };
  static Range range_of(std::span<const StripStep> steps);
  // Computes the probabilities and the gradient of the scores for a strip and the 32 keys of the tile from `key`.
  void differentiate(int64_t tile, int64_t strip, int64_t key, const StripStep& step);
  void add_to_dq(int64_t tile, int64_t strip, const StripStep& step);
  void add_to_keys(int64_t tile, const Range& range);

  AttentionShape shape_;
  GradBf16Block block_;
  int64_t width_;
  std::array<RowsAhead, 4> ahead_;
  ScoreDropout dropout_;
  RowKeys<kColumns> row_keys_;  // of the query tile; used if scores are dropped
};

extern template class Bf16Grad<Bf16Amx>;
extern template class Bf16Grad<Bf16Dot>;

}  // namespace headroom
