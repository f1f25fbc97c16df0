// A hash of a sequence of numbers, for tables in memory: not for files, and not against chosen inputs.
#pragma once

#include <cstdint>

namespace headroom {

// The hash of a sequence that hashed to `hash` before `bits` came.
constexpr uint64_t mixed_hash(uint64_t hash, uint64_t bits) {
  hash = (hash ^ bits) * 0x9e3779b97f4a7c15u;
  return hash ^ hash >> 29;
}

}  // namespace headroom
