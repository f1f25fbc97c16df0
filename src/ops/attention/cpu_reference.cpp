// Reference kernels for every legal call: one row at a time, in double arithmetic.
#include <cmath>
#include <limits>

#include "ops/attention/reference.h"
#include "ops/stream/float_types.h"

namespace headroom {
namespace {

template <typename T>
double dot(const T* a, const auto* b, int64_t count) {
  double sum = 0;
  for (int64_t i = 0; i < count; ++i)
    sum += static_cast<double>(static_cast<float>(a[i])) * static_cast<double>(static_cast<float>(b[i]));
  return sum;
}

template <typename T>
void add_scaled(double* sum, double factor, const T* row, int64_t count) {
  for (int64_t i = 0; i < count; ++i) sum[i] += factor * static_cast<double>(static_cast<float>(row[i]));
}

template <typename T>
void store(T* to, const double* from, double factor, int64_t count) {
  for (int64_t i = 0; i < count; ++i) to[i] = static_cast<T>(static_cast<float>(from[i] * factor));
}

// Row (batch row, position, head) of a [batch, rows, heads * dim] tensor.
template <typename T>
T* row_of(T* data, int64_t batch_row, int64_t rows, int64_t row, int64_t heads, int64_t head, int64_t dim) {
  return data + ((batch_row * rows + row) * heads + head) * dim;
}

// A score as the softmax uses it, from the product of a query and a key; `slope` is its derivative with respect to the
// scaled product.
struct Score {
  double value;
  double slope;
};
Score score_of(const AttentionShape& shape, double product) {
  const double scaled = shape.scale * product;
  if (shape.softcap == 0) return {scaled, 1};
  const double t = std::tanh(scaled / shape.softcap);
  return {shape.softcap * t, 1 - t * t};
}

template <typename Q, typename KV>
void forward_rows(const ForwardCall& call) {
  const int64_t dim = call.shape.dim;
  parallel_for(
      call.shape.batch * call.shape.heads * call.shape.queries, 1, [&](int64_t begin, int64_t end, int thread) {
        double* sum = reinterpret_cast<double*>(call.scratch + thread * reference_row_bytes(call.shape));
        for (int64_t index = begin; index < end; ++index) {
          const AttentionShape shape = call.shape.of_row(call.mask, index / call.shape.queries / call.shape.heads);
          const int64_t query = index % shape.queries, head = index / shape.queries % shape.heads;
          const int64_t row = index / shape.queries / shape.heads, kv_head = head / shape.group();
          const Q* q = row_of(static_cast<const Q*>(call.q), row, shape.queries, query, shape.heads, head, dim);
          const KV* k = row_of(static_cast<const KV*>(call.k), row, shape.keys, 0, shape.kv_heads, kv_head, dim);
          const KV* v = row_of(static_cast<const KV*>(call.v), row, shape.keys, 0, shape.kv_heads, kv_head, dim);
          const int64_t stride = shape.kv_heads * dim, position = call.first + query;
          double largest = -std::numeric_limits<double>::infinity(), total = 0;
          const int64_t first = shape.keys_begin(position), last = shape.keys_end(position);
          const uint64_t row_key = call.dropout.row_key(index);
          for (int64_t key = first; key < last; ++key)
            largest = std::max(largest, score_of(shape, dot(q, k + key * stride, dim)).value);
          std::fill_n(sum, dim, 0.0);
          for (int64_t key = first; key < last; ++key) {
            const double p = std::exp(score_of(shape, dot(q, k + key * stride, dim)).value - largest);
            total += p;
            if (!call.dropout.dropped(row_key, key)) add_scaled(sum, p, v + key * stride, dim);
          }
          store(row_of(static_cast<Q*>(call.o), row, shape.queries, query, shape.heads, head, dim), sum,
                static_cast<double>(call.dropout.rate.scale) / total, dim);
          if (call.lse) call.lse[index] = static_cast<float>(largest + std::log(total));
        }
      });
}

// One query row or one key row of the gradient.
template <typename T>
class GradRows {
 public:
  explicit GradRows(const GradCall& call) : call_(call), shape_(call.shape) {}

