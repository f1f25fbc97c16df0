// The forward engine in fp32 arithmetic, for f32 and bf16 storage (AVX2 and AVX-512 through Highway's dispatch).
#pragma once

#include "ops/attention/forward_driver.h"

namespace headroom {

class SimdForward {
 public:
  static constexpr int64_t kKeys = kKeyTile;

  SimdForward(const ForwardCall& call, std::byte* block);
  static int64_t bytes(const AttentionShape& shape) { return block_bytes(forward_simd_block, shape); }

  void announce(const RowsAhead&, const RowsAhead&) {}
  void load_queries(int64_t lane, const void* q, int64_t rows, int64_t scores);
  void load_keys(const void* k, const void* v, int64_t count);
  void step(int64_t lane, const StripStep& step);
  void store(int64_t lane, void* o, float* lse, int64_t rows);

  // What the per-target code works on.
  struct State {
    AttentionShape shape;
    DType q_dtype;
    DType kv_dtype;
    ForwardSimdBlock block;
    ScoreDropout dropout;
    std::array<RowKeys<kStrip>, kLanes> row_keys;  // by lane; used if scores are dropped
  };

 protected:
  SimdForward(const ForwardCall& call, const ForwardSimdBlock& block);

 private:
  State state_;
};

// The same with its products on AMX tiles, for f32 operands.
class ExactForward : public SimdForward {
 public:
  ExactForward(const ForwardCall& call, std::byte* block)
      : SimdForward(call, carve_block(forward_exact_block, call.shape, block)) {}
  static int64_t bytes(const AttentionShape& shape) { return block_bytes(forward_exact_block, shape); }

 private:
  ExactSession session_;
};

}  // namespace headroom
