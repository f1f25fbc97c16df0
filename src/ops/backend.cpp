#include "ops/backend.h"

#include "base/error.h"

namespace headroom {

void register_all_backends(Backends& backends);  // generated

void ScratchRules::add(std::string_view op, ScratchRule rule) {
  HR_CHECK(rules_.emplace(std::string(op), rule).second, "the scratch of {} is registered twice", op);
}

ScratchRule ScratchRules::find(std::string_view op) const {
  const auto at = rules_.find(op);
  return at == rules_.end() ? nullptr : at->second;
}

void Backends::add(std::unique_ptr<Backend> backend) {
  HR_CHECK(!find(backend->name()), "backend {} is registered twice", backend->name());
  all_.push_back(std::move(backend));
}

const Backend* Backends::find(std::string_view name) const {
  for (const auto& backend : all_)
    if (backend->name() == name) return backend.get();
  return nullptr;
}

const Backends& backends() {
  static const Backends built = [] {
    Backends all;
    register_all_backends(all);
    return all;
  }();
  return built;
}

const Backend& backend_of(const DeviceFacts& facts) {
  const Backend* const backend = backends().find(facts.device);
  HR_CHECK(backend, "this build has no backend '{}'", facts.device);
  return *backend;
}

int64_t scratch_bytes(const Op& op, const OpCall& call, const DeviceFacts& facts) {
  const ScratchRule rule = backend_of(facts).scratch().find(op_name(op));
  return op.stage_bytes(call) + (rule ? rule(call, facts) : 0);
}

bool ScratchUsers::contain(const Op& op) {
  const auto [known, added] = known_.try_emplace(&op, false);
  if (added) known->second = op.kind() == OpKind::host_stage || backend_of(facts_).scratch().find(op_name(op));
  return known->second;
}

}  // namespace headroom
