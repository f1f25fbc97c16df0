#include "optim/registry.h"

#include "base/error.h"

namespace headroom {

void register_all_optimizers(OptimizerRegistry& registry);  // generated

void OptimizerRegistry::add(std::unique_ptr<Optimizer> optimizer) {
  const std::string name(optimizer->name());
  HR_CHECK(all_.emplace(name, std::move(optimizer)).second, "optimizer {} is registered twice", name);
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
