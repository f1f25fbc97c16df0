// CPU kernels of adafactor.
#include <algorithm>
#include <cmath>

#include "base/threads.h"
#include "ops/adafactor/plan.h"
#include "ops/adafactor/shape.h"
#include "ops/adafactor/simd.h"
#include "ops/stream/updated_weight.h"

namespace headroom {
namespace {

AdafactorPlan plan_of(const KernelSpec& spec) { return {spec.attrs, spec.outputs[0].dims.size() >= 2}; }

// A call's operands.
struct Call {
  const float* hyper;
  float factor;  // on the gradient; not finite: the step is skipped
  uint64_t key;
  const TensorView* copy;

  Call(const AdafactorPlan& plan, const KernelCall& call)
      : hyper(call.inputs[plan.hyper].as<float>()),
        factor(call.inputs[plan.factor()].as<float>()[0]),
        key(step_key(hyper, plan.tensor)),
        copy(narrow_copy_of(call, plan.copy)) {}
};

// The factor on the updates, from the sums of squares of the updates and of the weight, each over `count` elements.
AdafactorMove move_of(const AdafactorStep& step, double updates, double weights, double count, uint64_t key) {
  AdafactorMove move;
  move.rate = step.rate;
  if (step.scales) move.rate *= std::max(step.least_scale, static_cast<float>(std::sqrt(weights / count)));
  const float beyond = static_cast<float>(std::sqrt(updates / count)) / step.most_update;
  move.scale = move.rate / std::max(1.0f, beyond);
  move.key = key;
  return move;
}

AdafactorArrays arrays_of(const AdafactorPlan& plan, const AdafactorShape& shape, const KernelCall& call,
                          const TensorView* copy) {
  float* const scratch = reinterpret_cast<float*>(call.scratch.data());
  return {updated_weight(call.outputs[0], copy),
          call.inputs[AdafactorInputs::gradient].as<float>(),
          plan.factored ? call.outputs[1].as<float>() : nullptr,
          call.outputs[plan.cols_state()].as<float>(),
          plan.moment ? call.outputs[plan.moment_state()].as<float>() : nullptr,
          scratch + shape.row_factors(),
          scratch + shape.col_factors(),
          scratch + shape.row_sums()};
}

// The factors of a matrix's rows on their updates: 1 / sqrt(squares / their mean).
void row_factors(const AdafactorArrays& a, const AdafactorShape& shape) {
  for (int64_t matrix = 0; matrix < shape.matrices; ++matrix) {
    const int64_t begin = matrix * shape.rows, end = begin + shape.rows;
    double sum = 0;
    for (int64_t r = begin; r < end; ++r) sum += shape.factored ? static_cast<double>(a.row_squares[r]) : 1.0;
    const double mean = sum / static_cast<double>(shape.rows);
    for (int64_t r = begin; r < end; ++r)
      a.row_factors[r] =
          shape.factored ? static_cast<float>(std::sqrt(mean / static_cast<double>(a.row_squares[r]))) : 1.0f;
  }
}

std::unique_ptr<CpuKernel> simd(const KernelSpec& spec) {
  const AdafactorShape shape(spec.outputs[0].dims);
  HR_CHECK(spec.scratch_bytes >= shape.scratch_bytes(), "adafactor: {} bytes of scratch", spec.scratch_bytes);
  return kernel_of([plan = plan_of(spec), shape](const KernelCall& call) {
    const Call of(plan, call);
    if (!std::isfinite(of.factor)) return refresh_copy(call.outputs[0], of.copy);
    const AdafactorStep step(plan, of.hyper, of.factor);
    const AdafactorArrays a = arrays_of(plan, shape, call, of.copy);
    const int64_t strips = (shape.cols + kAdafactorCols - 1) / kAdafactorCols, grain = 4096 / shape.cols + 1;
    parallel_for(shape.matrices * strips, 1, [&](int64_t begin, int64_t end, int) {
      for (int64_t at = begin; at < end; ++at) {
        const int64_t first = at % strips * kAdafactorCols;
        adafactor_cols(a, shape, step, at / strips, first, std::min(shape.cols, first + kAdafactorCols));
      }
    });
    const auto for_rows = [&](auto&& body) {
      parallel_for(shape.all_rows(), grain, [&](int64_t begin, int64_t end, int) {
        for (int64_t row = begin; row < end; ++row) body(row);
      });
    };
    if (shape.factored) for_rows([&](int64_t row) { adafactor_row(a, shape, step, row); });
    row_factors(a, shape);
    for_rows([&](int64_t row) { adafactor_row_sums(a, shape, step, row); });
    double updates = 0, weights = 0;
    for (int64_t row = 0; row < shape.all_rows(); ++row) {
      updates += static_cast<double>(a.row_sums[2 * row]);
      if (step.scales) weights += static_cast<double>(a.row_sums[2 * row + 1]);
    }
    const AdafactorMove move = move_of(step, updates, weights, static_cast<double>(call.outputs[0].count()), of.key);
    for_rows([&](int64_t row) { adafactor_move(a, shape, step, move, row); });
  });
}

// The update of one element before clipping, in f64.
class Unclipped {
 public:
  Unclipped(const AdafactorPlan& plan, const AdafactorShape& shape, const KernelCall& call, const AdafactorStep& step)
      : shape_(shape),
        g_(call.inputs[AdafactorInputs::gradient]),
        cols_(call.outputs[plan.cols_state()]),
        rows_(call.outputs[1]),
        clip_(static_cast<double>(step.clip)) {}

