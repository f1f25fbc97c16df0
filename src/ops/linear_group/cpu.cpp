// CPU kernels of a group of linear layers: all weights in one pass for few rows of x, else one layer after the other.
#include "ops/linear/cpu_int8_blocks.h"
#include "ops/linear/cpu_rows.h"
#include "ops/linear_group/member_calls.h"

namespace headroom {
namespace {

// Runs each layer by the kernel that linear chooses for it; `only` restricts the choice to one implementation.
KernelOffer make_each(const KernelSpec& spec, const DeviceFacts& facts, std::string_view only) {
  std::vector<std::unique_ptr<CpuKernel>> layers;
  for (size_t i = 0; i < spec.outputs.size(); ++i)
    layers.push_back(make_cpu_kernel(member_spec(spec, i, facts), facts, only));
  return {kernel_of([layers = std::move(layers)](const KernelCall& call) {
            each_member(call, [&](size_t i, const KernelCall& member) { layers[i]->run(member); });
          }),
          {}};
}

KernelOffer make_fastest_each(const KernelSpec& spec, const DeviceFacts& facts) { return make_each(spec, facts, {}); }

KernelOffer make_reference_each(const KernelSpec& spec, const DeviceFacts& facts) {
  return make_each(spec, facts, "reference");
}

}  // namespace

void register_linear_group_cpu(CpuKernels& kernels) {
  kernels.add("linear_group", {{"int8-blocks", make_linear_int8_blocks},
                               {"rows", make_linear_group_rows},
                               {"each", make_fastest_each},
                               {"reference", make_reference_each}});
}

}  // namespace headroom
