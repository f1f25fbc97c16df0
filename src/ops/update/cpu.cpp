// CPU kernels of elementwise updates.
#include <algorithm>
#include <cmath>

#include "base/threads.h"
#include "ops/stream/row_codes.h"
#include "ops/stream/updated_weight.h"
#include "ops/update/blocks.h"
#include "ops/update/simd.h"
#include "ops/update/table.h"

namespace headroom {
namespace {

// Arithmetic in f64, one element at a time.
struct Doubles {
  double set(double c) const { return c; }
  double add(double a, double b) const { return a + b; }
  double mul(double a, double b) const { return a * b; }
  double div(double a, double b) const { return a / b; }
  double mul_add(double a, double b, double c) const { return c + a * b; }
  double neg_mul_add(double a, double b, double c) const { return c - a * b; }
  double sqrt(double a) const { return std::sqrt(a); }
  double sign(double a) const { return static_cast<double>((a > 0) - (a < 0)); }
  double limit(double a) const { return std::clamp(a, -1.0, 1.0); }
};

#define HR_FORMULA inline
#include "ops/update/formulas-inl.h"
#undef HR_FORMULA

// The scalars of a call and the copy that it refreshes.
struct Call {
  const float* scalars;
  double clip;
  uint64_t key;
  const TensorView* copy;

  Call(const UpdatePlan& plan, const KernelCall& call)
      : scalars(call.inputs[plan.hyper].as<float>()),
        clip(static_cast<double>(call.inputs[plan.clip()].as<float>()[0])),
        key(step_key(scalars, plan.tensor)),
        copy(narrow_copy_of(call, plan.copy)) {}
  // If the gradient norm is not finite, the factor is NaN and the step is skipped.
  bool usable() const { return std::isfinite(clip); }
};

void run_blocks(const UpdatePlan& plan, const KernelCall& call, UpdateArrays arrays, const UpdateScalars& scalars) {
  for (size_t k = 0; k < plan.states; ++k) {
    arrays.codes[k] = call.outputs[1 + 2 * k].as<uint8_t>();
    arrays.absmax[k] = call.outputs[2 + 2 * k].as<float>();
  }
  const int64_t count = call.outputs[0].count();
  parallel_for(blocks_of(count), 4, [&](int64_t begin, int64_t end, int) {
    update_blocks(plan.formula, arrays, scalars, begin * kStateBlock, std::min(count, end * kStateBlock));
  });
}

Int8Rows int8_weight(const UpdatePlan& plan, const TensorView& weight) {
  return int8_rows(weight.data, weight.count() / plan.columns, plan.columns);
}

void run_int8_rows(const UpdatePlan& plan, const KernelCall& call, const UpdateArrays& arrays,
                   const UpdateScalars& scalars) {
  const Int8Rows weight = int8_weight(plan, call.outputs[0]);
  const int64_t grain = std::max<int64_t>(1, 1024 / plan.columns);
  parallel_for(call.outputs[0].count() / plan.columns, grain, [&](int64_t begin, int64_t end, int thread) {
    auto* const row = reinterpret_cast<float*>(call.scratch.data() + thread * int8_row_bytes(plan.columns));
    update_int8_rows(plan.formula, arrays, scalars, weight, row, begin, end);
  });
}

template <class F>
std::unique_ptr<CpuKernel> simd_of(const UpdatePlan& plan) {
  return kernel_of([plan](const KernelCall& call) {
    const Call step(plan, call);
    if (!step.usable()) return refresh_copy(call.outputs[0], step.copy);
    UpdateArrays arrays{updated_weight(call.outputs[0], step.copy, first_element(call)),
                        call.inputs[UpdateOpInputs::gradient].as<float>(),
                        {}};
    UpdateScalars scalars{static_cast<float>(step.clip), {}, step.key};
    F::factors(plan.step(step.scalars), scalars.factors);
    if (plan.in_blocks) return run_blocks(plan, call, arrays, scalars);
    for (size_t k = 0; k < plan.states; ++k) arrays.states[k] = call.outputs[1 + k].as<float>();
    if (plan.columns != 0) return run_int8_rows(plan, call, arrays, scalars);
    parallel_for(call.outputs[0].count(), 1024,
                 [&](int64_t begin, int64_t end, int) { update_range(plan.formula, arrays, scalars, begin, end); });
  });
}

// Loads and stores the states of a block of elements, in f64.
template <class F>
class ReferenceStates {
 public:
  ReferenceStates(const UpdatePlan& plan, const KernelCall& call) : plan_(plan), call_(call) {}

  void load(int64_t begin, int64_t end) {
    for (int k = 0; k < F::kStates; ++k)
      for (int64_t i = begin; i < end; ++i)
        at(k, i - begin) = plan_.in_blocks ? decoded(k, i) : read_element(state(k), i);
  }
  double& at(int k, int64_t i) { return values_[k][i]; }
  void store(int64_t begin, int64_t end) {
    for (int k = 0; k < F::kStates; ++k)
      if (plan_.in_blocks)
        encode(k, begin, end);
      else
        for (int64_t i = begin; i < end; ++i) write_element(state(k), i, at(k, i - begin));
  }

