// Launchers of attention's device code.
#pragma once

#include "ops/cuda/launch.h"

namespace headroom::cuda {

// Dropout of probabilities; see score_dropout.h for the numbers.
struct AttentionDropout {
  const float* hyper = nullptr;  // of ops/step_scalars.h, read on the device
  uint64_t tensor = 0;
  uint32_t below = 0;  // 0: no dropout
  float scale = 1;
  int64_t first = 0;
};

// One attention call; see AttentionShape in ops/attention/shape.h for the sizes.
struct AttentionSizes {
  int32_t batch = 0;
  int32_t queries = 0;
  int32_t keys = 0;
  int32_t heads = 0;
  int32_t kv_heads = 0;
  int32_t dim = 0;
  int32_t window = 0;
  bool causal = true;
  float scale = 1;
  float softcap = 0;
  const int32_t* lengths = nullptr;  // [batch], or null
  const int32_t* starts = nullptr;   // [batch, queries], or null
  const int32_t* offset = nullptr;   // [1]: position of the first query; null: 0
  AttentionDropout dropout;
};

// q and o [batch, queries, heads * dim], k and v [batch, keys, kv_heads * dim], lse f32[batch, heads, queries] or null.
struct AttentionArrays {
  const void* q = nullptr;
  const void* k = nullptr;
  const void* v = nullptr;
  void* o = nullptr;
  float* lse = nullptr;
};

// Shapes as above; `products` f32[batch, heads, queries] is scratch for the sums of do * o.
struct AttentionGradArrays {
  const void* q = nullptr;
  const void* k = nullptr;
  const void* v = nullptr;
  const void* o = nullptr;
  const float* lse = nullptr;
  const void* grad_o = nullptr;
  void* dq = nullptr;
  void* dk = nullptr;
  void* dv = nullptr;
  float* products = nullptr;
};

// Partial results of decoding, for each batch row, head and chunk of keys.
struct DecodeArrays {
  float* o = nullptr;        // [batch, heads, chunks, dim], not divided by the sum
  float* maximum = nullptr;  // [batch, heads, chunks], base 2
  float* sum = nullptr;      // [batch, heads, chunks]
  int32_t chunks = 0;        // of kDecodeKeys keys
};
constexpr int32_t kDecodeKeys = 128;

// o = softmax(scale q k^T) v. Any head size. A query that sees no key gets zeros and an lse of minus infinity.
void launch_attention(FloatType q_type, FloatType kv_type, const AttentionSizes& sizes, const AttentionArrays& arrays,
                      CudaStream stream);

// dq, dk, dv; all operands of one type. Any head size.
void launch_attention_grad(FloatType type, const AttentionSizes& sizes, const AttentionGradArrays& arrays,
                           CudaStream stream);
// The first part of the gradient: products[b, h, q] = sum of do * o over the head.
void launch_attention_products(FloatType type, const AttentionSizes& sizes, const AttentionGradArrays& arrays,
                               CudaStream stream);

// Like launch_attention, for one query per batch row.
void launch_attention_decode(FloatType q_type, FloatType kv_type, const AttentionSizes& sizes,
                             const AttentionArrays& arrays, const DecodeArrays& partial, CudaStream stream);

// Copies rows [0, rows) of k [batch, rows, width] to the rows of cache [batch, held, width] starting at *offset; rows
// outside the cache are dropped.
void launch_kv_append(FloatType k_type, FloatType cache_type, const void* k, void* cache, const int32_t* offset,
                      int64_t batch, int64_t rows, int64_t held, int64_t width, int multiprocessors, CudaStream stream);

}  // namespace headroom::cuda
