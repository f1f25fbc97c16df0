// What a member of a group of linear layers is to kernels, on whichever device.
#pragma once

#include <array>

#include "ops/cpu/kernel.h"
#include "ops/linear_group/members.h"

namespace headroom {

// linear for a member.
inline KernelSpec member_spec(const KernelSpec& group, size_t member) {
  return {"linear",
          group.attrs,
          member_inputs<ConcreteType>(group.inputs, group.attrs, member),
          {group.outputs[member]},
          group.scratch_bytes};
}

// run(member, its call of linear) for one member after the other. No heap call.
template <typename Run>
void each_member(const KernelCall& group, const Run& run) {
  const size_t members = group.outputs.size(), count = (group.inputs.size() - 1) / members + 1;
  for (size_t member = 0; member < members; ++member) {
    std::array<TensorView, 3> inputs;
    for (size_t i = 0; i < count; ++i) inputs[i] = group.inputs[group_input(members, member, i)];
    KernelCall call = group;
    call.inputs = {inputs.data(), count};
    call.outputs = group.outputs.subspan(member, 1);
    run(member, call);
  }
}

}  // namespace headroom
