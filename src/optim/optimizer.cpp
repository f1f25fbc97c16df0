#include "optim/optimizer.h"

#include <algorithm>

#include "base/counter_random.h"
#include "base/error.h"
#include "ops/update/blocks.h"
#include "optim/lora_plus.h"
#include "optim/registry.h"

namespace headroom {

OptimizerState f32_state(std::string_view name, const Type& parameter) {
  return {name, Type{DType::f32, parameter.shape}};
}

namespace {

int64_t elements_of(const Type& type) {
  int64_t elements = 1;
  for (const Dim& dim : type.shape) elements *= dim.constant;
  return elements;
}

}  // namespace

void add_8bit_state(std::vector<OptimizerState>& states, std::string_view codes, std::string_view absmax,
                    const Type& parameter) {
  states.push_back({codes, Type{DType::u8, parameter.shape}});
  states.push_back({absmax, Type{DType::f32, {Dim::of(blocks_of(elements_of(parameter)))}}});
}

bool takes_8bit_states(const OptimizerSettings& settings, const Type& parameter, ParameterKind kind) {
  const double least = settings.value(k8bitFloor.name);
  return kind != ParameterKind::embedding && static_cast<double>(elements_of(parameter)) >= least;
}

std::vector<std::string_view> optimizer_names() {
  std::vector<std::string_view> names;
  for (const auto& [name, optimizer] : optimizers().all()) names.push_back(name);
  return names;
}

std::string optimizers_text() {
  std::vector<std::string> texts;
  for (const auto& [name, optimizer] : optimizers().all()) {
    const std::span<const std::string_view> aliases = optimizer->aliases();
    texts.push_back(aliases.empty() ? name : fmt::format("{} ({})", name, fmt::join(aliases, ", ")));
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

const Optimizer& find_optimizer(std::string_view name) {
  if (const Optimizer* const optimizer = optimizers().find(name)) return *optimizer;
  throw Error(ErrorKind::usage, fmt::format("--optim '{}' is not known", name),
              fmt::format("one of {}", optimizers_text()));
}

Attrs update_attrs(const Graph& graph, const Parameter& parameter) {
  const Value& weight = graph.value(parameter.weight);
  Attrs attrs{{"decay", int64_t{parameter.decays()}}};
  if (weight.type.dtype != DType::f32 || !weight.type.storage.dense())
    attrs.set("tensor", static_cast<int64_t>(hash_text(weight.name) >> 1));
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

void append_update_op(Builder& build, std::string_view op, const OptimizerSettings& settings,
                      std::initializer_list<std::string_view> options, const UpdateInputs& in,
                      std::initializer_list<std::pair<std::string_view, Attr>> more) {
  Attrs attrs = update_attrs(build.graph(), in.parameter);
  for (const OptimizerOption& option : find_optimizer(settings.optimizer()).options()) {
    if (std::find(options.begin(), options.end(), option.name) == options.end()) continue;
    if (option.flag)
      attrs.set(option.name, int64_t{settings.flag(option.name)});
    else
      attrs.set(option.name, settings.value(option.name));
  }
  const double rate = rate_factor(settings, build.graph().value(in.parameter.weight).name, in.parameter.kind);
  if (rate != 1) attrs.set("rate", rate);
  for (const auto& [name, value] : more) attrs.set(name, value);
  std::vector<ValueId> inputs{in.parameter.weight, in.gradient};
  inputs.insert(inputs.end(), in.states.begin(), in.states.end());
  inputs.insert(inputs.end(), {in.hyper, in.clip, in.copy});
  build.append(op, inputs, std::move(attrs));
}

}  // namespace headroom
