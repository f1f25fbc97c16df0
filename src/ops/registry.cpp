#include "ops/registry.h"

#include "base/error.h"

namespace headroom {

void register_all_ops(OpRegistry& registry);  // generated

void OpRegistry::add(std::unique_ptr<Op> op) {
  const std::string name(op_name(*op));
  HR_CHECK(ops_.emplace(name, std::move(op)).second, "op {} is registered twice", name);
}

const Op* OpRegistry::find(std::string_view name) const {
  const auto at = ops_.find(name);
  return at == ops_.end() ? nullptr : at->second.get();
}

const OpRegistry& ops() {
  static const OpRegistry registry = [] {
    OpRegistry all;
    register_all_ops(all);
    return all;
  }();
  return registry;
}

const Op& find_op(std::string_view name) {
  const Op* op = ops().find(name);
  HR_CHECK(op, "there is no op '{}'", name);
  return *op;
}

}  // namespace headroom