  double gradient(int64_t i) const { return clip_ * read_element(g_, i); }
  double at(int64_t i) const {
    const int64_t row = i / shape_.cols, matrix = row / shape_.rows;
    const double u = gradient(i) / std::sqrt(read_element(cols_, matrix * shape_.cols + i % shape_.cols));
    return shape_.factored ? u * std::sqrt(mean(matrix) / read_element(rows_, row)) : u;
  }

 private:
  double mean(int64_t matrix) const {
    double sum = 0;
    for (int64_t r = 0; r < shape_.rows; ++r) sum += read_element(rows_, matrix * shape_.rows + r);
    return sum / static_cast<double>(shape_.rows);
  }

  const AdafactorShape& shape_;
  const TensorView &g_, &cols_, &rows_;
  double clip_;
};

void decay_squares(const AdafactorPlan& plan, const AdafactorShape& shape, const KernelCall& call,
                   const AdafactorStep& step) {
  const double fresh = static_cast<double>(step.fresh), clip = static_cast<double>(step.clip);
  const auto decay = [&](const TensorView& squares, int64_t at, int64_t first, int64_t stride, int64_t count) {
    double sum = 0;
    for (int64_t k = 0; k < count; ++k) {
      const double g = clip * read_element(call.inputs[AdafactorInputs::gradient], first + k * stride);
      sum += g * g + plan.eps1;
    }
    write_element(squares, at, (1 - fresh) * read_element(squares, at) + fresh * sum / static_cast<double>(count));
  };
  for (int64_t at = 0; at < shape.all_cols(); ++at)
    decay(call.outputs[plan.cols_state()], at, at / shape.cols * shape.rows * shape.cols + at % shape.cols, shape.cols,
          shape.rows);
  for (int64_t row = 0; plan.factored && row < shape.all_rows(); ++row)
    decay(call.outputs[1], row, row * shape.cols, 1, shape.cols);
}

std::unique_ptr<CpuKernel> reference(const KernelSpec& spec) {
  const AdafactorShape shape(spec.outputs[0].dims);
  return kernel_of([plan = plan_of(spec), shape](const KernelCall& call) {
    const Call of(plan, call);
    if (!std::isfinite(of.factor)) return refresh_copy(call.outputs[0], of.copy);
    const AdafactorStep step(plan, of.hyper, of.factor);
    decay_squares(plan, shape, call, step);
    const Unclipped update(plan, shape, call, step);
    const TensorView& weight = call.outputs[0];
    const int64_t count = weight.count();
    double updates = 0, weights = 0;
    for (int64_t i = 0; i < count; ++i) {
      updates += update.at(i) * update.at(i);
      weights += read_element(weight, i) * read_element(weight, i);
    }
    const AdafactorMove move = move_of(step, updates, weights, static_cast<double>(count), of.key);
    for (int64_t i = 0; i < count; ++i) {
      double u = update.at(i) * static_cast<double>(move.scale);
      if (plan.moment) {
        const TensorView& moment = call.outputs[plan.moment_state()];
        u = plan.beta1 * read_element(moment, i) + (1 - plan.beta1) * u;
        write_element(moment, i, u);
      }
      const double w = read_element(weight, i);
      const double decay = static_cast<double>(step.decay) * static_cast<double>(move.rate);
      write_weight(weight, of.copy, i, w - decay * w - u, of.key);
    }
  });
}

}  // namespace

void register_adafactor_cpu(CpuKernels& kernels) { kernels.add("adafactor", simd_and_reference<simd, reference>()); }

}  // namespace headroom
