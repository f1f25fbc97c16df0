// The sizes and the visibility rule that every attention op and kernel share.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "ir/op.h"
#include "ops/attention/kernel_choice.h"

namespace headroom {

// What hides keys besides the order of tokens. At most one is set: the number of keys of each batch row, the rest being
// padding; or, for each query of each batch row, the first key of its segment (at most its own position, never
// decreasing along a row).
struct RowMask {
  const int32_t* lengths = nullptr;  // [batch]
  const int32_t* starts = nullptr;   // [batch, queries]; self-attention only
};

// The inputs of `attention` and `attention_grad`, except those that not every call has, and of `attention_cached`, and
// their results. `attention_cached` has q, keys and values where `attention` has q, k and v, and no lse.
struct AttentionInputs {
  enum : int { q, k, v };
};
struct AttentionOutputs {
  enum : int { o, lse };
};
struct AttentionGradInputs {
  enum : int { q, k, v, o, lse, cotangent };
};
struct AttentionGradOutputs {
  enum : int { dq, dk, dv };
};
struct CachedInputs {
  enum : int { q, keys, values, offset };
};

// One attention call. Query t of a batch row is at position `offset + t` (offset is 0 except for cached attention) and
// sees the keys [keys_begin(position), keys_end(position)).
struct AttentionShape {
  int64_t batch = 0;
  int64_t queries = 0;
  int64_t keys = 0;  // rows of k and v: equal to `queries`, or the rows of the cache
  int64_t heads = 0;
  int64_t kv_heads = 0;
  int64_t dim = 0;  // of one head
  bool causal = true;
  int64_t window = 0;  // most keys that a query sees, itself included; 0 = no limit
  double scale = 1;
  double softcap = 0;               // c > 0: a scaled score s becomes c tanh(s / c)
  bool any_order = false;           // cuDNN may sum in any order (kCudnnAnyOrder)
  int64_t limit = INT64_MAX;        // keys from this one on are padding
  const int32_t* starts = nullptr;  // of the row's queries, or null

  // The shape for a batch row; a row has at least one key.
  AttentionShape of_row(const RowMask& mask, int64_t row) const {
    AttentionShape shape = *this;
    if (mask.lengths) shape.limit = std::max<int64_t>(1, mask.lengths[row]);
    if (mask.starts) shape.starts = mask.starts + row * queries;
    return shape;
  }

  // Query heads per kv head.
  int64_t group() const { return heads / kv_heads; }
  // First key of the segment of the query at `position`.
  int64_t segment_begin(int64_t position) const {
    return starts ? std::clamp<int64_t>(starts[position], 0, position) : 0;
  }
  int64_t keys_begin(int64_t position) const {
    const int64_t seen = window > 0 ? std::max<int64_t>(0, std::min(position - window, keys - 2) + 1) : 0;
    return std::max(seen, segment_begin(position));
  }
  int64_t keys_end(int64_t position) const {
    const int64_t end = std::min(keys, limit);
    return causal ? std::clamp<int64_t>(position + 1, 0, end) : end;
  }
};

// The queries of `attention`, `attention_grad`, `attention_cached` or `attention_paged`.
inline const ConcreteType& queries_of(const OpCall& call) { return call.inputs[AttentionInputs::q]; }

// The shape of `attention` (q, k, v), `attention_grad` (q, k, v, ...) or `attention_cached` (q, kcache, vcache, ...),
// for types that infer() has accepted.
inline AttentionShape attention_shape(const OpCall& call) {
  const ConcreteType& q = call.inputs[AttentionInputs::q];
  AttentionShape shape;
  shape.batch = q.dims[0];
  shape.queries = q.dims[1];
  shape.keys = call.inputs[AttentionInputs::k].dims[1];
  shape.heads = call.attrs.integer("heads");
  shape.kv_heads = call.attrs.integer("kv_heads");
  shape.dim = q.dims[2] / shape.heads;
  shape.causal = call.attrs.integer("causal", 1) != 0;
  shape.window = call.attrs.integer("window");
  shape.scale = call.attrs.real("scale", 1.0 / std::sqrt(static_cast<double>(shape.dim)));
  shape.softcap = call.attrs.real("softcap", 0);
  shape.any_order = call.attrs.text("kernels") == kCudnnAnyOrder;
  return shape;
}

// Indices of the optional inputs of `attention` or, with `gradient`, `attention_grad`, after those that every call has:
// the run's hyper-parameters if probabilities are dropped, then the mask. 0: the call has no such input.
struct OptionalInputs {
  size_t hyper = 0;
  size_t mask = 0;

  OptionalInputs(const Attrs& attrs, size_t inputs, bool gradient) {
    size_t next = gradient ? AttentionGradInputs::cotangent + 1 : AttentionInputs::v + 1;
    if (attrs.real("dropout", 0) > 0) hyper = next++;
    if (inputs > next) mask = next;
  }
};

// The visible (query, key) pairs of one head, with the first query at position `first`; ignores segments.
inline double visible_pairs(const AttentionShape& shape, int64_t first) {
  const double queries = static_cast<double>(shape.queries);
  if (!shape.causal) return queries * static_cast<double>(shape.keys);
  const auto triangle = [](int64_t n) {
    return n <= 0 ? 0.0 : 0.5 * static_cast<double>(n) * static_cast<double>(n + 1);
  };
  const double seen = triangle(first + shape.queries) - triangle(first);
  if (shape.window == 0) return seen;
  return seen - triangle(first + shape.queries - shape.window) + triangle(first - shape.window);
}

// The same for the `rows` queries from `first` of self-attention, within their segments.
inline double visible_pairs_of(const AttentionShape& shape, int64_t first, int64_t rows) {
  if (!shape.starts) {
    AttentionShape piece = shape;
    piece.queries = rows;
    return visible_pairs(piece, first);
  }
  int64_t pairs = 0;
  for (int64_t query = first; query < first + rows; ++query) pairs += shape.keys_end(query) - shape.keys_begin(query);
  return static_cast<double>(pairs);
}

}  // namespace headroom
