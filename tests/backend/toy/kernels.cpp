#include <cmath>

#include "toy.h"

namespace headroom::toy {
namespace {

template <typename F>
Offer<Kernel> kernel_of(F body) {
  class Lambda final : public Kernel {
   public:
    explicit Lambda(F body) : body_(std::move(body)) {}
    void run(const KernelCall& call) const override { body_(call); }

   private:
    F body_;
  };
  return {std::make_unique<Lambda>(std::move(body)), {}};
}

// y = x w^T; scratch holds the sums of one row of y.
Offer<Kernel> linear_by_rows(const KernelSpec& spec, const DeviceFacts& facts) {
  if (facts.capabilities.version(kGears) < 2) return {nullptr, "needs two gears"};
  if (spec.scratch_bytes < row_of_sums(spec.call())) return {nullptr, "needs scratch for a row"};
  return kernel_of([](const KernelCall& call) {
    const TensorView &x = call.inputs[0], &w = call.inputs[1], &y = call.outputs[0];
    const int64_t ins = x.dims.back(), outs = y.dims.back();
    auto* const sums = reinterpret_cast<double*>(call.scratch.data());
    for (int64_t row = 0; row < y.count() / outs; ++row) {
      for (int64_t o = 0; o < outs; ++o) {
        sums[o] = 0;
        for (int64_t i = 0; i < ins; ++i)
          sums[o] +=
              static_cast<double>(x.as<float>()[row * ins + i]) * static_cast<double>(w.as<float>()[o * ins + i]);
      }
      for (int64_t o = 0; o < outs; ++o) y.as<float>()[row * outs + o] = static_cast<float>(sums[o]);
    }
  });
}

Offer<Kernel> linear_by_elements(const KernelSpec&, const DeviceFacts&) {
  return kernel_of([](const KernelCall& call) {
    const TensorView &x = call.inputs[0], &w = call.inputs[1], &y = call.outputs[0];
    const int64_t ins = x.dims.back(), outs = y.dims.back();
    for (int64_t at = 0; at < y.count(); ++at) {
      float sum = 0;
      for (int64_t i = 0; i < ins; ++i) sum += x.as<float>()[at / outs * ins + i] * w.as<float>()[at % outs * ins + i];
      y.as<float>()[at] = sum;
    }
  });
}

Offer<Kernel> gelu(const KernelSpec&, const DeviceFacts&) {
  return kernel_of([](const KernelCall& call) {
    for (int64_t i = 0; i < call.outputs[0].count(); ++i) {
      const double x = call.inputs[0].as<float>()[i];
      call.outputs[0].as<float>()[i] = static_cast<float>(x * 0.5 * std::erfc(-x / std::sqrt(2.0)));
    }
  });
}

Offer<Kernel> add(const KernelSpec&, const DeviceFacts&) {
  return kernel_of([](const KernelCall& call) {
    for (int64_t i = 0; i < call.outputs[0].count(); ++i)
      call.outputs[0].as<float>()[i] = call.inputs[0].as<float>()[i] + call.inputs[1].as<float>()[i];
  });
}

}  // namespace

const KernelTable<Candidate>& kernels() {
  static const KernelTable<Candidate> table = [] {
    KernelTable<Candidate> all("toy");
    all.add("linear", {{"rows", linear_by_rows}, {"elements", linear_by_elements}});
    all.add("gelu", {{"plain", gelu}});
    all.add("add", {{"plain", add}});
    return all;
  }();
  return table;
}

}  // namespace headroom::toy
