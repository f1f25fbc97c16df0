#include "optim/registry.h"

#include "base/error.h"

namespace headroom {

void register_all_optimizers(OptimizerRegistry& registry);  // generated

void OptimizerRegistry::add(std::unique_ptr<Optimizer> optimizer) {
  const auto take = [&](std::string_view name) {
    HR_CHECK(by_name_.emplace(name, optimizer.get()).second, "optimizer {} is registered twice", name);
  };
  take(optimizer->name());
  for (const std::string_view alias : optimizer->aliases()) take(alias);
  const std::string name(optimizer->name());
  all_.emplace(name, std::move(optimizer));
}

const Optimizer* OptimizerRegistry::find(std::string_view name) const {
  const auto at = by_name_.find(name);
  return at == by_name_.end() ? nullptr : at->second;
}

const OptimizerRegistry& optimizers() {
  static const OptimizerRegistry registry = [] {
    OptimizerRegistry all;
    register_all_optimizers(all);
    return all;
  }();
  return registry;
}

}  // namespace headroom
