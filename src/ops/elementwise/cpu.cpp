// CPU kernels of the elementwise ops.
#include <cmath>
#include <numbers>

#include "base/threads.h"
#include "ops/elementwise/simd.h"
#include "ops/elementwise/table.h"
#include "ops/stream/scalar_access.h"

namespace headroom {
namespace {

constexpr int64_t kGrain = 2048;

// Arithmetic in f64, one element at a time.
struct Doubles {
  struct Normal {
    double density, integral;
  };
  double set(double c) const { return c; }
  double add(double a, double b) const { return a + b; }
  double sub(double a, double b) const { return a - b; }
  double mul(double a, double b) const { return a * b; }
  double mul_add(double a, double b, double c) const { return c + a * b; }
  double neg_mul_add(double a, double b, double c) const { return c - a * b; }
  double quotient(double x, const FormulaConstant<double>& c) const { return x / c.value; }
  double one_plus_square(double a, double x) const { return 1 + a * x * x; }
  double times_bend(double w, double s) const { return w * s * (1 - s); }
  double zero_beyond(double, double, double v) const { return v; }  // in f64, f32 operands do not overflow here
  double sigmoid(double x) const { return 1 / (1 + std::exp(-x)); }
  Normal normal(double x) const {
    return {std::exp(-x * x / 2) * std::numbers::inv_sqrtpi / std::numbers::sqrt2,
            0.5 * std::erfc(-x / std::numbers::sqrt2)};
  }
  double tanh(double x) const { return std::tanh(x); }
};

#define HR_FORMULA inline
#include "ops/elementwise/formulas-inl.h"
#undef HR_FORMULA

// What a kernel keeps of its spec.
struct Prepared {
  Formula formula;
  double constant;

  explicit Prepared(const KernelSpec& spec) {
    const ElementwiseRow& row = elementwise_row(spec.op);
    formula = row.formula(spec.op, spec.attrs);
    constant = row.constant.empty() ? 1 : spec.attrs.real(row.constant);
  }
};

ElementwiseArrays arrays_of(const KernelCall& call) {
  ElementwiseArrays arrays;
  for (size_t i = 0; i < call.inputs.size(); ++i) arrays.in[i] = call.inputs[i].data;
  for (size_t i = 0; i < call.outputs.size(); ++i) arrays.out[i] = call.outputs[i].data;
  arrays.dtype = call.outputs[0].dtype;
  return arrays;
}

std::unique_ptr<CpuKernel> simd(const KernelSpec& spec) {
  const Prepared prepared(spec);
  const auto value = static_cast<float>(prepared.constant);
  const FormulaConstant<float> constant{value, 1.0f / value};
  return kernel_of([formula = prepared.formula, constant](const KernelCall& call) {
    const ElementwiseArrays arrays = arrays_of(call);
    parallel_for(call.outputs[0].count(), kGrain,
                 [&](int64_t begin, int64_t end, int) { elementwise_range(formula, constant, arrays, begin, end); });
  });
}

KernelOffer gated_silu_bf16(const KernelSpec& spec, const DeviceFacts& facts) {
  const Formula formula = Prepared(spec).formula;
  if (!facts.capabilities.has(kAvx512Bf16)) return {nullptr, "the machine has no AVX512_BF16"};
  if (spec.outputs[0].dtype != DType::bf16 || (formula != Formula::gated_silu && formula != Formula::gated_silu_grad))
    return {nullptr, "takes bf16 and silu"};
  return {kernel_of([formula](const KernelCall& call) {
            const ElementwiseArrays arrays = arrays_of(call);
            parallel_for(call.outputs[0].count(), kGrain,
                         [&](int64_t begin, int64_t end, int) { gated_silu_bf16_range(formula, arrays, begin, end); });
          }),
          {}};
}

template <class F>
std::unique_ptr<CpuKernel> reference_of(const KernelSpec& spec, const FormulaConstant<double>& constant) {
  HR_CHECK(spec.inputs.size() == F::kInputs && spec.outputs.size() == F::kOutputs,
           "{}: its formula has {} inputs and {} outputs", spec.op, F::kInputs, F::kOutputs);
  return kernel_of([constant](const KernelCall& call) {
    for (int64_t i = 0; i < call.outputs[0].count(); ++i) {
      double in[F::kInputs], out[F::kOutputs];
      for (size_t k = 0; k < F::kInputs; ++k) in[k] = read_element(call.inputs[k], i);
      F::at(Doubles(), constant, in, out);
      for (size_t k = 0; k < F::kOutputs; ++k) write_element(call.outputs[k], i, out[k]);
    }
  });
}

std::unique_ptr<CpuKernel> reference(const KernelSpec& spec) {
  const Prepared prepared(spec);
  const FormulaConstant<double> constant{prepared.constant, 1 / prepared.constant};
  switch (prepared.formula) {
#define HR_MAKE(number, type) \
  case Formula::number:       \
    return reference_of<type>(spec, constant);
    HR_FORMULAS(HR_MAKE)
#undef HR_MAKE
  }
  return nullptr;
}

}  // namespace

void register_elementwise_cpu(CpuKernels& kernels) {
  for (const ElementwiseRow& row : elementwise_rows()) {
    std::vector<KernelCandidate> candidates = simd_and_reference<simd, reference>();
    if (row.name.starts_with("swiglu")) candidates.insert(candidates.begin(), {"avx512_bf16", gated_silu_bf16});
    kernels.add(row.name, std::move(candidates));
  }
}

}  // namespace headroom
