#include "ir/type_rules.h"

#include <fmt/format.h>

#include <algorithm>

namespace headroom {
namespace {

std::string part_problem(const Dim& dim) {
  if (dim.parts < 1 || dim.parts > kMaxParts || dim.part < 0 || dim.part >= dim.parts)
    return fmt::format("there is no part {} of {}", dim.part, dim.parts);
  return dim.parts > 1 && dim.symbol < 0 ? "part of a constant" : std::string();
}

std::string storage_problem(const Storage& storage) {
  if (storage.block < 0) return fmt::format("storage block {} is negative", storage.block);
  if (storage.dense()) return storage == Storage{} ? "" : "dense storage has payload bits or a scale";
  if (storage.payload_bits < 1 || storage.payload_bits > 64)
    return fmt::format("storage has {} payload bits, not 1 to 64", storage.payload_bits);
  if (storage.scale_block < 0) return fmt::format("a block of {} scales", storage.scale_block);
  if (storage.codes != CodeTable::integer && storage.payload_bits != 4)
    return fmt::format("{} codes have 4 bits, not {}", code_table_name(storage.codes), storage.payload_bits);
  if (!is_floating(storage.scale)) return fmt::format("storage scale {} is not floating", dtype_name(storage.scale));
  return {};
}

std::string shard_problem(const ShardSpec& shard, size_t rank) {
  if (shard.axis < 0 || static_cast<size_t>(shard.axis) >= rank)
    return fmt::format("shard axis {} is outside rank {}", shard.axis, rank);
  if (shard.parts < 1 || shard.parts > kMaxParts) return fmt::format("shard has {} parts", shard.parts);
  return {};
}

}  // namespace

std::string type_problem(const Type& type, std::span<const Symbol> symbols) {
  if (type.shape.size() > kMaxRank) return fmt::format("rank {} is above {}", type.shape.size(), kMaxRank);
  int64_t elements = 1;
  for (const Dim& dim : type.shape) {
    if (dim.symbol >= 0 && static_cast<size_t>(dim.symbol) >= symbols.size())
      return fmt::format("symbol {} is not declared", dim.symbol);
    if (std::string problem = part_problem(dim); !problem.empty()) return problem;
    const int64_t length = dim.symbol >= 0
                               ? part_length(symbols[static_cast<size_t>(dim.symbol)].bound, dim.part, dim.parts)
                               : dim.constant;
    if (length < 0) return fmt::format("dimension {} is negative", length);
    // A zero counts as one here, so that the product of the other dimensions is checked too.
    const int64_t factor = std::max<int64_t>(length, 1);
    if (factor > kMaxElements / elements) return fmt::format("the type has more than {} elements", kMaxElements);
    elements *= factor;
  }
  if (std::string problem = storage_problem(type.storage); !problem.empty()) return problem;
  return type.shard ? shard_problem(*type.shard, type.shape.size()) : std::string();
}

}  // namespace headroom
