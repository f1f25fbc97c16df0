// CPU kernels of layer_norm and layer_norm_grad.
#include <algorithm>
#include <cmath>

#include "base/threads.h"
#include "ops/layer_norm/operands.h"
#include "ops/layer_norm/simd.h"
#include "ops/layer_norm/trained.h"
#include "ops/stream/partial_sums.h"
#include "ops/stream/scalar_access.h"

namespace headroom {
namespace {

std::unique_ptr<CpuKernel> norm_simd(const KernelSpec& spec) {
  return kernel_of([eps = static_cast<float>(spec.attrs.real("eps"))](const KernelCall& call) {
    const TensorView &x = call.inputs[LayerNormInputs::x], &y = call.outputs[0];
    const LayerNormRows args{x.data,
                             call.inputs[LayerNormInputs::weight].as<float>(),
                             call.inputs[LayerNormInputs::bias].as<float>(),
                             y.data,
                             x.dims.back(),
                             eps,
                             x.dtype,
                             y.dtype};
    parallel_for(x.count() / args.width, 4,
                 [&](int64_t begin, int64_t end, int) { layer_norm_rows(args, begin, end); });
  });
}

struct RowMoments {
  double mean = 0;
  double r = 0;  // rsqrt(variance + eps)
};

RowMoments row_moments(const TensorView& x, int64_t at, double eps) {
  const double width = static_cast<double>(x.dims.back());
  double sum = 0, squares = 0;
  for (int64_t i = 0; i < x.dims.back(); ++i) sum += read_element(x, at + i);
  for (int64_t i = 0; i < x.dims.back(); ++i) squares += std::pow(read_element(x, at + i) - sum / width, 2);
  return {sum / width, 1 / std::sqrt(squares / width + eps)};
}

std::unique_ptr<CpuKernel> norm_reference(const KernelSpec& spec) {
  return kernel_of([eps = spec.attrs.real("eps")](const KernelCall& call) {
    const TensorView &x = call.inputs[LayerNormInputs::x], &w = call.inputs[LayerNormInputs::weight],
                     &b = call.inputs[LayerNormInputs::bias];
    const int64_t width = x.dims.back();
    for (int64_t at = 0; at < x.count(); at += width) {
      const RowMoments m = row_moments(x, at, eps);
      for (int64_t i = 0; i < width; ++i) {
        const double xhat = (read_element(x, at + i) - m.mean) * m.r;
        write_element(call.outputs[0], at + i, xhat * read_element(w, i) + read_element(b, i));
      }
    }
  });
}

// The attributes of a gradient node.
struct GradPlan {
  double eps = 0;
  bool weight = false;
  bool bias = false;
  bool addend = false;
  std::string accumulate_weight;
  std::string accumulate_bias;

  explicit GradPlan(const Attrs& attrs)
      : eps(attrs.real("eps")),
        weight((attrs.integer("train") & kTrainsWeight) != 0),
        bias((attrs.integer("train") & kTrainsBias) != 0),
        addend(attrs.integer("addend") != 0),
        accumulate_weight(attrs.text("accumulate", "always")),
        accumulate_bias(attrs.text("accumulate_bias", "always")) {}

  bool train() const { return weight || bias; }
  float* weight_acc(const KernelCall& call) const { return weight ? call.outputs[1].as<float>() : nullptr; }
  float* bias_acc(const KernelCall& call) const { return bias ? call.outputs.back().as<float>() : nullptr; }
};

std::unique_ptr<CpuKernel> grad_simd(const KernelSpec& spec) {
  return kernel_of([plan = GradPlan(spec.attrs)](const KernelCall& call) {
    const TensorView &x = call.inputs[LayerNormGradInputs::x], &dy = call.inputs[LayerNormGradInputs::dy];
    const LayerNormGradRows args{x.data,
                                 call.inputs[LayerNormGradInputs::weight].as<float>(),
                                 dy.data,
                                 plan.addend ? call.inputs.back().data : nullptr,
                                 call.outputs[0].data,
                                 x.dims.back(),
                                 static_cast<float>(plan.eps),
                                 x.dtype,
                                 dy.dtype};
    const RowChunks chunks = row_chunks(x.dims);
    if (!plan.train()) {
      parallel_for(chunks.sequences * chunks.rows, 4,
                   [&](int64_t begin, int64_t end, int) { layer_norm_grad_rows(args, begin, end, nullptr, nullptr); });
      return;
    }
    const PartialSums sums(call.scratch, x.dims, 2);
    parallel_for(chunks.count(), 1, [&](int64_t begin, int64_t end, int) {
      for (int64_t c = begin; c < end; ++c)
        layer_norm_grad_rows(args, chunks.begin(c), chunks.end(c), sums.at(c, 0), sums.at(c, 1));
    });
    if (plan.weight) sums.join(0, overwrites(plan.accumulate_weight, call.trip), plan.weight_acc(call));
    if (plan.bias) sums.join(1, overwrites(plan.accumulate_bias, call.trip), plan.bias_acc(call));
  });
}

// One row of the gradient; dw and db are added directly to the accumulators.
void grad_row(const GradPlan& plan, const KernelCall& call, int64_t at) {
  const TensorView &x = call.inputs[LayerNormGradInputs::x], &w = call.inputs[LayerNormGradInputs::weight],
                   &dy = call.inputs[LayerNormGradInputs::dy];
  const int64_t width = x.dims.back();
  const RowMoments m = row_moments(x, at, plan.eps);
  double mean_g = 0, mean_gx = 0;
  for (int64_t i = 0; i < width; ++i) {
    const double g = read_element(dy, at + i) * read_element(w, i) / static_cast<double>(width);
    mean_g += g;
    mean_gx += g * (read_element(x, at + i) - m.mean) * m.r;
  }
  for (int64_t i = 0; i < width; ++i) {
    const double gradient = read_element(dy, at + i);
    const double xhat = (read_element(x, at + i) - m.mean) * m.r;
    const double addend = plan.addend ? read_element(call.inputs.back(), at + i) : 0;
    if (plan.weight) plan.weight_acc(call)[i] += static_cast<float>(gradient * xhat);
    if (plan.bias) plan.bias_acc(call)[i] += static_cast<float>(gradient);
    write_element(call.outputs[0], at + i, m.r * (gradient * read_element(w, i) - mean_g - xhat * mean_gx) + addend);
  }
}

std::unique_ptr<CpuKernel> grad_reference(const KernelSpec& spec) {
  return kernel_of([plan = GradPlan(spec.attrs)](const KernelCall& call) {
    const int64_t width = call.inputs[LayerNormGradInputs::x].dims.back();
    if (plan.weight && overwrites(plan.accumulate_weight, call.trip)) std::fill_n(plan.weight_acc(call), width, 0.0f);
    if (plan.bias && overwrites(plan.accumulate_bias, call.trip)) std::fill_n(plan.bias_acc(call), width, 0.0f);
    for (int64_t at = 0; at < call.inputs[LayerNormGradInputs::x].count(); at += width) grad_row(plan, call, at);
  });
}

}  // namespace

void register_layer_norm_cpu(CpuKernels& kernels) {
  kernels.add("layer_norm", simd_and_reference<norm_simd, norm_reference>());
  kernels.add("layer_norm_grad", simd_and_reference<grad_simd, grad_reference>());
}

}  // namespace headroom
