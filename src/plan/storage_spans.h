// The lifetimes and offsets of storages while a program runs, derived from the plan's instructions: as in the liveness
// analysis, now with their offsets.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "plan/plan.h"

namespace headroom {

// Bytes [offset, offset + bytes) of the device's arena while the instructions [begin, end) run. A value from outside
// that a loop reads lives until the loop ends.
struct StorageSpan {
  std::string name;  // a weight's name, "gradient of ...", or the op that makes it with the weight it reads
  MemoryClass kind = MemoryClass::activations;
  int32_t block = kNone;  // layer
  int64_t offset = 0;
  int64_t bytes = 0;
  int32_t begin = 0;
  int32_t end = 0;
  bool persistent = false;
};

// The spans of one program: persistent tensors first, in the plan's order, then by begin. Pure.
std::vector<StorageSpan> storage_spans(const Plan& plan, const PlanProgram& program);

}  // namespace headroom
