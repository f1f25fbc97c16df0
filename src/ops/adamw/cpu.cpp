// CPU kernels of adamw.
#include <cmath>

#include "base/threads.h"
#include "ops/adamw/hyper.h"
#include "ops/adamw/simd.h"
#include "ops/stream/updated_weight.h"

namespace headroom {
namespace {

// The attributes of the node.
struct Plan {
  double beta1 = 0;
  double beta2 = 0;
  double eps = 0;
  bool decay = false;
  uint64_t tensor = 0;  // the weight's part of the key of its draws

  explicit Plan(const Attrs& attrs)
      : beta1(attrs.real("beta1")),
        beta2(attrs.real("beta2")),
        eps(attrs.real("eps")),
        decay(attrs.integer("decay") != 0),
        tensor(static_cast<uint64_t>(attrs.integer("tensor"))) {}
};

// The step's scalars in double precision.
struct Step {
  double lr = 0;
  double decay = 0;
  double correction1 = 0;
  double sqrt_correction2 = 0;
  double clip = 0;

  explicit Step(const KernelCall& call) {
    const float* const hyper = call.inputs[4].as<float>();
    lr = static_cast<double>(hyper[kLearningRate]);
    decay = static_cast<double>(hyper[kWeightDecay]);
    correction1 = static_cast<double>(hyper[kBiasCorrection1]);
    sqrt_correction2 = static_cast<double>(hyper[kSqrtBiasCorrection2]);
    clip = static_cast<double>(call.inputs[5].as<float>()[0]);
  }

  // A factor that is no number stands for a gradient norm that is not finite: the step is left out.
  bool usable() const { return std::isfinite(clip); }
};

AdamWStep rounded(const Plan& plan, const Step& step, uint64_t key) {
  return {static_cast<float>(step.clip),
          static_cast<float>(plan.decay ? 1 - step.lr * step.decay : 1),
          static_cast<float>(plan.beta1),
          static_cast<float>(1 - plan.beta1),
          static_cast<float>(plan.beta2),
          static_cast<float>(1 - plan.beta2),
          static_cast<float>(step.lr / step.correction1),
          static_cast<float>(step.sqrt_correction2),
          static_cast<float>(plan.eps),
          key};
}

// The copy that the call refreshes, or null.
const TensorView* copy_of(const KernelCall& call) { return call.outputs.size() == 4 ? &call.outputs[3] : nullptr; }

std::unique_ptr<CpuKernel> update_simd(const KernelSpec& spec) {
  return kernel_of([plan = Plan(spec.attrs)](const KernelCall& call) {
    const AdamWArrays arrays{updated_weight(call.outputs[0], copy_of(call)), call.inputs[1].as<float>(),
                             call.outputs[1].as<float>(), call.outputs[2].as<float>()};
    const Step exact(call);
    if (!exact.usable()) return;
    const AdamWStep step = rounded(plan, exact, step_key(call.inputs[4].as<float>(), plan.tensor));
    parallel_for(call.outputs[0].count(), 1024,
                 [&](int64_t begin, int64_t end, int) { adamw_range(arrays, step, begin, end); });
  });
}

std::unique_ptr<CpuKernel> update_reference(const KernelSpec& spec) {
  return kernel_of([plan = Plan(spec.attrs)](const KernelCall& call) {
    const Step step(call);
    if (!step.usable()) return;
    const TensorView &w = call.outputs[0], &m = call.outputs[1], &v = call.outputs[2];
    const uint64_t key = step_key(call.inputs[4].as<float>(), plan.tensor);
    for (int64_t i = 0; i < w.count(); ++i) {
      const double g = read_element(call.inputs[1], i) * step.clip;
      const double first = plan.beta1 * read_element(m, i) + (1 - plan.beta1) * g;
      const double second = plan.beta2 * read_element(v, i) + (1 - plan.beta2) * g * g;
      const double kept = read_element(w, i) * (plan.decay ? 1 - step.lr * step.decay : 1);
      const double move = first / (std::sqrt(second) / step.sqrt_correction2 + plan.eps);
      write_element(m, i, first);
      write_element(v, i, second);
      write_weight(w, copy_of(call), i, kept - step.lr / step.correction1 * move, key);
    }
  });
}

}  // namespace

void register_adamw_cpu(CpuKernels& kernels) {
  kernels.add("adamw", simd_and_reference<update_simd, update_reference>());
}

}  // namespace headroom
