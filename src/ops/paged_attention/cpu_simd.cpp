#include <numbers>

#include "base/threads.h"
#include "ops/attention/decode_simd.h"
#include "ops/paged_attention/scratch.h"
#include "ops/paged_attention/simd.h"

namespace headroom {
namespace {

static_assert(kPagedHeads == kDecodeHeads);

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

  // Of keys that are cut at multiples of paged_chunk(); 0 for a row of padding.
  int64_t chunks() const {
    if (position_ < 0) return 0;
    return (shape_.keys_end(position_) + size() - 1) / size() - first_chunk();
  }

  void attend(int64_t chunk) const {
    const int64_t from = std::max((first_chunk() + chunk) * size(), shape_.keys_begin(position_));
    const int64_t to = std::min((first_chunk() + chunk + 1) * size(), shape_.keys_end(position_));
    const int64_t first = call_.pool_row(call_.owners[row_], from) * shape_.row_width() + kv_head_ * shape_.head_width;
    const int64_t kv_bytes = dtype_bytes(call_.kv_dtype);
    const double cap = shape_.softcap, scale = cap > 0 ? shape_.scale / cap : shape_.scale * std::numbers::log2e;
    attend_chunk({static_cast<int>(heads_), static_cast<const std::byte*>(call_.q) + at(0), call_.q_dtype,
                  static_cast<const std::byte*>(call_.k) + first * kv_bytes,
                  static_cast<const std::byte*>(call_.v) + first * kv_bytes, call_.kv_dtype, shape_.row_width(),
                  to - from, shape_.dim, static_cast<float>(scale), static_cast<float>(cap * std::numbers::log2e),
                  o_ + chunk * width_, most_ * width_, maximum_ + chunk, sum_ + chunk, most_});
  }

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
  int64_t first_chunk() const { return shape_.keys_begin(position_) / size(); }
  // Bytes of q and o before a head of the item.
  int64_t at(int64_t head) const {
    return (row_ * shape_.heads + head_ + head) * shape_.dim * dtype_bytes(call_.q_dtype);
  }

  const PagedCall& call_;
  const PagedShape& shape_;
  int64_t row_, kv_head_, head_, heads_, position_, width_, most_;
  float *o_, *maximum_, *sum_;
};

// Few items: the threads share the chunks of all.
void share_chunks(const PagedCall& call, int64_t items, float* slots) {
  const int64_t floats = paged_slot_floats(call.shape), most = paged_chunks(call.shape);
  parallel_for(items * most, 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t index = begin; index < end; ++index) {
      // Chunk by chunk, so that the threads have like numbers of chunks that there are.
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
  parallel_for(items, 1, [&](int64_t begin, int64_t end, int thread) {
    for (int64_t index = begin; index < end; ++index) {
      const PagedItem item(call, index, slots + thread * paged_slot_floats(call.shape));
      for (int64_t chunk = 0; chunk < item.chunks(); ++chunk) item.attend(chunk);
      item.join();
    }
  });
}

}  // namespace headroom
