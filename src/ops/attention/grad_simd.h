// The gradient engine in fp32 arithmetic, for f32 and bf16 storage (AVX2 and AVX-512 through Highway's dispatch).
#pragma once

#include "ops/attention/grad_driver.h"

namespace headroom {

class SimdGrad {
 public:
  static constexpr int64_t kColumns = kGradStripsSimd * kStrip;
  static constexpr int64_t kKeys = kGradKeys;

  SimdGrad(const GradCall& call, std::byte* block);
  static int64_t bytes(const AttentionShape& shape) { return block_bytes(grad_simd_block, shape); }

  void begin(const void* k, const void* v);
  void load_queries(const QueryTile& tile);
  void announce(const QueryTile&) {}
  void step(int64_t tile, int64_t count, std::span<const StripStep> steps);
  void store_queries(void* dq, int64_t rows);
  void end() {}

  // What the per-target code works on.
  struct State {
    AttentionShape shape;
    DType dtype;
    GradSimdBlock block;
    const void* k;  // the kv head's first row
    const void* v;
    ScoreDropout dropout;
    RowKeys<kColumns> row_keys;  // of the query tile; used if scores are dropped
  };

 protected:
  SimdGrad(const GradCall& call, const GradSimdBlock& block);

 private:
  State state_;
};

// The same with its products on AMX tiles, for f32 operands.
class ExactGrad : public SimdGrad {
 public:
  ExactGrad(const GradCall& call, std::byte* block)
      : SimdGrad(call, carve_block(grad_exact_block, call.shape, block)) {}
  static int64_t bytes(const AttentionShape& shape) { return block_bytes(grad_exact_block, shape); }

 private:
  ExactSession session_;
};

}  // namespace headroom
