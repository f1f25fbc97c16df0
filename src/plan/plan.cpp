#include "plan/plan.h"

#include "base/error.h"

namespace headroom {

std::vector<ConcreteType> types_of(const std::vector<Operand>& operands) {
  std::vector<ConcreteType> types;
  for (const Operand& operand : operands) types.push_back(operand.type);
  return types;
}

const Operand& operand(const Instruction& call, std::string_view name) {
  const size_t place = operand_place(*call.op, call.attrs, call.inputs.size(), name);
  HR_CHECK(place < call.inputs.size(), "a call of {} has no operand '{}'", op_name(*call.op), name);
  return call.inputs[place];
}

const PlanProgram* Plan::program(std::string_view name) const {
  for (const PlanProgram& candidate : programs)
    if (candidate.name == name) return &candidate;
  return nullptr;
}

const PersistentTensor* Plan::tensor(std::string_view name) const {
  for (const PersistentTensor& candidate : tensors)
    if (candidate.name == name) return &candidate;
  return nullptr;
}

TierFigures tier_figures(const Plan& plan, Tier tier) {
  const bool one_memory = plan.facts.is_cpu() && plan.host.arena_bytes == 0;
  if (tier == (one_memory ? Tier::host : Tier::device)) return {plan.budget_bytes, plan.peak_bytes};
  if (tier == Tier::device) return {};
  return {plan.below(tier).budget_bytes, plan.below(tier).peak_bytes};
}

std::map<std::string, std::string> taken_techniques(const Plan& plan) {
  std::map<std::string, std::string> out;
  for (const TechniqueReport& technique : plan.techniques)
    if (technique.taken) out[technique.name] = technique.value;
  return out;
}

std::string settings_text(const std::map<std::string, std::string>& techniques) {
  std::string out;
  for (const auto& [name, setting] : techniques) out += (out.empty() ? "" : "; ") + name + " " + setting;
  return out.empty() ? "no technique" : out;
}

std::string bucket_program(std::string_view program, int64_t length) {
  return std::string(program) + "@" + std::to_string(length);
}

}  // namespace headroom
