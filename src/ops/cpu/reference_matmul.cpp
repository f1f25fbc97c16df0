// Products with plain loops: every type and layout, no scratch.
#include <algorithm>

#include "base/threads.h"
#include "ops/cpu/bf16_parts.h"
#include "ops/cpu/coded_matrix.h"
#include "ops/cpu/int8_codes.h"
#include "ops/cpu/matmul.h"
#include "ops/stream/float_types.h"

namespace headroom {
namespace {

// Reads elements of B, stored plainly or in blocks of codes.
template <typename B>
class PlainElements {
 public:
  PlainElements(const MatmulSpec&, const void* data) : data_(static_cast<const B*>(data)) {}
  float operator[](int64_t at) const { return static_cast<float>(data_[at]); }

 private:
  const B* data_;
};

class CodedElements {
 public:
  CodedElements(const MatmulSpec& spec, const void* data)
      : matrix_(data, spec.b_storage, spec.size.cols * spec.size.depth) {}
  float operator[](int64_t at) const {
    float value = 0;
    matrix_.read(at, 1, &value);
    return value;
  }

 private:
  CodedMatrix matrix_;
};

// A, P and Q in T; B read through `Elements` and rounded to T; C in R.
template <typename T, typename Elements, typename R>
class ReferenceMatmul final : public Matmul {
 public:
  explicit ReferenceMatmul(const MatmulSpec& spec) : spec_(spec) {
    const auto [rows, cols, depth] = spec.size;
    a_row_ = spec.a_transposed ? 1 : depth;
    a_step_ = spec.a_transposed ? rows : 1;
    b_col_ = spec.b_transposed ? depth : 1;
    b_step_ = spec.b_transposed ? 1 : cols;
    q_col_ = spec.q_transposed ? spec.low_rank : 1;
    q_step_ = spec.q_transposed ? 1 : cols;
  }

  int64_t scratch_bytes() const override { return 0; }

  void run(const MatmulArguments& arguments) const override {
    const Elements b(spec_, arguments.b);
    parallel_for(spec_.size.rows, 1, [&](int64_t begin, int64_t end, int) {
      for (int64_t row = begin; row < end; ++row)
        for (int64_t col = 0; col < spec_.size.cols; ++col) run_element(arguments, b, row, col);
    });
  }

 private:
  void run_element(const MatmulArguments& arguments, const Elements& b, int64_t row, int64_t col) const {
    const T* a = static_cast<const T*>(arguments.a) + row * a_row_;
    float sum = spec_.multiply == Multiply::int8 ? product_of_codes(a, b, col) : 0;
    for (int64_t step = 0; step < spec_.size.depth && spec_.multiply != Multiply::int8; ++step)
      sum = with_product(sum, a_at(a, step), b_at(b, col, step));
    for (int64_t step = 0; step < spec_.low_rank; ++step)
      sum = with_product(sum, static_cast<float>(static_cast<const T*>(arguments.p)[row * spec_.low_rank + step]),
                         static_cast<float>(static_cast<const T*>(arguments.q)[col * q_col_ + step * q_step_]));
    if (spec_.bias) sum += arguments.bias[col];
    const int64_t at = row * spec_.size.cols + col;
    if (spec_.addend) sum += static_cast<float>(static_cast<const R*>(arguments.addend)[at]);
    static_cast<R*>(arguments.c)[at] = static_cast<R>(sum);
  }

  float a_at(const T* a, int64_t step) const { return static_cast<float>(a[step * a_step_]); }
  float b_at(const Elements& b, int64_t col, int64_t step) const {
    return static_cast<float>(static_cast<T>(b[col * b_col_ + step * b_step_]));
  }

  // The scales are computed for every element of C: there is no scratch to keep them.
  float product_of_codes(const T* a, const Elements& b, int64_t col) const {
    int32_t a_largest = 0, b_largest = 0, sum = 0;
    for (int64_t step = 0; step < spec_.size.depth; ++step) {
      a_largest = std::max(a_largest, magnitude_bits(a_at(a, step)));
      b_largest = std::max(b_largest, magnitude_bits(b_at(b, col, step)));
    }
    const Int8Scale a_scale = int8_scale(a_largest), b_scale = int8_scale(b_largest);
    for (int64_t step = 0; step < spec_.size.depth; ++step)
      sum += int8_code(a_at(a, step), a_scale.inverse) * int8_code(b_at(b, col, step), b_scale.inverse);
    return static_cast<float>(sum) * b_scale.scale * a_scale.scale;
  }

  float with_product(float sum, float a, float b) const {
    if (spec_.operand != DType::f32 || spec_.multiply == Multiply::full) return sum + a * b;
    if (spec_.multiply == Multiply::bf16) return sum + rounded_to_bf16(a) * rounded_to_bf16(b);
    return add_three_products(sum, bf16_parts(a), bf16_parts(b));
  }

  MatmulSpec spec_;
  int64_t a_row_, a_step_, b_col_, b_step_, q_col_, q_step_;  // elements
};

template <typename T, typename Elements>
MatmulOffer make_reference(const MatmulSpec& spec) {
  if (spec.result == DType::f32) return {std::make_unique<ReferenceMatmul<T, Elements, float>>(spec), {}};
  return {std::make_unique<ReferenceMatmul<T, Elements, T>>(spec), {}};
}

}  // namespace

MatmulOffer make_reference_matmul(const MatmulSpec& spec, const DeviceFacts&, int64_t) {
  const bool coded = !spec.b_storage.dense();
  if (spec.operand == DType::f32)
    return coded ? make_reference<float, CodedElements>(spec) : make_reference<float, PlainElements<float>>(spec);
  MatmulOffer offer;
  with_narrow(spec.operand, [&](auto type) {
    using T = decltype(type);
    if (coded)
      offer = make_reference<T, CodedElements>(spec);
    else if (spec.rounds_b)
      offer = make_reference<T, PlainElements<float>>(spec);
    else
      offer = make_reference<T, PlainElements<T>>(spec);
  });
  return offer;
}

}  // namespace headroom
