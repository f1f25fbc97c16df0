// What lives where and when while a program runs, read off the plan's instructions: the storages of the liveness
// analysis again, now with the places they were given.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "plan/plan.h"

namespace headroom {

// Bytes [offset, offset + bytes) of the device's arena while the instructions [begin, end) run. What a loop reads from
// outside lives until the loop ends.
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
