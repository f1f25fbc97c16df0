#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/linear_cross_entropy/cpu_softmax.cpp"
#include "ops/stream/targets.h"
// The list of targets comes before any header of Highway.
#include "hwy/foreach_target.h"
// After foreach_target.h, which includes this file once per target.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "hwy/highway.h"
#include "ops/linear_cross_entropy/cpu_softmax.h"
#include "ops/stream/float_types.h"
#include "ops/stream/lanes-inl.h"
#include "ops/stream/sigmoid-inl.h"
#include "ops/stream/tanh-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headroom {
namespace HWY_NAMESPACE {
namespace {

constexpr int64_t kNone = -1;

// The largest element of a block; NaN if an element is not finite.
HWY_INLINE float block_max(const float* x, int64_t count) {
  const hn::ScalableTag<float> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto zero = hn::Zero(d);
  auto a = hn::Set(d, x[0]), b = a, spoilt_a = zero, spoilt_b = zero;
  int64_t i = 0;
  for (; i + 2 * lanes <= count; i += 2 * lanes) {
    const auto left = hn::LoadU(d, x + i), right = hn::LoadU(d, x + i + lanes);
    a = hn::Max(a, left);
    b = hn::Max(b, right);
    spoilt_a = hn::MulAdd(left, zero, spoilt_a);
    spoilt_b = hn::MulAdd(right, zero, spoilt_b);
  }
  float largest = hn::GetLane(hn::MaxOfLanes(d, hn::Max(a, b)));
  float spoilt = hn::GetLane(hn::SumOfLanes(d, hn::Add(spoilt_a, spoilt_b)));
  for (; i < count; ++i) {
    largest = std::max(largest, x[i]);
    spoilt += x[i] * 0.0f;
  }
  return largest + spoilt;
}

// Adds `count` logits to a row's softmax. One pass over memory: each block is read twice, the second time from the
// first-level cache.
void add_logits(const float* x, int64_t count, RowSoftmax& row) {
  constexpr int64_t kBlock = 2048;
  for (int64_t begin = 0; begin < count; begin += kBlock) {
    const int64_t size = std::min(kBlock, count - begin);
    const float largest = block_max(x + begin, size);
    if (!(largest <= row.largest)) {
      row.sum *= std::exp(static_cast<double>(row.largest) - static_cast<double>(largest));
      row.largest = largest;
    }
    const float shift = row.largest;
    row.sum += static_cast<double>(sum_lanes(size, [&](auto d, int64_t i) HWY_ATTR {
      return exp_negative(d, hn::Sub(load(d, x + begin + i), hn::Set(d, shift)));
    }));
  }
}

void cap_row(float* logits, int64_t count, float cap) {
  const float inverse = 1.0f / cap;
  for_lanes(0, count, [&](auto d, int64_t i) HWY_ATTR {
    const auto t = tanh_of(d, hn::Mul(load(d, logits + i), hn::Set(d, inverse)));
    store(d, hn::Mul(t, hn::Set(d, cap)), logits + i);
  });
}

// The gradient of `count` logits, of which number `target` is the target's; kNone: it is not among them. With kCapped,
// `logits` are already capped, and the gradient is multiplied by the cap's slope 1 - (l / cap)^2.
template <bool kCapped, typename T>
void write_gradient(const RowSoftmax& row, const float* logits, int64_t count, int64_t target, float scale, float cap,
                    T* gradient) {
  const float inverse = kCapped ? 1.0f / cap : 0.0f, part = kCapped ? row.chosen * inverse : 0.0f;
  const float share = static_cast<float>(1.0 / row.sum);
  const float factor = scale * share;
  for_lanes(0, count, [&](auto d, int64_t i) HWY_ATTR {
    const auto power = exp_negative(d, hn::Sub(load(d, logits + i), hn::Set(d, row.largest)));
    auto slope = hn::Mul(power, hn::Set(d, factor));
    if constexpr (kCapped) {
      const auto t = hn::Mul(load(d, logits + i), hn::Set(d, inverse));
      slope = hn::Mul(slope, hn::NegMulAdd(t, t, hn::Set(d, 1.0f)));
    }
    store(d, slope, gradient + i);
  });
  if (target == kNone) return;
  const double chosen = std::exp(static_cast<double>(row.chosen) - static_cast<double>(row.largest)) / row.sum;
  const float at_target = scale * static_cast<float>(chosen - 1.0);
  gradient[target] = static_cast<T>(kCapped ? at_target * (1.0f - part * part) : at_target);
}

template <bool kCapped>
void write_row(const LossRows& rows, int64_t row, const RowSoftmax& softmax, int64_t target) {
  with_float(rows.dtype, [&](auto type) {
    using T = decltype(type);
    write_gradient<kCapped>(softmax, rows.logits + row * rows.vocabulary, rows.vocabulary, target, rows.scale,
                            rows.softcap, gradient_row<T>(rows, row));
  });
}

template <bool kCapped>
void softmax_row(const LossRows& rows, int64_t row) {
  float* logits = rows.logits + row * rows.vocabulary;
  const int32_t target = rows.targets.at(rows.first_row + row);
  start_row(rows, row);
  if (target == Targets::kNone) {
    if (rows.gradient) std::memset(gradient_row<std::byte>(rows, row), 0, row_bytes(rows));
    return;
  }
  if constexpr (kCapped) cap_row(logits, rows.vocabulary, rows.softcap);
  RowSoftmax softmax;
  add_logits(logits, rows.vocabulary, softmax);
  softmax.chosen = logits[target];
  if (rows.hits != nullptr) rows.hits[row] = softmax.hit() ? 1 : 0;
  rows.losses[row] = softmax.loss();
  if (rows.gradient) write_row<kCapped>(rows, row, softmax, target);
}

void softmax_rows(const LossRows& rows) {
  if (rows.softcap > 0)
    each_row(rows, [&](int64_t row) { softmax_row<true>(rows, row); });
  else
    each_row(rows, [&](int64_t row) { softmax_row<false>(rows, row); });
}

// The index in the slice of the target's logit; kNone: it is in another slice.
int64_t target_in_slice(const LossRows& rows, int64_t first, int32_t target) {
  return target >= first && target < first + rows.vocabulary ? target - first : kNone;
}

void add_slice(const LossRows& rows, int64_t first, RowSoftmax* softmax) {
  parallel_for(rows.rows, 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t row = begin; row < end; ++row) {
      const int32_t target = rows.targets.at(rows.first_row + row);
      if (target == Targets::kNone) continue;
      float* const logits = rows.logits + row * rows.vocabulary;
      if (rows.softcap > 0) cap_row(logits, rows.vocabulary, rows.softcap);
      add_logits(logits, rows.vocabulary, softmax[row]);
      const int64_t at = target_in_slice(rows, first, target);
      if (at != kNone) softmax[row].chosen = logits[at];
    }
  });
}

