// CPU kernels of sgd.
#include <cmath>

#include "base/threads.h"
#include "ops/sgd/simd.h"
#include "ops/step_scalars.h"
#include "ops/stream/updated_weight.h"

namespace headroom {
namespace {

// The attributes of the node, and where its operands stand.
struct Plan {
  double momentum = 0;
  bool nesterov = false;
  bool decay = false;
  uint64_t tensor = 0;  // the weight's part of the key of its draws
  size_t hyper = 2;
  size_t copy = 1;  // among the outputs, where the call has so many

  explicit Plan(const Attrs& attrs)
      : momentum(attrs.real("momentum", 0)),
        nesterov(attrs.integer("nesterov") != 0),
        decay(attrs.integer("decay") != 0),
        tensor(static_cast<uint64_t>(attrs.integer("tensor"))) {
    if (momentum > 0) ++hyper, ++copy;
  }
  const TensorView* copy_of(const KernelCall& call) const {
    return call.outputs.size() > copy ? &call.outputs[copy] : nullptr;
  }
  const float* scalars(const KernelCall& call) const { return call.inputs[hyper].as<float>(); }
  double lr(const KernelCall& call) const { return static_cast<double>(scalars(call)[kLearningRate]); }
  double decay_of(const KernelCall& call) const {
    return decay ? static_cast<double>(scalars(call)[kWeightDecay]) : 0.0;
  }
  uint64_t key(const KernelCall& call) const { return step_key(scalars(call), tensor); }
};

std::unique_ptr<CpuKernel> update_simd(const KernelSpec& spec) {
  return kernel_of([plan = Plan(spec.attrs)](const KernelCall& call) {
    const float clip = call.inputs[plan.hyper + 1].as<float>()[0];
    if (!std::isfinite(clip)) return;  // of a gradient norm that is not finite: the step is left out
    const SgdArrays arrays{updated_weight(call.outputs[0], plan.copy_of(call)), call.inputs[1].as<float>(),
                           plan.momentum > 0 ? call.outputs[1].as<float>() : nullptr};
    const SgdStep step{clip,          static_cast<float>(plan.decay_of(call)), static_cast<float>(plan.momentum),
                       plan.nesterov, static_cast<float>(plan.lr(call)),       plan.key(call)};
    parallel_for(call.outputs[0].count(), 1024,
                 [&](int64_t begin, int64_t end, int) { sgd_range(arrays, step, begin, end); });
  });
}

std::unique_ptr<CpuKernel> update_reference(const KernelSpec& spec) {
  return kernel_of([plan = Plan(spec.attrs)](const KernelCall& call) {
    const double clip = read_element(call.inputs[plan.hyper + 1], 0);
    if (!std::isfinite(clip)) return;
    const double lr = plan.lr(call), decay = plan.decay_of(call);
    const uint64_t key = plan.key(call);
    const TensorView& weight = call.outputs[0];
    for (int64_t i = 0; i < weight.count(); ++i) {
      const double w = read_element(weight, i);
      const double g = read_element(call.inputs[1], i) * clip + decay * w;
      double move = g;
      if (plan.momentum > 0) {
        const double buffer = plan.momentum * read_element(call.outputs[1], i) + g;
        write_element(call.outputs[1], i, buffer);
        move = plan.nesterov ? g + plan.momentum * buffer : buffer;
      }
      write_weight(weight, plan.copy_of(call), i, w - lr * move, key);
    }
  });
}

}  // namespace

void register_sgd_cpu(CpuKernels& kernels) { kernels.add("sgd", simd_and_reference<update_simd, update_reference>()); }

}  // namespace headroom
