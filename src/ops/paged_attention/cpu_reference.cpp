// Plain kernel of attention_paged.
#include <cmath>
#include <limits>

#include "base/threads.h"
#include "ops/paged_attention/reference.h"
#include "ops/paged_attention/scratch.h"
#include "ops/stream/float_types.h"

namespace headroom {
namespace {

template <typename T>
double element(const T* head, int64_t i, int64_t) {
  return static_cast<double>(static_cast<float>(head[i]));
}
double element(const int8_t* head, int64_t i, int64_t dim) {
  return static_cast<double>(static_cast<float>(head[i]) * head_scale(head, dim));
}

// One head of one row of q against its sequence.
template <typename Q, typename KV>
class PagedRow {
 public:
  PagedRow(const PagedCall& call, int64_t row, int64_t head)
      : call_(call),
        shape_(call.shape),
        owner_(call.owners[row]),
        position_(call.position(row)),
        at_((row * shape_.heads + head) * shape_.dim),
        kv_at_(head / shape_.group() * shape_.head_width) {}

  void run(double* sum) const {
    std::fill_n(sum, shape_.dim, 0.0);
    double largest = -std::numeric_limits<double>::infinity(), total = 0;
    const int64_t first = shape_.keys_begin(position_), last = position_ < 0 ? first : shape_.keys_end(position_);
    for (int64_t key = first; key < last; ++key) largest = std::max(largest, score(key));
    for (int64_t key = first; key < last; ++key) {
      const double p = std::exp(score(key) - largest);
      total += p;
      const KV* const v = kv_row(call_.v, key);
      for (int64_t i = 0; i < shape_.dim; ++i) sum[i] += p * element(v, i, shape_.dim);
    }
    Q* const o = static_cast<Q*>(call_.o) + at_;
    for (int64_t i = 0; i < shape_.dim; ++i)
      o[i] = static_cast<Q>(static_cast<float>(first < last ? sum[i] / total : 0.0));
  }

 private:
  const KV* kv_row(const void* pool, int64_t position) const {
    return static_cast<const KV*>(pool) + call_.pool_row(owner_, position) * shape_.row_width() + kv_at_;
  }
  double score(int64_t position) const {
    const Q* const q = static_cast<const Q*>(call_.q) + at_;
    const KV* const k = kv_row(call_.k, position);
    double product = 0;
    for (int64_t i = 0; i < shape_.dim; ++i)
      product += static_cast<double>(static_cast<float>(q[i])) * element(k, i, shape_.dim);
    product *= shape_.scale;
    return shape_.softcap > 0 ? shape_.softcap * std::tanh(product / shape_.softcap) : product;
  }

  const PagedCall& call_;
  const PagedShape& shape_;
  int64_t owner_;
  int64_t position_;
  int64_t at_;
  int64_t kv_at_;
};

}  // namespace

void paged_reference(const PagedCall& call) {
  const auto run = [&](auto q, auto kv) {
    parallel_for(call.shape.rows * call.shape.heads, 1, [&](int64_t begin, int64_t end, int thread) {
      auto* const sum = reinterpret_cast<double*>(call.scratch + thread * paged_reference_bytes(call.shape));
      for (int64_t item = begin; item < end; ++item)
        PagedRow<decltype(q), decltype(kv)>(call, item / call.shape.heads, item % call.shape.heads).run(sum);
    });
  };
  if (call.kv_dtype == DType::i8)
    with_float(call.q_dtype, [&](auto q) { run(q, int8_t{}); });
  else
    with_floats(call.q_dtype, call.kv_dtype, run);
}

}  // namespace headroom
