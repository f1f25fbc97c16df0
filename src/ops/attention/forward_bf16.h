// The forward engine with bf16 products and an fp32 softmax, for bf16 storage.
#pragma once

#include "ops/attention/bf16_products.h"
#include "ops/attention/forward_driver.h"

namespace headroom {

// `Products` is Bf16Amx or Bf16Dot.
template <typename Products>
class Bf16Forward {
 public:
  static constexpr int64_t kKeys = kBf16Keys;

  Bf16Forward(const ForwardCall& call, std::byte* block);
  ~Bf16Forward() { Products::leave(); }
  Bf16Forward(const Bf16Forward&) = delete;
  Bf16Forward& operator=(const Bf16Forward&) = delete;
  static int64_t bytes(const AttentionShape& shape) { return block_bytes(forward_bf16_block, shape); }

  void announce(const RowsAhead& q, const RowsAhead& o) { ahead_ = {q, o}; }
  void load_queries(int64_t lane, const void* q, int64_t rows, int64_t scores);
  void load_keys(const void* k, const void* v, int64_t count);
  void step(int64_t lane, const StripStep& step);
  void store(int64_t lane, void* o, float* lse, int64_t rows);

 private:
  // The scores of a strip with `keys` keys of the tile from `begin`.
  float* score(int64_t lane, int64_t begin, int64_t keys);

  AttentionShape shape_;
  ForwardBf16Block block_;
  int64_t width_;
  std::array<RowsAhead, 2> ahead_;
  ScoreDropout dropout_;
  std::array<RowKeys<kStrip>, kLanes> row_keys_;  // by lane; used if scores are dropped
};

extern template class Bf16Forward<Bf16Amx>;
extern template class Bf16Forward<Bf16Dot>;

}  // namespace headroom
