#include "ir/op.h"

#include <algorithm>

#include "base/error.h"

namespace headroom {

Work Op::work(const OpCall& call) const {
  Work work;
  for (const ConcreteType& type : call.inputs) work.bytes += static_cast<double>(storage_bytes(type));
  for (const ConcreteType& type : call.outputs) work.bytes += static_cast<double>(storage_bytes(type));
  return work;
}

std::string_view op_name(const Op& of) { return of.name(); }

size_t operand_place(const Op& op, const Attrs& attrs, size_t inputs, std::string_view name) {
  const OperandNames names = op.operands(attrs, inputs);
  const auto at = static_cast<size_t>(std::find(names.begin(), names.end(), name) - names.begin());
  return std::min(at, inputs);
}

void Op::vjp(VjpContext&) const { HR_CHECK(false, "{} is not differentiable", name()); }

}  // namespace headroom
