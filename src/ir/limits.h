// Limits of a graph: what the parser accepts and the verifier allows, far from any overflow.
#pragma once

#include <cstddef>
#include <cstdint>

namespace headroom {

constexpr size_t kMaxText = size_t{1} << 30;        // bytes of the text form
constexpr size_t kMaxSymbols = 64;                  // of a graph
constexpr size_t kMaxPrograms = 256;                // of a graph
constexpr size_t kMaxAttrs = 64;                    // of a node
constexpr size_t kMaxRank = 16;                     // dimensions of a type
constexpr int64_t kMaxElements = int64_t{1} << 48;  // of one value at the symbols' bounds; also limits a symbol's bound
constexpr int32_t kMaxParts = 1 << 20;              // slices of a sharded value, parts of a symbol
constexpr int32_t kMaxBlockId = 1 << 20;            // of Node::block
constexpr int kMaxLoopDepth = 32;                   // loops inside loops

}  // namespace headroom
