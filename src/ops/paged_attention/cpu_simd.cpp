#include <array>
#include <numbers>
#include <optional>

#include "base/threads.h"
#include "ops/attention/decode_simd.h"
#include "ops/paged_attention/scratch.h"
#include "ops/paged_attention/simd.h"

namespace headroom {
namespace {

static_assert(kPagedHeads == kDecodeHeads && kPagedTile == kTileQueries);

// Heads of one row that read one kv head, and where their partial results are kept.
class PagedItem {
 public:
  PagedItem(const PagedCall& call, int64_t index, float* slot)
      : call_(call),
        shape_(call.shape),
        row_(index / paged_parts(shape_)),
        kv_head_(index % paged_parts(shape_) % shape_.kv_heads),
        head_(kv_head_ * shape_.group() + index % paged_parts(shape_) / shape_.kv_heads * kPagedHeads),
        heads_(std::min<int64_t>(kPagedHeads, (kv_head_ + 1) * shape_.group() - head_)),
        position_(call.position(row_)),
        width_(padded_dim(shape_.dim)),
        most_(paged_chunks(shape_)),
        o_(slot),
        maximum_(slot + kPagedHeads * most_ * width_),
        sum_(maximum_ + kPagedHeads * most_) {}

  // Chunks of keys that the row sees, cut at multiples of paged_chunk(); 0 for a row of padding.
  int64_t chunks() const {
    if (position_ < 0) return 0;
    return (shape_.keys_end(position_) + size() - 1) / size() - first_chunk();
  }

  // The attention of the item's heads to one of the row's chunks.
  DecodeItem against(int64_t chunk) const {
    const int64_t from = keys_from(chunk);
    const int64_t first = call_.pool_row(call_.owners[row_], from) * shape_.row_width() + kv_head_ * shape_.head_width;
    const int64_t kv_bytes = dtype_bytes(call_.kv_dtype);
    const double cap = shape_.softcap, scale = cap > 0 ? shape_.scale / cap : shape_.scale * std::numbers::log2e;
    return {static_cast<int>(heads_),
            static_cast<const std::byte*>(call_.q) + at(0),
            call_.q_dtype,
            static_cast<const std::byte*>(call_.k) + first * kv_bytes,
            static_cast<const std::byte*>(call_.v) + first * kv_bytes,
            call_.kv_dtype,
            shape_.row_width(),
            keys_to(chunk) - from,
            shape_.dim,
            static_cast<float>(scale),
            static_cast<float>(cap * std::numbers::log2e),
            o_ + chunk * width_,
            most_ * width_,
            maximum_ + chunk,
            sum_ + chunk,
            most_};
  }
  void attend(int64_t chunk) const { attend_chunk(against(chunk)); }

  // The index among the row's chunks of chunk `chunk` of the sequence.
  int64_t own_chunk(int64_t chunk) const { return chunk - first_chunk(); }
  // The range of the sequence's chunks of which the row sees every key.
  int64_t whole_begin() const { return (shape_.keys_begin(position_) + size() - 1) / size(); }
  int64_t whole_end() const { return shape_.keys_end(position_) / size(); }

  void join() const {
    for (int64_t head = 0; head < heads_; ++head) {
      std::byte* const to = static_cast<std::byte*>(call_.o) + at(head);
      if (position_ < 0)
        std::fill_n(to, shape_.dim * dtype_bytes(call_.q_dtype), std::byte{0});
      else
        join_chunks(o_ + head * most_ * width_, maximum_ + head * most_, sum_ + head * most_, chunks(), width_,
                    shape_.dim, to, call_.q_dtype);
    }
  }

 private:
  int64_t size() const { return paged_chunk(shape_); }
  int64_t keys_from(int64_t chunk) const {
    return std::max((first_chunk() + chunk) * size(), shape_.keys_begin(position_));
  }
  int64_t keys_to(int64_t chunk) const {
    return std::min((first_chunk() + chunk + 1) * size(), shape_.keys_end(position_));
  }
  int64_t first_chunk() const { return shape_.keys_begin(position_) / size(); }
  // The offset in bytes, in q and o, of one of the item's heads.
  int64_t at(int64_t head) const {
    return (row_ * shape_.heads + head_ + head) * shape_.dim * dtype_bytes(call_.q_dtype);
  }

