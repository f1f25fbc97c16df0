#include "plan/plan.h"

namespace headroom {

std::vector<ConcreteType> types_of(const std::vector<Operand>& operands) {
  std::vector<ConcreteType> types;
  for (const Operand& operand : operands) types.push_back(operand.type);
  return types;
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

std::string bucket_program(std::string_view program, int64_t length) {
  return std::string(program) + "@" + std::to_string(length);
}

}  // namespace headroom
