// The forward engine with bf16 products and an fp32 softmax, for bf16 storage.
#pragma once

#include "ops/attention/bf16_products.h"
#include "ops/attention/forward_driver.h"

namespace headroom {

// `Products` is Bf16Amx or Bf16Dot.
template <typename Products>
class Bf16Forward {
 public:
  Bf16Forward(const ForwardCall& call, std::byte* block);
  ~Bf16Forward() { Products::leave(); }
  Bf16Forward(const Bf16Forward&) = delete;
  Bf16Forward& operator=(const Bf16Forward&) = delete;
  static int64_t bytes(const AttentionShape& shape) { return block_bytes(forward_bf16_block, shape); }

  void load_queries(int64_t lane, const void* q, int64_t rows);
  void load_keys(const void* k, const void* v, int64_t count);
  void step(int64_t lane, const StripStep& step);
  void store(int64_t lane, void* o, float* lse, int64_t rows);

 private:
  AttentionShape shape_;
  ForwardBf16Block block_;
  int64_t width_;
};

extern template class Bf16Forward<Bf16Amx>;
extern template class Bf16Forward<Bf16Dot>;

}  // namespace headroom
