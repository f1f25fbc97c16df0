// CPU kernels of rms_norm and rms_norm_grad.
#include <cmath>

#include "base/threads.h"
#include "ops/rms_norm/operands.h"
#include "ops/rms_norm/rows.h"
#include "ops/rms_norm/simd.h"
#include "ops/stream/partial_sums.h"
#include "ops/stream/scalar_access.h"

namespace headroom {
namespace {

std::unique_ptr<CpuKernel> norm_simd(const KernelSpec& spec) {
  return kernel_of([eps = static_cast<float>(spec.attrs.real("eps")),
                    unit = spec.attrs.integer("unit") != 0](const KernelCall& call) {
    const TensorView &x = call.inputs[RmsNormInputs::x], &w = call.inputs[RmsNormInputs::weight], &y = call.outputs[0];
    const RmsNormRows args{x.data, w.as<float>(), y.data, w.dims[0], eps, x.dtype, y.dtype, unit};
    parallel_for(x.count() / args.width, 4, [&](int64_t begin, int64_t end, int) { rms_norm_rows(args, begin, end); });
  });
}

// rsqrt(mean(x^2) + eps) of `width` elements from `at` on.
double inverse_rms(const TensorView& x, int64_t at, int64_t width, double eps) {
  double squares = 0;
  for (int64_t i = 0; i < width; ++i) squares += read_element(x, at + i) * read_element(x, at + i);
  return 1 / std::sqrt(squares / static_cast<double>(width) + eps);
}

std::unique_ptr<CpuKernel> norm_reference(const KernelSpec& spec) {
  const double unit = spec.attrs.integer("unit") != 0 ? 1 : 0;
  const bool residual = spec.attrs.integer("residual") != 0;
  return kernel_of([eps = spec.attrs.real("eps"), unit, residual](const KernelCall& call) {
    const TensorView &x = call.inputs[RmsNormInputs::x], &y = call.outputs[0];
    const int64_t width = call.inputs[RmsNormInputs::weight].dims[0];
    for (int64_t at = 0; at < x.count(); at += width) {
      const double r = inverse_rms(x, at, width, eps);
      for (int64_t i = 0; i < width; ++i) {
        const double base = residual ? read_element(call.inputs[RmsNormInputs::residual], at + i) : 0;
        write_element(y, at + i,
                      read_element(x, at + i) * r * (unit + read_element(call.inputs[RmsNormInputs::weight], i)));
        if (residual) write_element(y, at + i, base + read_element(y, at + i));
      }
    }
  });
}

// The SIMD kernel adds no residual: only on GPUs are sums fused into norms (passes/norm_sums.h).
KernelOffer make_norm_simd(const KernelSpec& spec, const DeviceFacts& facts) {
  if (spec.attrs.integer("residual") != 0) return {nullptr, "a residual is added"};
  std::string refusal = simd_refusal(facts);
  if (!refusal.empty()) return {nullptr, std::move(refusal)};
  return {norm_simd(spec), {}};
}

// The attributes of a gradient node.
struct GradPlan {
  double eps = 0;
  bool train = false;
  bool addend = false;
  bool unit = false;
  bool narrow = false;
  std::string accumulate;

  explicit GradPlan(const Attrs& attrs)
      : eps(attrs.real("eps")),
        train(attrs.integer("train") != 0),
        addend(attrs.integer("addend") != 0),
        unit(attrs.integer("unit") != 0),
        narrow(attrs.integer("narrow") != 0),
        accumulate(attrs.text("accumulate", "always")) {}
};

// Writes the last output: the first one, rounded.
void write_narrow(const KernelCall& call) {
  const TensorView &dx = call.outputs.front(), &narrow = call.outputs.back();
  parallel_for(dx.count(), 1024, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) write_element(narrow, i, read_element(dx, i));
  });
}

std::unique_ptr<CpuKernel> grad_simd(const KernelSpec& spec) {
  return kernel_of([plan = GradPlan(spec.attrs),
                    rows = norm_rows(spec.inputs[RmsNormGradInputs::x], spec.inputs[RmsNormGradInputs::weight])](
                       const KernelCall& call) {
    const TensorView& x = call.inputs[RmsNormGradInputs::x];
    const TensorView& dy = call.inputs[RmsNormGradInputs::dy];
    const RmsNormGradRows args{x.data,
                               call.inputs[RmsNormGradInputs::weight].as<float>(),
                               dy.data,
                               plan.addend ? call.inputs.back().data : nullptr,
                               call.outputs[0].data,
                               rows[2],
                               static_cast<float>(plan.eps),
                               x.dtype,
                               dy.dtype,
                               plan.unit};
    const RowChunks chunks = row_chunks(rows);
    if (!plan.train) {
      parallel_for(chunks.sequences * chunks.rows, 4,
                   [&](int64_t begin, int64_t end, int) { rms_norm_grad_rows(args, begin, end, nullptr); });
      if (plan.narrow) write_narrow(call);
      return;
    }
    const PartialSums sums(call.scratch, rows, 1);
    parallel_for(chunks.count(), 1, [&](int64_t begin, int64_t end, int) {
      for (int64_t chunk = begin; chunk < end; ++chunk)
        rms_norm_grad_rows(args, chunks.begin(chunk), chunks.end(chunk), sums.at(chunk, 0));
    });
    sums.join(0, overwrites(plan.accumulate, call.trip), call.outputs[1].as<float>());
    if (plan.narrow) write_narrow(call);
  });
}

// One row at a time; dw goes straight to the accumulator.
std::unique_ptr<CpuKernel> grad_reference(const KernelSpec& spec) {
  return kernel_of([plan = GradPlan(spec.attrs)](const KernelCall& call) {
    const TensorView &x = call.inputs[RmsNormGradInputs::x], &w = call.inputs[RmsNormGradInputs::weight],
                     &dy = call.inputs[RmsNormGradInputs::dy], &dx = call.outputs[0];
    const int64_t width = w.dims[0];
    const double unit = plan.unit ? 1 : 0;
    float* const acc = plan.train ? call.outputs[1].as<float>() : nullptr;
    if (acc && overwrites(plan.accumulate, call.trip)) std::fill(acc, acc + width, 0.0f);
    for (int64_t at = 0; at < x.count(); at += width) {
      const double r = inverse_rms(x, at, width, plan.eps);
      double mean = 0;
      for (int64_t i = 0; i < width; ++i)
        mean += read_element(dy, at + i) * (unit + read_element(w, i)) * read_element(x, at + i) * r;
      mean /= static_cast<double>(width);
      for (int64_t i = 0; i < width; ++i) {
        const double gradient = read_element(dy, at + i);
        const double xhat = read_element(x, at + i) * r;
        const double addend = plan.addend ? read_element(call.inputs.back(), at + i) : 0;
        if (acc) acc[i] += static_cast<float>(gradient * xhat);
        write_element(dx, at + i, r * (gradient * (unit + read_element(w, i)) - xhat * mean) + addend);
      }
    }
    if (plan.narrow) write_narrow(call);
  });
}

}  // namespace

void register_rms_norm_cpu(CpuKernels& kernels) {
  kernels.add("rms_norm",
              {{"simd", make_norm_simd}, {"reference", [](const KernelSpec& spec, const DeviceFacts&) -> KernelOffer {
                                            return {norm_reference(spec), {}};
                                          }}});
  kernels.add("rms_norm_grad", simd_and_reference<grad_simd, grad_reference>());
}

}  // namespace headroom
