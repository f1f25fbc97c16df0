// How the kernels of attention_paged divide a call among the threads.
#pragma once

#include <algorithm>
#include <array>
#include <optional>

#include "base/threads.h"
#include "ops/paged_attention/item.h"

namespace headroom {

// Rows of one sequence at consecutive positions, with the same heads of each. `Tile` computes:
//   explicit Tile(const PagedCall&)
//   void attend(const PagedItem& item, int64_t chunk): one of the item's chunks by itself
//   void add_row(const PagedItem& item): a row whose chunks are attended together with those of the others
//   void attend_together(const PagedItem* const* items, int64_t first, int64_t chunk): the sequence's chunk, for the
//     rows from `first` on of those that were added, in this order
//   static constexpr bool kPart: whether a row may see a part of that chunk, from its first key on
//   static constexpr int64_t kRows: the most rows
//   static bool together(int64_t dim): whether rows are attended together at all
// A row's bits don't depend on which of the two computes a chunk.
template <typename Tile>
class PagedRows {
 public:
  PagedRows(const PagedCall& call, const PagedCut& cut, int64_t row, int64_t rows, int64_t part, float* slots)
      : rows_(rows), tile_(call) {
    const int64_t parts = paged_parts(call.shape, cut), floats = paged_slot_floats(call.shape, cut);
    for (int64_t i = 0; i < rows; ++i) {
      items_[index(i)].emplace(call, cut, (row + i) * parts + part, slots + i * floats);
      pointers_[index(i)] = &item(i);
    }
    if (rows == 1 || !Tile::together(call.shape.dim)) return;
    // The window of the last row begins latest, and that of the first row ends earliest.
    begin_ = item(rows - 1).whole_begin();
    end_ = std::max(begin_, Tile::kPart ? item(rows - 1).chunks_end() : item(0).whole_end());
  }

  void run() {
    if (begin_ < end_)
      for (int64_t i = 0; i < rows_; ++i) tile_.add_row(item(i));
    int64_t first = 0;
    for (int64_t chunk = begin_; chunk < end_; ++chunk) {
      while (item(first).chunks_end() <= chunk) ++first;
      tile_.attend_together(pointers_.data(), first, chunk);
    }
    for (int64_t i = 0; i < rows_; ++i) {
      const int64_t chunks = item(i).chunks(), begin = item(i).own_chunk(begin_), end = item(i).own_chunk(end_);
      for (int64_t chunk = 0; chunk < chunks; ++chunk)
        if (chunk < begin || chunk >= end) tile_.attend(item(i), chunk);
      item(i).join();
    }
  }

 private:
  static size_t index(int64_t i) { return static_cast<size_t>(i); }
  const PagedItem& item(int64_t i) const { return *items_[index(i)]; }

  int64_t rows_;
  int64_t begin_ = 0, end_ = 0;  // the chunks that are attended together
  std::array<std::optional<PagedItem>, Tile::kRows> items_;
  std::array<const PagedItem*, Tile::kRows> pointers_{};
  Tile tile_;
};

// For few items: the threads divide the chunks of all items.
template <typename Tile>
void share_paged_chunks(const PagedCall& call, const PagedCut& cut, float* slots) {
  const int64_t items = paged_items(call.shape, cut), floats = paged_slot_floats(call.shape, cut);
  const auto item_at = [&](int64_t index) { return PagedItem(call, cut, index, slots + index * floats); };
  int64_t chunks = 0;
  for (int64_t index = 0; index < items; ++index) chunks += item_at(index).chunks();
  parallel_for(chunks, 1, [&](int64_t begin, int64_t end, int) {
    Tile tile(call);
    int64_t first = 0;  // chunk of the item among those of all items
    for (int64_t index = 0; index < items && first < end; ++index) {
      const PagedItem item = item_at(index);
      const int64_t stop = std::min(item.chunks(), end - first);
      for (int64_t chunk = std::max<int64_t>(0, begin - first); chunk < stop; ++chunk) tile.attend(item, chunk);
      first += item.chunks();
    }
  });
  parallel_for(items, 4, [&](int64_t begin, int64_t end, int) {
    for (int64_t index = begin; index < end; ++index) item_at(index).join();
  });
}

// `threads`: the number that the scratch was booked for.
template <typename Tile>
void attend_paged(const PagedCall& call, const PagedCut& cut, int64_t threads) {
  auto* const slots = reinterpret_cast<float*>(call.scratch);
  if (shares_chunks(call.shape, cut, threads)) return share_paged_chunks<Tile>(call, cut, slots);
  constexpr int64_t kTiles = 8;  // of each thread, at least: so that about the same remains for every thread
  const int64_t parts = paged_parts(call.shape, cut);
  const int64_t rows = std::clamp<int64_t>(call.shape.rows * parts / (kTiles * threads), 1, cut.rows);
  const int64_t tiles = (call.shape.rows + rows - 1) / rows * parts;
  const int64_t each = (tiles + threads - 1) / threads;
  parallel_for(each * threads, each, [&](int64_t begin, int64_t end, int thread) {
    for (int64_t index = begin; index < end; ++index) {
      // Later rows of a sequence see more keys: a thread's tiles are spread over the rows.
      const int64_t tile = index % each * threads + index / each, first = tile / parts * rows;
      float* const slots_of = slots + thread * cut.rows * paged_slot_floats(call.shape, cut);
      const int64_t stop = std::min(first + rows, tile < tiles ? call.shape.rows : 0);
      for (int64_t row = first, count = 0; row < stop; row += count) {
        count = rows_in_turn(call, row, stop);
        PagedRows<Tile>(call, cut, row, count, tile % parts, slots_of).run();
      }
    }
  });
}

}  // namespace headroom
