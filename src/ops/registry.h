// Every op headroom knows. Filled by generated code with explicit calls (CMake collects the folders of src/ops).
#pragma once

#include <map>
#include <memory>
#include <string>

#include "ir/builder.h"
#include "ir/op.h"

namespace headroom {

class OpRegistry {
 public:
  // Throws InternalError if the name is taken.
  void add(std::unique_ptr<Op> op);
  // Null if there is none of that name.
  const Op* find(std::string_view name) const;
  const std::map<std::string, std::unique_ptr<Op>, std::less<>>& all() const { return ops_; }

 private:
  std::map<std::string, std::unique_ptr<Op>, std::less<>> ops_;
};

// The registry with every op of src/ops, built once; safe to call from several threads.
const OpRegistry& ops();

// Finds an op in ops(); throws InternalError if there is none. Usable as a Builder's OpLookup.
const Op& find_op(std::string_view name);

}  // namespace headroom