  void query_row(int64_t index, double* sum) const {
    const int64_t query = index % shape_.queries, head = index / shape_.queries % shape_.heads;
    const int64_t row = index / shape_.queries / shape_.heads;
    std::fill_n(sum, shape_.dim, 0.0);
    const AttentionShape shape = shape_.of_row(call_.mask, row);
    for (int64_t key = shape.keys_begin(query); key < shape.keys_end(query); ++key)
      add_scaled(sum, pair(row, head, query, key).ds, at_key(call_.k, row, key, head), shape_.dim);
    store(row_of(static_cast<T*>(call_.dq), row, shape_.queries, query, shape_.heads, head, shape_.dim), sum,
          shape_.scale, shape_.dim);
  }

  void key_row(int64_t index, double* dk, double* dv) const {
    const int64_t key = index % shape_.keys, kv_head = index / shape_.keys % shape_.kv_heads;
    const int64_t row = index / shape_.keys / shape_.kv_heads;
    std::fill_n(dk, shape_.dim, 0.0);
    std::fill_n(dv, shape_.dim, 0.0);
    const AttentionShape shape = shape_.of_row(call_.mask, row);
    for (int64_t head = kv_head * shape_.group(); head < (kv_head + 1) * shape_.group(); ++head) {
      for (int64_t query = 0; query < shape_.queries; ++query) {
        if (key < shape.keys_begin(query) || key >= shape.keys_end(query)) continue;
        const Pair found = pair(row, head, query, key);
        add_scaled(dk, found.ds, at_query(call_.q, row, query, head), shape_.dim);
        add_scaled(dv, found.p, at_query(call_.grad_o, row, query, head), shape_.dim);
      }
    }
    store(row_of(static_cast<T*>(call_.dk), row, shape_.keys, key, shape_.kv_heads, kv_head, shape_.dim), dk,
          shape_.scale, shape_.dim);
    store(row_of(static_cast<T*>(call_.dv), row, shape_.keys, key, shape_.kv_heads, kv_head, shape_.dim), dv, 1.0,
          shape_.dim);
  }

 private:
  // The weight of the value in the output, and the gradient of the score.
  struct Pair {
    double p;
    double ds;
  };
  Pair pair(int64_t row, int64_t head, int64_t query, int64_t key) const {
    const T* grad_o = at_query(call_.grad_o, row, query, head);
    const int64_t index = (row * shape_.heads + head) * shape_.queries + query;
    const double lse = call_.lse[index];
    const double product = dot(at_query(call_.q, row, query, head), at_key(call_.k, row, key, head), shape_.dim);
    const Score score = score_of(shape_, product);
    const double p = std::exp(score.value - lse);
    const double rowsum = dot(grad_o, at_query(call_.o, row, query, head), shape_.dim);
    const bool dropped = call_.dropout.dropped(call_.dropout.row_key(index), key);
    const double factor = dropped ? 0 : static_cast<double>(call_.dropout.rate.scale);
    const double dp = factor * dot(grad_o, at_key(call_.v, row, key, head), shape_.dim);
    return {factor * p, p * (dp - rowsum) * score.slope};
  }
  const T* at_query(const void* data, int64_t row, int64_t query, int64_t head) const {
    return row_of(static_cast<const T*>(data), row, shape_.queries, query, shape_.heads, head, shape_.dim);
  }
  const T* at_key(const void* data, int64_t row, int64_t key, int64_t head) const {
    return row_of(static_cast<const T*>(data), row, shape_.keys, key, shape_.kv_heads, head / shape_.group(),
                  shape_.dim);
  }

  const GradCall& call_;
  const AttentionShape& shape_;
};

template <typename T>
void grad_rows(const GradCall& call) {
  const AttentionShape& shape = call.shape;
  const GradRows<T> rows(call);
  const auto sums = [&](int thread) {
    return reinterpret_cast<double*>(call.scratch + thread * reference_row_bytes(shape));
  };
  parallel_for(shape.batch * shape.heads * shape.queries, 1, [&](int64_t begin, int64_t end, int thread) {
    for (int64_t index = begin; index < end; ++index) rows.query_row(index, sums(thread));
  });
  parallel_for(shape.batch * shape.kv_heads * shape.keys, 1, [&](int64_t begin, int64_t end, int thread) {
    for (int64_t index = begin; index < end; ++index) rows.key_row(index, sums(thread), sums(thread) + shape.dim);
  });
}

}  // namespace

void reference_forward(const ForwardCall& call) {
  with_floats(call.q_dtype, call.kv_dtype, [&](auto q, auto kv) { forward_rows<decltype(q), decltype(kv)>(call); });
}

void reference_grad(const GradCall& call) {
  with_float(call.dtype, [&](auto type) { grad_rows<decltype(type)>(call); });
}

}  // namespace headroom