  const PagedCall& call_;
  const PagedShape& shape_;
  int64_t row_, kv_head_, head_, heads_, position_, width_, most_;
  float *o_, *maximum_, *sum_;
};

// Rows of one sequence at consecutive positions, with the same heads of each.
class PagedRows {
 public:
  PagedRows(const PagedCall& call, int64_t row, int64_t rows, int64_t part, float* slots) : rows_(rows) {
    const int64_t parts = paged_parts(call.shape), floats = paged_slot_floats(call.shape);
    for (int64_t i = 0; i < rows; ++i) items_[i].emplace(call, (row + i) * parts + part, slots + i * floats);
    if (rows == 1 || !tiles_queries(call.shape.dim)) return;
    // The window of the last row begins latest, and that of the first row ends earliest.
    begin_ = item(rows - 1).whole_begin(), end_ = std::max(begin_, item(0).whole_end());
  }

  void run() {
    attend_together();
    for (int64_t i = 0; i < rows_; ++i) {
      const int64_t chunks = item(i).chunks(), begin = item(i).own_chunk(begin_), end = item(i).own_chunk(end_);
      for (int64_t chunk = 0; chunk < chunks; ++chunk)
        if (chunk < begin || chunk >= end) item(i).attend(chunk);
      item(i).join();
    }
  }

 private:
  const PagedItem& item(int64_t i) const { return *items_[i]; }

  void attend_together() {
    if (begin_ == end_) return;
    for (int64_t i = 0; i < rows_; ++i) tile_.add_row(item(i).against(0));
    std::array<DecodeItem, kTileQueries> all;
    for (int64_t chunk = begin_; chunk < end_; ++chunk) {
      for (int64_t i = 0; i < rows_; ++i) all[static_cast<size_t>(i)] = item(i).against(item(i).own_chunk(chunk));
      tile_.attend(all.data());
    }
  }

  int64_t rows_;
  int64_t begin_ = 0, end_ = 0;  // the chunks that every row sees whole
  std::optional<PagedItem> items_[kTileQueries];
  DecodeTile tile_;
};

// How many rows from `row` on, before `end`, have consecutive positions in one sequence.
int64_t rows_in_turn(const PagedCall& call, int64_t row, int64_t end) {
  const int64_t position = call.position(row);
  int64_t count = 1;
  while (row + count < end && position >= 0 && call.owners[row + count] == call.owners[row] &&
         call.position(row + count) == position + count)
    ++count;
  return count;
}

// For few items: the threads divide the chunks of all items.
void share_chunks(const PagedCall& call, int64_t items, float* slots) {
  const int64_t floats = paged_slot_floats(call.shape), most = paged_chunks(call.shape);
  parallel_for(items * most, 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t index = begin; index < end; ++index) {
      // Sorted by chunk first, so that the threads get about the same number of chunks that exist.
      const PagedItem item(call, index % items, slots + index % items * floats);
      if (index / items < item.chunks()) item.attend(index / items);
    }
  });
  parallel_for(items, 4, [&](int64_t begin, int64_t end, int) {
    for (int64_t index = begin; index < end; ++index) PagedItem(call, index, slots + index * floats).join();
  });
}

}  // namespace

void paged_simd(const PagedCall& call, int64_t threads) {
  const int64_t items = call.shape.rows * paged_parts(call.shape);
  auto* const slots = reinterpret_cast<float*>(call.scratch);
  if (items <= paged_slots(call.shape, threads)) return share_chunks(call, items, slots);
  const int64_t parts = paged_parts(call.shape), tiles = (call.shape.rows + kTileQueries - 1) / kTileQueries * parts;
  const int64_t each = (tiles + threads - 1) / threads;
  parallel_for(each * threads, each, [&](int64_t begin, int64_t end, int thread) {
    for (int64_t index = begin; index < end; ++index) {
      // Later rows of a sequence see more keys: a thread's tiles are spread over the rows.
      const int64_t tile = index % each * threads + index / each, first = tile / parts * kTileQueries;
      float* const slots_of = slots + thread * kTileQueries * paged_slot_floats(call.shape);
      const int64_t stop = std::min(first + kTileQueries, tile < tiles ? call.shape.rows : 0);
      for (int64_t row = first, count = 0; row < stop; row += count) {
        count = rows_in_turn(call, row, stop);
        PagedRows(call, row, count, tile % parts, slots_of).run();
      }
    }
  });
}

}  // namespace headroom
