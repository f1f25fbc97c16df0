// CPU kernels of the elementwise ops.
#include <cmath>
#include <numbers>

#include "base/threads.h"
#include "ops/elementwise/simd.h"
#include "ops/elementwise/table.h"
#include "ops/stream/counter_bits.h"
#include "ops/stream/scalar_access.h"

namespace headroom {
namespace {

constexpr int64_t kGrain = 2048;

// Arithmetic in f64, one element at a time: number `index` of the step's global batch.
struct Doubles {
  FormulaDraws draws;
  uint64_t index = 0;

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
  double unless_dropped(double v) const {
    return counter_bits(block_key(draws.key, index), index) >> 1 >= draws.below ? v : 0;
  }
};

#define HR_FORMULA inline
#include "ops/elementwise/formulas-inl.h"
#undef HR_FORMULA

FormulaDraws draws_of(const PreparedFormula& prepared, const KernelCall& call) {
  if (!prepared.draws) return {};
  return {step_key(call.inputs.back().as<float>(), prepared.tensor), call.trip * call.outputs.front().count(),
          prepared.below};
}

ElementwiseArrays arrays_of(const PreparedFormula& prepared, const KernelCall& call) {
  ElementwiseArrays arrays;
  for (size_t i = 0; i < call.inputs.size(); ++i) arrays.in[i] = call.inputs[i].data;
  for (size_t i = 0; i < call.outputs.size(); ++i) arrays.out[i] = call.outputs[i].data;
  arrays.dtype = call.inputs.front().dtype;
  arrays.result_dtype = call.outputs.front().dtype;
  arrays.draws = draws_of(prepared, call);
  return arrays;
}

std::unique_ptr<CpuKernel> simd(const KernelSpec& spec) {
  const PreparedFormula prepared = prepared_formula(spec.op, spec.attrs);
  const auto value = static_cast<float>(prepared.constant);
  const FormulaConstant<float> constant{value, 1.0f / value};
  return kernel_of([prepared, constant](const KernelCall& call) {
    const ElementwiseArrays arrays = arrays_of(prepared, call);
    parallel_for(call.outputs.front().count(), kGrain, [&](int64_t begin, int64_t end, int) {
      elementwise_range(prepared.formula, constant, arrays, begin, end);
    });
  });
}

KernelOffer gated_silu_bf16(const KernelSpec& spec, const DeviceFacts& facts) {
  const PreparedFormula prepared = prepared_formula(spec.op, spec.attrs);
  const Formula formula = prepared.formula;
  if (!facts.capabilities.has(kAvx512Bf16)) return {nullptr, "the machine has no AVX512_BF16"};
  if (spec.outputs.front().dtype != DType::bf16 ||
      (formula != Formula::gated_silu && formula != Formula::gated_silu_grad))
    return {nullptr, "takes bf16 and silu"};
  return {kernel_of([prepared](const KernelCall& call) {
            const ElementwiseArrays arrays = arrays_of(prepared, call);
            parallel_for(call.outputs.front().count(), kGrain, [&](int64_t begin, int64_t end, int) {
              gated_silu_bf16_range(prepared.formula, arrays, begin, end);
            });
          }),
          {}};
}

template <class F>
std::unique_ptr<CpuKernel> reference_of(const KernelSpec& spec, const PreparedFormula& prepared) {
  HR_CHECK(spec.inputs.size() >= F::kInputs && spec.outputs.size() == F::kOutputs,
           "{}: its formula has {} inputs and {} outputs", spec.op, F::kInputs, F::kOutputs);
  return kernel_of([prepared](const KernelCall& call) {
    const FormulaConstant<double> constant{prepared.constant, 1 / prepared.constant};
    const FormulaDraws draws = draws_of(prepared, call);
    for (int64_t i = 0; i < call.outputs.front().count(); ++i) {
      double in[F::kInputs], out[F::kOutputs];
      for (size_t k = 0; k < F::kInputs; ++k) in[k] = read_element(call.inputs[k], i);
      F::at(Doubles{draws, static_cast<uint64_t>(draws.first + i)}, constant, in, out);
      for (size_t k = 0; k < F::kOutputs; ++k) write_element(call.outputs[k], i, out[k]);
    }
  });
}

std::unique_ptr<CpuKernel> reference(const KernelSpec& spec) {
  const PreparedFormula prepared = prepared_formula(spec.op, spec.attrs);
  switch (prepared.formula) {
#define HR_MAKE(number, type) \
  case Formula::number:       \
    return reference_of<type>(spec, prepared);
    HR_FORMULAS(HR_MAKE)
#undef HR_MAKE
  }
  return nullptr;
}

}  // namespace

void register_elementwise_cpu(CpuKernels& kernels) {
  for (const std::string_view op : elementwise_kernels()) {
    std::vector<KernelCandidate> candidates = simd_and_reference<simd, reference>();
    if (op.starts_with("swiglu")) candidates.insert(candidates.begin(), {"avx512_bf16", gated_silu_bf16});
    kernels.add(op, std::move(candidates));
  }
}

}  // namespace headroom
