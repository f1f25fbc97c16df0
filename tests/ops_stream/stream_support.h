// Shared by the tests of the streaming ops: instruction sets to test, and the ops' formulas in double precision.
#pragma once

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "../ops_support/op_harness.h"
#include "hwy/targets.h"

namespace headroom::op_test {

// Runs `body` once per instruction set that has headroom kernels and that this machine supports.
inline void for_each_target(const std::function<void(const std::string&)>& body) {
  hwy::SetSupportedTargetsForTest(0);
  const int64_t supported = hwy::SupportedTargets();
  for (const auto& [target, name] :
       {std::pair<int64_t, const char*>{HWY_AVX3, "AVX-512"}, {HWY_AVX2, "AVX2"}, {HWY_NEON, "NEON"}}) {
    if ((supported & target) == 0) continue;
    hwy::SetSupportedTargetsForTest(target);
    SCOPED_TRACE(name);
    body(name);
  }
  hwy::SetSupportedTargetsForTest(0);
}

// Restores the team's size.
class Team {
 public:
  explicit Team(int size) : before_(threads()) { set_threads(size); }
  ~Team() { set_threads(before_); }
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

 private:
  int before_;
};

inline std::vector<double> values(const Tensor& tensor) {
  std::vector<double> out;
  for (int64_t i = 0; i < tensor.count(); ++i) out.push_back(tensor.at(i));
  return out;
}

using Vector = std::vector<double>;

// rows of width w.size()
inline Vector rms_norm_formula(const Vector& x, const Vector& w, double eps) {
  Vector y(x.size());
  for (size_t at = 0; at < x.size(); at += w.size()) {
    double mean = 0;
    for (size_t i = 0; i < w.size(); ++i) mean += x[at + i] * x[at + i] / static_cast<double>(w.size());
    for (size_t i = 0; i < w.size(); ++i) y[at + i] = w[i] * x[at + i] / std::sqrt(mean + eps);
  }
  return y;
}

inline Vector layer_norm_formula(const Vector& x, const Vector& w, const Vector& b, double eps) {
  Vector y(x.size());
  const double width = static_cast<double>(w.size());
  for (size_t at = 0; at < x.size(); at += w.size()) {
    double mean = 0, squares = 0;
    for (size_t i = 0; i < w.size(); ++i) mean += x[at + i] / width;
    for (size_t i = 0; i < w.size(); ++i) squares += (x[at + i] - mean) * (x[at + i] - mean) / width;
    for (size_t i = 0; i < w.size(); ++i) y[at + i] = (x[at + i] - mean) / std::sqrt(squares + eps) * w[i] + b[i];
  }
  return y;
}

inline Vector swiglu_formula(const Vector& gate, const Vector& up) {
  Vector y(gate.size());
  for (size_t i = 0; i < y.size(); ++i) y[i] = gate[i] / (1 + std::exp(-gate[i])) * up[i];
  return y;
}

// `unit`: the weight is stored minus one.
inline Vector rms_norm_formula(const Vector& x, Vector w, double eps, bool unit) {
  for (double& factor : w) factor += unit ? 1 : 0;
  return rms_norm_formula(x, w, eps);
}

inline Vector gelu_formula(const Vector& x, bool tanh) {
  Vector y(x.size());
  for (size_t i = 0; i < y.size(); ++i) {
    const double cubic = 0.7978845608028654 * (x[i] + 0.044715 * x[i] * x[i] * x[i]);
    y[i] = tanh ? 0.5 * x[i] * (1 + std::tanh(cubic)) : 0.5 * x[i] * (1 + std::erf(x[i] / 1.4142135623730951));
  }
  return y;
}

// d(sum of dy * f(x))/dx by central differences.
inline Vector differences(const Vector& x, const Vector& dy, const std::function<Vector(const Vector&)>& f) {
  const auto loss = [&](const Vector& at) {
    const Vector y = f(at);
    double sum = 0;
    for (size_t i = 0; i < y.size(); ++i) sum += y[i] * dy[i];
    return sum;
  };
  Vector result(x.size());
  constexpr double kStep = 1e-5;
  for (size_t i = 0; i < x.size(); ++i) {
    Vector up = x, down = x;
    up[i] += kStep;
    down[i] -= kStep;
    result[i] = (loss(up) - loss(down)) / (2 * kStep);
  }
  return result;
}

inline void expect_near(const Tensor& found, const Vector& expected, double absolute, double relative) {
  ASSERT_EQ(found.count(), static_cast<int64_t>(expected.size()));
  for (int64_t i = 0; i < found.count(); ++i) {
    const double wanted = expected[static_cast<size_t>(i)];
    ASSERT_NEAR(found.at(i), wanted, absolute + relative * std::abs(wanted)) << "element " << i;
  }
}

}  // namespace headroom::op_test
