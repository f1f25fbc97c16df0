#include "optim/optimizer.h"

#include "base/counter_random.h"
#include "base/error.h"
#include "optim/registry.h"

namespace headroom {

std::vector<std::string_view> optimizer_names() {
  std::vector<std::string_view> names;
  for (const auto& [name, optimizer] : optimizers().all()) names.push_back(name);
  return names;
}

const Optimizer& find_optimizer(std::string_view name) {
  const auto& all = optimizers().all();
  if (const auto at = all.find(name); at != all.end()) return *at->second;
  throw Error(ErrorKind::usage, fmt::format("--optim '{}' is not known", name),
              fmt::format("one of {}", fmt::join(optimizer_names(), ", ")));
}

Attrs update_attrs(const Graph& graph, const Parameter& parameter) {
  const Value& weight = graph.value(parameter.weight);
  Attrs attrs{{"decay", int64_t{parameter.decays()}}};
  if (weight.type.dtype == DType::bf16) attrs.set("tensor", static_cast<int64_t>(hash_text(weight.name) >> 1));
  return attrs;
}

void append_update(Builder& build, const OptimizerSettings& settings, UpdateInputs in) {
  const Optimizer& optimizer = find_optimizer(settings.optimizer());
  const std::string weight = build.graph().value(in.parameter.weight).name;
  const Type type = build.type(in.parameter.weight);
  for (const OptimizerState& state : optimizer.states(settings, type, in.parameter.kind))
    in.states.push_back(build.persistent(fmt::format("{}.{}", weight, state.name), state.type, Role::optimizer));
  optimizer.update(build, settings, in);
}

}  // namespace headroom
