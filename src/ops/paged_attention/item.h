// What one kv head's queries of one row attend to, and where their partial results are kept.
#pragma once

#include <algorithm>

#include "ops/attention/decode_simd.h"
#include "ops/paged_attention/scratch.h"

namespace headroom {

// Heads of one row that read one kv head, as many as the cut says. A sequence's keys are cut at multiples of its chunk.
class PagedItem {
 public:
  // `slot`: room for the partial results of all chunks (paged_slot_floats()).
  PagedItem(const PagedCall& call, const PagedCut& cut, int64_t index, float* slot)
      : call_(call),
        shape_(call.shape),
        size_(cut.chunk),
        row_(index / paged_parts(shape_, cut)),
        kv_head_(index % paged_parts(shape_, cut) % shape_.kv_heads),
        head_(kv_head_ * shape_.group() + index % paged_parts(shape_, cut) / shape_.kv_heads * cut.heads),
        heads_(std::min<int64_t>(cut.heads, (kv_head_ + 1) * shape_.group() - head_)),
        position_(call.position(row_)),
        width_(padded_dim(shape_.dim)),
        most_(paged_chunks(shape_, cut.chunk)),
        o_(slot),
        maximum_(slot + paged_heads(shape_, cut) * most_ * width_),
        sum_(maximum_ + paged_heads(shape_, cut) * most_) {}

  int64_t heads() const { return heads_; }
  // The first element, in the pools, of the kv head's key and value at a position of the sequence.
  int64_t pool_element(int64_t position) const {
    return call_.pool_row(owner(), position) * shape_.row_width() + kv_head_ * shape_.head_width;
  }
  // The end of the block of the pool that holds a position; its keys lie one after the other.
  int64_t block_end(int64_t position) const { return (position / shape_.block_tokens + 1) * shape_.block_tokens; }
  // The queries of the heads, one after the other.
  const std::byte* q() const { return static_cast<const std::byte*>(call_.q) + at(0); }

  // Chunks of keys that the row sees; 0 for a row of padding.
  int64_t chunks() const {
    if (position_ < 0) return 0;
    return (shape_.keys_end(position_) + size_ - 1) / size_ - first_chunk();
  }
  // The positions of the keys of one of the row's chunks.
  int64_t keys_from(int64_t chunk) const {
    return std::max((first_chunk() + chunk) * size_, shape_.keys_begin(position_));
  }
  int64_t keys_to(int64_t chunk) const {
    return std::min((first_chunk() + chunk + 1) * size_, shape_.keys_end(position_));
  }

  // The partial results of one of the row's chunks: of the first head; the next head's are a stride further.
  float* o(int64_t chunk) const { return o_ + chunk * width_; }
  float* maximum(int64_t chunk) const { return maximum_ + chunk; }
  float* sum(int64_t chunk) const { return sum_ + chunk; }
  int64_t o_stride() const { return most_ * width_; }
  int64_t part_stride() const { return most_; }

  // The end of the sequence's chunks of which the row sees any key.
  int64_t chunks_end() const { return first_chunk() + chunks(); }
  // The index among the row's chunks of chunk `chunk` of the sequence.
  int64_t own_chunk(int64_t chunk) const { return chunk - first_chunk(); }
  // The range of the sequence's chunks of which the row sees every key.
  int64_t whole_begin() const { return (shape_.keys_begin(position_) + size_ - 1) / size_; }
  int64_t whole_end() const { return shape_.keys_end(position_) / size_; }

  // Writes the results of all heads from the partial ones.
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
  int64_t owner() const { return call_.owners[row_]; }
  int64_t first_chunk() const { return shape_.keys_begin(position_) / size_; }
  // The offset in bytes, in q and o, of one of the item's heads.
  int64_t at(int64_t head) const {
    return (row_ * shape_.heads + head_ + head) * shape_.dim * dtype_bytes(call_.q_dtype);
  }

  const PagedCall& call_;
  const PagedShape& shape_;
  int64_t size_, row_, kv_head_, head_, heads_, position_, width_, most_;
  float *o_, *maximum_, *sum_;
};

// How many rows from `row` on, before `end`, have consecutive positions in one sequence.
inline int64_t rows_in_turn(const PagedCall& call, int64_t row, int64_t end) {
  const int64_t position = call.position(row);
  int64_t count = 1;
  while (row + count < end && position >= 0 && call.owners[row + count] == call.owners[row] &&
         call.position(row + count) == position + count)
    ++count;
  return count;
}

}  // namespace headroom