 private:
  static bool is_signed(int k) { return (F::kSigned >> k & 1) != 0; }
  const TensorView& state(int k) const { return call_.outputs[1 + static_cast<size_t>(plan_.in_blocks ? 2 * k : k)]; }
  float& absmax(int k, int64_t i) const {
    return call_.outputs[2 + 2 * static_cast<size_t>(k)].template as<float>()[i / kStateBlock];
  }
  double decoded(int k, int64_t i) const {
    const float value = dynamic_map(is_signed(k)).value[state(k).template as<uint8_t>()[i]];
    return static_cast<double>(value) * static_cast<double>(absmax(k, i));
  }
  void encode(int k, int64_t begin, int64_t end) {
    float most = 0;
    for (int64_t i = begin; i < end; ++i) most = std::max(most, std::abs(static_cast<float>(at(k, i - begin))));
    absmax(k, begin) = most;
    for (int64_t i = begin; i < end; ++i)
      state(k).template as<uint8_t>()[i] =
          nearest_code(is_signed(k), static_cast<float>(at(k, i - begin)) * inverse_of(most));
  }

  const UpdatePlan& plan_;
  const KernelCall& call_;
  double values_[F::kStates + 1][kStateBlock];
};

// Updates the states of one element and returns its new weight.
template <class F>
double next_weight(ReferenceStates<F>& all, int64_t i, const double* factors, double weight, double g) {
  double states[F::kStates + 1];
  for (int k = 0; k < F::kStates; ++k) states[k] = all.at(k, i);
  const double next = F::at(Doubles(), factors, weight, g, states);
  for (int k = 0; k < F::kStates; ++k) all.at(k, i) = states[k];
  return next;
}

template <class F>
void reference_int8_rows(const UpdatePlan& plan, const KernelCall& call, const Call& step, const double* factors) {
  const Int8Rows weight = int8_weight(plan, call.outputs[0]);
  auto* const row = reinterpret_cast<float*>(call.scratch.data());
  ReferenceStates<F> all(plan, call);
  for (int64_t r = 0; r * plan.columns < call.outputs[0].count(); ++r) {
    decode_row(weight, r, row);
    for (int64_t i = 0; i < plan.columns; ++i) {
      const int64_t at = r * plan.columns + i;
      all.load(at, at + 1);
      const double g = read_element(call.inputs[UpdateOpInputs::gradient], at) * step.clip;
      row[i] = static_cast<float>(next_weight<F>(all, 0, factors, static_cast<double>(row[i]), g));
      all.store(at, at + 1);
    }
    encode_row(row, weight, r, step.key);
  }
}

template <class F>
std::unique_ptr<CpuKernel> reference_of(const UpdatePlan& plan) {
  return kernel_of([plan](const KernelCall& call) {
    const Call step(plan, call);
    if (!step.usable()) return refresh_copy(call.outputs[0], step.copy);
    double factors[kUpdateFactors];
    F::factors(plan.step(step.scalars), factors);
    const TensorView& weight = call.outputs[0];
    if (plan.columns != 0) return reference_int8_rows<F>(plan, call, step, factors);
    ReferenceStates<F> all(plan, call);
    for (int64_t begin = 0; begin < weight.count(); begin += kStateBlock) {
      const int64_t end = std::min(weight.count(), begin + kStateBlock);
      all.load(begin, end);
      for (int64_t i = begin; i < end; ++i) {
        const double g = read_element(call.inputs[UpdateOpInputs::gradient], i) * step.clip;
        const double w = next_weight<F>(all, i - begin, factors, read_element(weight, i), g);
        write_weight(weight, step.copy, i, w, step.key, first_element(call));
      }
      all.store(begin, end);
    }
  });
}

std::unique_ptr<CpuKernel> simd(const KernelSpec& spec) {
  const UpdatePlan plan(spec);
  switch (plan.formula) {
#define HR_MAKE(number, type, ...) \
  case UpdateFormula::number:      \
    return simd_of<type>(plan);
    HR_UPDATES(HR_MAKE)
#undef HR_MAKE
  }
  return nullptr;
}

std::unique_ptr<CpuKernel> reference(const KernelSpec& spec) {
  const UpdatePlan plan(spec);
  switch (plan.formula) {
#define HR_MAKE(number, type, ...) \
  case UpdateFormula::number:      \
    return reference_of<type>(plan);
    HR_UPDATES(HR_MAKE)
#undef HR_MAKE
  }
  return nullptr;
}

}  // namespace

void register_update_cpu(CpuKernels& kernels) {
  for (const UpdateRow& row : update_rows()) kernels.add(row.name, simd_and_reference<simd, reference>());
}

}  // namespace headroom
