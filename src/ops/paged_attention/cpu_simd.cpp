#include "ops/paged_attention/simd.h"

#include "ops/paged_attention/rows.h"

namespace headroom {
namespace {

static_assert(kPagedHeads == kDecodeHeads && kPagedQueries == kTileQueries);

// In fp32 arithmetic; a chunk lies in one block of the pool.
class SimdTile {
 public:
  static constexpr int64_t kRows = kTileQueries;
  static constexpr bool kPart = false;
  static bool together(int64_t dim) { return tiles_queries(dim); }

  explicit SimdTile(const PagedCall& call) : call_(call) {}

  void attend(const PagedItem& item, int64_t chunk) { attend_chunk(against(item, chunk)); }
  void add_row(const PagedItem& item) {
    tile_.add_row(against(item, 0));
    ++rows_;
  }
  void attend_together(const PagedItem* const* items, int64_t, int64_t chunk) const {
    std::array<DecodeItem, kTileQueries> all;
    for (size_t i = 0; i < rows_; ++i) all[i] = against(*items[i], items[i]->own_chunk(chunk));
    tile_.attend(all.data());
  }

 private:
  // The attention of the item's heads to one of the row's chunks.
  DecodeItem against(const PagedItem& item, int64_t chunk) const {
    const PagedShape& shape = call_.shape;
    const int64_t from = item.keys_from(chunk);
    const int64_t first = item.pool_element(from);
    const int64_t kv_bytes = dtype_bytes(call_.kv_dtype);
    const ScoreScale scores(shape.scale, shape.softcap);
    return {static_cast<int>(item.heads()),
            item.q(),
            call_.q_dtype,
            static_cast<const std::byte*>(call_.k) + first * kv_bytes,
            static_cast<const std::byte*>(call_.v) + first * kv_bytes,
            call_.kv_dtype,
            shape.row_width(),
            item.keys_to(chunk) - from,
            shape.dim,
            scores.scale,
            scores.softcap,
            item.o(chunk),
            item.o_stride(),
            item.maximum(chunk),
            item.sum(chunk),
            item.part_stride()};
  }

  const PagedCall& call_;
  size_t rows_ = 0;
  DecodeTile tile_;
};

}  // namespace

void paged_simd(const PagedCall& call, int64_t threads) { attend_paged<SimdTile>(call, simd_cut(call.shape), threads); }

}  // namespace headroom
