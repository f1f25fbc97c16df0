// Attention and its gradient by the formulas, in double, with the whole matrix of probabilities.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "../ops_support/op_harness.h"
#include "ops/attention/score_dropout.h"

namespace headroom::op_test {

struct Case {
  int64_t batch = 1;
  int64_t queries = 1;
  int64_t heads = 1;
  int64_t kv_heads = 1;
  int64_t dim = 8;
  bool causal = true;
  int64_t window = 0;
  double scale = 0;  // 0: the default
  DType dtype = DType::f32;
  double softcap = 0;
  double dropout = 0;
  int64_t tensor = 5;

  Attrs attrs() const {
    Attrs attrs{{"heads", heads}, {"kv_heads", kv_heads}, {"causal", int64_t{causal}}, {"window", window}};
    if (scale > 0) attrs.set("scale", scale);
    if (softcap > 0) attrs.set("softcap", softcap);
    if (dropout > 0) attrs.set("dropout", dropout).set("tensor", tensor);
    return attrs;
  }
  double factor() const { return scale > 0 ? scale : 1 / std::sqrt(static_cast<double>(dim)); }
  // A scaled score and its derivative after the cap.
  double capped(double score) const { return softcap > 0 ? softcap * std::tanh(score / softcap) : score; }
  double slope(double score) const {
    const double t = softcap > 0 ? std::tanh(score / softcap) : 0;
    return 1 - t * t;
  }
  bool sees(int64_t query, int64_t key) const {
    return (!causal || key <= query) && (window == 0 || key > query - window);
  }
  // Seed and step of the random bits.
  Tensor hyper(uint64_t seed = 42, uint32_t step = 3) const {
    Tensor hyper = Tensor::filled(DType::f32, {16}, 0);
    std::memcpy(hyper.as<float>() + 6, &seed, sizeof(seed));
    std::memcpy(hyper.as<float>() + 8, &step, sizeof(step));
    return hyper;
  }
  // The factor of a probability, written out: 16 bits per score, by (seed, step, tensor, row, key).
  double kept(int64_t b, int64_t h, int64_t i, int64_t j) const {
    if (dropout == 0) return 1;
    const uint64_t key = mix64(mix64(mix64(42) ^ static_cast<uint64_t>(tensor)) ^ 3);
    const uint64_t row = mix64(key ^ static_cast<uint64_t>((b * heads + h) * queries + i));
    const uint32_t word =
        mix32(mix32(static_cast<uint32_t>(j / 2) + static_cast<uint32_t>(row)) ^ static_cast<uint32_t>(row >> 32));
    const double below = std::round(dropout * 65536);
    return (word >> 16 * (j % 2) & 0xffff) < below ? 0 : 65536 / (65536 - below);
  }
  // The op's inputs: `own`, and with dropout the scalars.
  std::vector<Tensor> inputs(std::vector<Tensor> own) const {
    if (dropout > 0) own.push_back(hyper());
    return own;
  }
  std::string text() const {
    return fmt::format("B{} S{} heads {}/{} d{} causal {} window {} {} dropout {}", batch, queries, heads, kv_heads,
                       dim, causal, window, dtype_name(dtype), dropout);
  }
};

using Values = std::vector<double>;

inline Values values_of(const Tensor& tensor) {
  Values values;
  for (int64_t i = 0; i < tensor.count(); ++i) values.push_back(tensor.at(i));
  return values;
}

struct NaiveForward {
  Values o;
  Values lse;
};

// Offsets of (batch row, position, head) in [batch, rows, heads * dim].
struct NaiveIndex {
  const Case& c;
  size_t q(int64_t b, int64_t i, int64_t h) const {
    return static_cast<size_t>(((b * c.queries + i) * c.heads + h) * c.dim);
  }
  size_t kv(int64_t b, int64_t j, int64_t h) const {
    return static_cast<size_t>(((b * c.queries + j) * c.kv_heads + h / (c.heads / c.kv_heads)) * c.dim);
  }
  size_t lse(int64_t b, int64_t h, int64_t i) const { return static_cast<size_t>((b * c.heads + h) * c.queries + i); }
  double dot(const Values& x, size_t at, const Values& y, size_t other) const {
    double sum = 0;
    for (size_t e = 0; e < static_cast<size_t>(c.dim); ++e) sum += x[at + e] * y[other + e];
    return sum;
  }
  void add(Values& x, size_t at, double factor, const Values& y, size_t other) const {
    for (size_t e = 0; e < static_cast<size_t>(c.dim); ++e) x[at + e] += factor * y[other + e];
  }
};

inline NaiveForward naive_forward(const Case& c, const Values& q, const Values& k, const Values& v) {
  const NaiveIndex at{c};
  NaiveForward result{Values(q.size()), Values(static_cast<size_t>(c.batch * c.heads * c.queries))};
  for (int64_t b = 0; b < c.batch; ++b)
    for (int64_t h = 0; h < c.heads; ++h)
      for (int64_t i = 0; i < c.queries; ++i) {
        Values scores(static_cast<size_t>(c.queries), -INFINITY);
        double largest = -INFINITY, total = 0;
        for (int64_t j = 0; j < c.queries; ++j)
          if (c.sees(i, j)) {
            scores[static_cast<size_t>(j)] = c.capped(c.factor() * at.dot(q, at.q(b, i, h), k, at.kv(b, j, h)));
            largest = std::max(largest, scores[static_cast<size_t>(j)]);
          }
        for (double score : scores) total += std::exp(score - largest);
        for (int64_t j = 0; j < c.queries; ++j)
          at.add(result.o, at.q(b, i, h),
                 c.kept(b, h, i, j) * std::exp(scores[static_cast<size_t>(j)] - largest) / total, v, at.kv(b, j, h));
        result.lse[at.lse(b, h, i)] = largest + std::log(total);
      }
  return result;
}

struct NaiveGrad {
  Values dq, dk, dv;
};

inline NaiveGrad naive_grad(const Case& c, const Values& q, const Values& k, const Values& v, const Values& grad_o) {
  const NaiveIndex at{c};
  const NaiveForward forward = naive_forward(c, q, k, v);
  NaiveGrad result{Values(q.size()), Values(k.size()), Values(v.size())};
  for (int64_t b = 0; b < c.batch; ++b)
    for (int64_t h = 0; h < c.heads; ++h)
      for (int64_t i = 0; i < c.queries; ++i) {
        const size_t qi = at.q(b, i, h);
        const double rowsum = at.dot(grad_o, qi, forward.o, qi);
        for (int64_t j = 0; j < c.queries; ++j) {
          if (!c.sees(i, j)) continue;
          const size_t kj = at.kv(b, j, h);
          const double score = c.factor() * at.dot(q, qi, k, kj);
          const double p = std::exp(c.capped(score) - forward.lse[at.lse(b, h, i)]);
          const double kept = c.kept(b, h, i, j), dp = kept * at.dot(grad_o, qi, v, kj);
          const double ds = c.factor() * p * (dp - rowsum) * c.slope(score);
          at.add(result.dq, qi, ds, k, kj);
          at.add(result.dk, kj, ds, q, qi);
          at.add(result.dv, kj, kept * p, grad_o, qi);
        }
      }
  return result;
}

struct Inputs {
  Tensor q, k, v, grad_o;
};

inline Inputs random_inputs(const Case& c, uint64_t seed = 1) {
  return {Tensor::random(c.dtype, {c.batch, c.queries, c.heads * c.dim}, seed, 1.5),
          Tensor::random(c.dtype, {c.batch, c.queries, c.kv_heads * c.dim}, seed + 1, 1.5),
          Tensor::random(c.dtype, {c.batch, c.queries, c.kv_heads * c.dim}, seed + 2),
          Tensor::random(c.dtype, {c.batch, c.queries, c.heads * c.dim}, seed + 3)};
}

// Every implementation of `op` that accepts the call on this machine.
inline std::vector<std::string> implementations(std::string_view op, const std::vector<Tensor>& inputs,
                                                const Attrs& attrs) {
  std::vector<std::string> accepted;
  for (const KernelCandidate& candidate : cpu_kernels().candidates(op))
    if (accepts(op, inputs, attrs, candidate.implementation)) accepted.emplace_back(candidate.implementation);
  return accepted;
}

// Relative distance of two vectors: |a - b| / |b|, both norms over all elements.
inline double relative_distance(const Tensor& found, const Values& expected) {
  double difference = 0, size = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    const double delta = found.at(static_cast<int64_t>(i)) - expected[i];
    difference += delta * delta;
    size += expected[i] * expected[i];
  }
  return std::sqrt(difference / (size + 1e-30));
}

}  // namespace headroom::op_test
