#include "ir/op.h"

#include "base/error.h"

namespace headroom {

Work Op::work(const OpCall& call) const {
  Work work;
  for (const ConcreteType& type : call.inputs) work.bytes += static_cast<double>(storage_bytes(type));
  for (const ConcreteType& type : call.outputs) work.bytes += static_cast<double>(storage_bytes(type));
  return work;
}

std::string_view op_name(const Op& of) { return of.name(); }

void Op::vjp(VjpContext&) const { HR_CHECK(false, "{} is not differentiable", name()); }

}  // namespace headroom
