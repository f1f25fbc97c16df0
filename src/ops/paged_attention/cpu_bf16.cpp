#include "ops/paged_attention/bf16.h"

#include "ops/cpu/avx512_bf16.h"
#include "ops/cpu/instruction_set.h"
#include "ops/paged_attention/bf16_tile.h"
#include "ops/paged_attention/rows.h"

#ifdef HEADROOM_HAS_AVX512

namespace headroom {
namespace {

template <bool kAmxTiles>
class Bf16Tile {
 public:
  static constexpr int64_t kRows = kAmxTiles ? kPagedAmxRows : kPagedBf16Tile;
  static constexpr bool kPart = true;
  static bool together(int64_t) { return true; }

  explicit Bf16Tile(const PagedCall& call)
      : call_(call), chunk_(call.shape.dim, ScoreScale(call.shape.scale, call.shape.softcap)) {}

  void attend(const PagedItem& item, int64_t chunk) {
    load(item, item.keys_from(chunk), item.keys_to(chunk));
    alignas(64) uint16_t q[kQueryTile * kMaxFastDim];
    chunk_.copy_queries(item.q(), item.heads(), q);
    Results results;
    results.add(item, chunk);
    attend(q, results);
  }
  void add_row(const PagedItem& item) {
    chunk_.copy_queries(item.q(), item.heads(), queries_ + rows_ * item.heads() * chunk_.width());
    ++rows_;
  }
  // The last row sees the most keys.
  void attend_together(const PagedItem* const* items, int64_t first, int64_t chunk) {
    const PagedItem& last = *items[rows_ - 1];
    load(last, chunk * kPagedBf16Chunk, last.keys_to(last.own_chunk(chunk)));
    Results results;
    for (int64_t row = first; row < rows_; ++row) results.add(*items[row], items[row]->own_chunk(chunk));
    attend(queries_ + first * last.heads() * chunk_.width(), results);
  }

 private:
  static constexpr int64_t kHeads = kAmxTiles ? kPagedAmxHeads : kPagedHeads;
  static constexpr int64_t kQueries = kAmxTiles ? kPagedAmxQueries : kRows * kHeads;

  // Where the partial results of queries go.
  struct Results {
    int64_t count = 0;
    std::array<float*, kQueries> o, maximum, sum;
    std::array<int64_t, kQueries> keys;

    void add(const PagedItem& item, int64_t chunk) {
      for (int64_t head = 0; head < item.heads(); ++head, ++count) {
        const auto at = static_cast<size_t>(count);
        o[at] = item.o(chunk) + head * item.o_stride();
        maximum[at] = item.maximum(chunk) + head * item.part_stride();
        sum[at] = item.sum(chunk) + head * item.part_stride();
        keys[at] = item.keys_to(chunk) - item.keys_from(chunk);
      }
    }
  };

  void attend(const uint16_t* q, const Results& results) const {
    static_assert(kHeads <= kQueryTile && kQueries % kQueryTile == 0);
    const Bf16Queries queries{
        q, results.count, results.keys.data(), results.o.data(), results.maximum.data(), results.sum.data()};
    kAmxTiles ? chunk_.attend_on_tiles(queries) : chunk_.attend(queries);
  }

  // The keys and values of positions [from, to) of the item's sequence.
  void load(const PagedItem& item, int64_t from, int64_t to) {
    std::array<const uint16_t*, kPagedBf16Chunk> k, v;
    const int64_t width = call_.shape.row_width();
    for (int64_t position = from, stop = from; position < to; position = stop) {
      stop = std::min(to, item.block_end(position));
      int64_t element = item.pool_element(position);
      for (int64_t i = position; i < stop; ++i, element += width) {
        k[static_cast<size_t>(i - from)] = static_cast<const uint16_t*>(call_.k) + element;
        v[static_cast<size_t>(i - from)] = static_cast<const uint16_t*>(call_.v) + element;
      }
    }
    chunk_.load(k.data(), v.data(), to - from);
  }

  const PagedCall& call_;
  Bf16Chunk chunk_;
  int64_t rows_ = 0;
  alignas(64) uint16_t queries_[(kQueries + kQueryTile) * kMaxFastDim];  // a tile may begin at any of them
};

}  // namespace

bool paged_bf16_usable() { return instruction_set() >= InstructionSet::avx512_bf16; }

void paged_bf16(const PagedCall& call, int64_t threads) { attend_paged<Bf16Tile<false>>(call, bf16_cut(), threads); }

bool paged_amx_usable() { return instruction_set() >= InstructionSet::amx; }

void paged_amx(const PagedCall& call, int64_t threads) {
  attend_paged<Bf16Tile<true>>(call, amx_cut(call.shape), threads);
}

}  // namespace headroom

#else

namespace headroom {
bool paged_bf16_usable() { return false; }
void paged_bf16(const PagedCall&, int64_t) {}
bool paged_amx_usable() { return false; }
void paged_amx(const PagedCall&, int64_t) {}
}  // namespace headroom

#endif
