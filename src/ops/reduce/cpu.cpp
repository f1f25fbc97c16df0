// CPU kernels of sum_squares, clip_coefficient and loss_scale.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/threads.h"
#include "ops/reduce/chunks.h"
#include "ops/reduce/simd.h"
#include "ops/step_scalars.h"
#include "ops/stream/scalar_access.h"

namespace headroom {
namespace {

void store_sum(const KernelCall& call, bool first, double sum) {
  double* const acc = call.outputs[0].as<double>();
  *acc = (first ? 0 : *acc) + sum;
}

std::unique_ptr<CpuKernel> squares_simd(const KernelSpec& spec) {
  return kernel_of([first = spec.attrs.text("accumulate", "always") == "first"](const KernelCall& call) {
    const float* const x = call.inputs[0].as<float>();
    const int64_t count = call.inputs[0].count();
    const int64_t chunks = sum_chunks(count);
    double* const sums = reinterpret_cast<double*>(call.scratch.data());
    HR_CHECK(static_cast<int64_t>(call.scratch.size()) >= sum_squares_scratch(count), "{} bytes of scratch",
             call.scratch.size());
    parallel_for(chunks, 1, [&](int64_t begin, int64_t end, int) {
      for (int64_t c = begin; c < end; ++c)
        sums[c] = sum_of_squares(x + c * kSumChunk, std::min(kSumChunk, count - c * kSumChunk));
    });
    double sum = 0;
    for (int64_t c = 0; c < chunks; ++c) sum += sums[c];
    store_sum(call, first, sum);
  });
}

std::unique_ptr<CpuKernel> squares_reference(const KernelSpec& spec) {
  return kernel_of([first = spec.attrs.text("accumulate", "always") == "first"](const KernelCall& call) {
    double sum = 0;
    for (int64_t i = 0; i < call.inputs[0].count(); ++i) sum += std::pow(read_element(call.inputs[0], i), 2);
    store_sum(call, first, sum);
  });
}

// A norm that is not finite gives NaN, and the update then skips the step; without clipping only if `scaled`.
std::unique_ptr<CpuKernel> clip_kernel(const KernelSpec& spec) {
  return kernel_of([scaled = spec.attrs.integer("scaled") != 0](const KernelCall& call) {
    const float* const hyper = call.inputs[1].as<float>();
    const float most = hyper[kMaxGradNorm], unscale = scaled ? hyper[kUnscale] : 1.0f;
    const float norm = static_cast<float>(std::sqrt(call.inputs[0].as<double>()[0])) * unscale;
    const float coefficient = std::isfinite(norm) ? most / (norm + 1e-6f) : std::numeric_limits<float>::quiet_NaN();
    const bool whole = most == 0 && !(scaled && std::isnan(coefficient));
    call.outputs[0].as<float>()[0] = whole || coefficient > 1 ? unscale : coefficient * unscale;
  });
}

std::unique_ptr<CpuKernel> scale_kernel(const KernelSpec&) {
  return kernel_of(
      [](const KernelCall& call) { call.outputs[0].as<float>()[0] = call.inputs[0].as<float>()[kLossScale]; });
}

}  // namespace

void register_reduce_cpu(CpuKernels& kernels) {
  kernels.add("sum_squares", simd_and_reference<squares_simd, squares_reference>());
  kernels.add("clip_coefficient", reference_only<clip_kernel>());
  kernels.add("loss_scale", reference_only<scale_kernel>());
}

}  // namespace headroom
