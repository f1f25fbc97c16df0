// The members of a group of linear layers as calls of kernels, on any device.
#pragma once

#include <algorithm>
#include <array>

#include "ops/backend.h"
#include "ops/kernel.h"
#include "ops/linear_group/members.h"
#include "ops/registry.h"

namespace headroom {

// linear for a member, with the scratch that it would have alone. The choice of the kernel depends on the scratch: with
// that of the group's largest member, a smaller one could get another kernel, and other bits, than alone.
inline KernelSpec member_spec(const KernelSpec& group, size_t member, const DeviceFacts& facts) {
  KernelSpec own{"linear",
                 group.attrs,
                 member_inputs<ConcreteType>(group.inputs, group.attrs, member),
                 {group.outputs[member]},
                 0};
  own.scratch_bytes = std::min(group.scratch_bytes, scratch_bytes(find_op("linear"), own.call(), facts));
  return own;
}

// Calls run(member, its call of linear) for each member in turn. No heap call.
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
