// linear_group: linear layers that read the same input. Each of its members corresponds to a call of linear.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "ir/op.h"

namespace headroom {

// The most members of a group.
constexpr size_t kGroupMost = 4;

// Inputs: x, a weight for each member and, with attribute "bias" 1, a bias for each. Outputs: one for each.
inline size_t group_members(size_t inputs, const Attrs& attrs) {
  return (inputs - 1) / (attrs.integer("bias") != 0 ? 2 : 1);
}

// Input `index` of linear for a member, as an index of the group's inputs: x, weight, bias.
inline size_t group_input(size_t members, size_t member, size_t index) {
  return index == 0 ? 0 : (index - 1) * members + 1 + member;
}

// The inputs of linear for a member.
template <typename T>
std::vector<T> member_inputs(std::span<const T> inputs, const Attrs& attrs, size_t member) {
  const size_t members = group_members(inputs.size(), attrs), count = attrs.integer("bias") != 0 ? 3 : 2;
  std::vector<T> own;
  for (size_t i = 0; i < count; ++i) own.push_back(inputs[group_input(members, member, i)]);
  return own;
}

// Calls body(call of linear) for each member in turn.
template <typename Body>
void each_member_call(const OpCall& group, const Body& body) {
  for (size_t i = 0; i < group.outputs.size(); ++i) {
    const std::vector<ConcreteType> inputs = member_inputs(group.inputs, group.attrs, i);
    body(OpCall{inputs, group.outputs.subspan(i, 1), group.attrs});
  }
}

// The most scratch that a member needs: they run one after the other. `rule`: the scratch rule of linear.
template <typename Rule>
int64_t most_member_scratch(const OpCall& group, const DeviceFacts& facts, const Rule& rule) {
  int64_t most = 0;
  each_member_call(group, [&](const OpCall& member) { most = std::max<int64_t>(most, rule(member, facts)); });
  return most;
}

}  // namespace headroom
