// The variables of a part of a template: a loop's body, a macro, the whole template.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "jinja/value.h"

namespace headroom::jinja {

// Names are looked up here and then in the scope around.
struct Scope : std::enable_shared_from_this<Scope> {
  Scope(Budget& budget, std::shared_ptr<Scope> around) : around(std::move(around)), charge(budget, 128) {}

  void set(const std::string& name, Value value) {
    for (auto& [known, held] : variables)
      if (known == name) {
        held = std::move(value);
        return;
      }
    charge.add(static_cast<int64_t>(2 * sizeof(std::pair<std::string, Value>) + name.size()));
    variables.emplace_back(name, std::move(value));
  }
  // nullptr if it is in no scope.
  const Value* find(std::string_view name) const {
    for (const Scope* scope = this; scope != nullptr; scope = scope->around.get())
      for (const auto& [known, held] : scope->variables)
        if (known == name) return &held;
    return nullptr;
  }

  std::shared_ptr<Scope> around;
  std::vector<std::pair<std::string, Value>> variables;
  bool kept = false;  // until the rendering ends, for the macros that were defined in it
  Charge charge;
};

}  // namespace headroom::jinja
