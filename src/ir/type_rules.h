// When a type is well formed, whoever made it: the parser refuses other types, the verifier reports them.
#pragma once

#include <span>
#include <string>

#include "ir/limits.h"
#include "ir/type.h"

namespace headroom {

// What is wrong with the type, or an empty string. The rules: rank at most kMaxRank, no negative dimension, symbols
// declared, at most kMaxElements elements with every symbol at its bound, parts of symbols within their number (1 to
// kMaxParts), block storage with 1 to 64 payload bits and a floating scale, shard axis within the rank and 1 to
// kMaxParts parts. Never throws.
std::string type_problem(const Type& type, std::span<const Symbol> symbols);

}  // namespace headroom