void write_slice(const LossRows& rows, int64_t first, const RowSoftmax* softmax) {
  each_row(rows, [&](int64_t row) {
    const int32_t target = rows.targets.at(rows.first_row + row);
    if (target == Targets::kNone) {
      std::memset(gradient_row<std::byte>(rows, row), 0, row_bytes(rows));
      return;
    }
    const int64_t at = target_in_slice(rows, first, target);
    if (rows.softcap > 0) {
      cap_row(rows.logits + row * rows.vocabulary, rows.vocabulary, rows.softcap);
      write_row<true>(rows, row, softmax[row], at);
    } else {
      write_row<false>(rows, row, softmax[row], at);
    }
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace headroom
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headroom {

HWY_EXPORT(softmax_rows);
HWY_EXPORT(add_slice);
HWY_EXPORT(write_slice);

SoftmaxLoss simd_softmax_loss() { return HWY_DYNAMIC_DISPATCH(softmax_rows); }
SliceSoftmax simd_slice_softmax() { return {HWY_DYNAMIC_DISPATCH(add_slice), HWY_DYNAMIC_DISPATCH(write_slice)}; }

namespace {

template <typename T>
void plain_gradient(const LossRows& rows, const float* logits, double largest, double sum, int32_t target,
                    T* gradient) {
  for (int64_t i = 0; i < rows.vocabulary; ++i) {
    const double share = std::exp(static_cast<double>(logits[i]) - largest) / sum;
    float slope = static_cast<float>(share - (i == target ? 1.0 : 0.0));
    if (rows.softcap > 0) slope *= 1.0f - logits[i] / rows.softcap * (logits[i] / rows.softcap);
    const T value = static_cast<T>(rows.scale * slope);
    std::memcpy(gradient + i, &value, sizeof(T));
  }
}

void plain_row(const LossRows& rows, int64_t row) {
  float* logits = rows.logits + row * rows.vocabulary;
  const int32_t target = rows.targets.at(rows.first_row + row);
  start_row(rows, row);
  if (target == Targets::kNone) {
    if (rows.gradient) std::memset(gradient_row<std::byte>(rows, row), 0, row_bytes(rows));
    return;
  }
  if (rows.softcap > 0)
    for (int64_t i = 0; i < rows.vocabulary; ++i) logits[i] = rows.softcap * std::tanh(logits[i] / rows.softcap);
  const double largest = static_cast<double>(*std::max_element(logits, logits + rows.vocabulary));
  double sum = 0;
  for (int64_t i = 0; i < rows.vocabulary; ++i) sum += std::exp(static_cast<double>(logits[i]) - largest);
  if (rows.hits != nullptr) rows.hits[row] = static_cast<double>(logits[target]) >= largest ? 1 : 0;
  rows.losses[row] = largest - static_cast<double>(logits[target]) + std::log(sum);
  if (!rows.gradient) return;
  with_float(rows.dtype, [&](auto type) {
    plain_gradient(rows, logits, largest, sum, target, gradient_row<decltype(type)>(rows, row));
  });
}

}  // namespace

void plain_softmax_loss(const LossRows& rows) {
  each_row(rows, [&](int64_t row) { plain_row(rows, row); });
}

}  // namespace headroom
#endif
