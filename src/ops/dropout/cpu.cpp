// CPU kernels of dropout.
#include <cmath>

#include "base/threads.h"
#include "ops/dropout/simd.h"
#include "ops/stream/counter_bits.h"
#include "ops/stream/scalar_access.h"

namespace headroom {
namespace {

// The attributes of the node.
struct Plan {
  uint64_t tensor = 0;
  uint32_t below = 0;
  float scale = 1;

  explicit Plan(const Attrs& attrs)
      : tensor(static_cast<uint64_t>(attrs.integer("tensor"))),
        below(static_cast<uint32_t>(std::lround(attrs.real("rate") * 0x1p31))),
        scale(static_cast<float>(1 / (1 - attrs.real("rate")))) {}
};

DropoutRange arguments(const Plan& plan, const KernelCall& call) {
  const TensorView& x = call.inputs[0];
  return {x.data,
          call.outputs[0].data,
          x.dtype,
          call.outputs[0].dtype,
          step_key(call.inputs[1].as<float>(), plan.tensor),
          call.trip * x.count(),
          plan.below,
          plan.scale};
}

std::unique_ptr<CpuKernel> drop_simd(const KernelSpec& spec) {
  return kernel_of([plan = Plan(spec.attrs)](const KernelCall& call) {
    const DropoutRange args = arguments(plan, call);
    parallel_for(call.inputs[0].count(), 4096,
                 [&](int64_t begin, int64_t end, int) { dropout_range(args, begin, end); });
  });
}

std::unique_ptr<CpuKernel> drop_reference(const KernelSpec& spec) {
  return kernel_of([plan = Plan(spec.attrs)](const KernelCall& call) {
    const DropoutRange args = arguments(plan, call);
    for (int64_t i = 0; i < call.inputs[0].count(); ++i) {
      const auto index = static_cast<uint64_t>(args.first + i);
      const bool kept = counter_bits(block_key(args.key, index), index) >> 1 >= args.below;
      const float value = static_cast<float>(read_element(call.inputs[0], i)) * args.scale;
      write_element(call.outputs[0], i, kept ? static_cast<double>(value) : 0);
    }
  });
}

}  // namespace

void register_dropout_cpu(CpuKernels& kernels) {
  kernels.add("dropout", simd_and_reference<drop_simd, drop_reference>());
}

}  // namespace headroom
