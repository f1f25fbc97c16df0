// Every optimizer headroom knows. Filled by generated code with explicit calls (CMake collects src/optim/methods).
#pragma once

#include <map>
#include <memory>
#include <string>

#include "optim/optimizer.h"

namespace headroom {

class OptimizerRegistry {
 public:
  // Throws InternalError if the name or an alias is taken.
  void add(std::unique_ptr<Optimizer> optimizer);
  const std::map<std::string, std::unique_ptr<Optimizer>, std::less<>>& all() const { return all_; }
  // By name or alias; null if there is none.
  const Optimizer* find(std::string_view name) const;

 private:
  std::map<std::string, std::unique_ptr<Optimizer>, std::less<>> all_;
  std::map<std::string, const Optimizer*, std::less<>> by_name_;  // and by alias
};

// The registry with every optimizer, built once; safe to call from several threads.
const OptimizerRegistry& optimizers();

}  // namespace headroom
