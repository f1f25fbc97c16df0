#include "ir/graph.h"

#include <algorithm>

#include "base/error.h"

namespace headroom {

std::string_view role_name(Role role) {
  constexpr std::string_view names[] = {"activation", "parameter", "gradient", "optimizer",
                                        "constant",   "data",      "kv_cache", "workspace"};
  return names[static_cast<size_t>(role)];
}

std::string_view stage_name(Stage stage) {
  constexpr std::string_view names[] = {"forward", "backward", "recompute", "update", "transfer"};
  return names[static_cast<size_t>(stage)];
}

SymbolId Graph::add_symbol(std::string_view symbol, int64_t bound) {
  HR_CHECK(find_symbol(symbol) == kNone, "symbol {} is declared twice", symbol);
  symbols.push_back({std::string(symbol), bound});
  return static_cast<SymbolId>(symbols.size() - 1);
}

SymbolId Graph::find_symbol(std::string_view symbol) const {
  for (size_t i = 0; i < symbols.size(); ++i)
    if (symbols[i].name == symbol) return static_cast<SymbolId>(i);
  return kNone;
}

RegionId Graph::find_program(std::string_view program) const {
  for (const Program& candidate : programs)
    if (candidate.name == program) return candidate.region;
  return kNone;
}

namespace {

size_t place_of(const Node& node, std::string_view name) {
  return operand_place(*node.op, node.attrs, node.inputs.size(), name);
}

}  // namespace

ValueId operand(const Node& node, std::string_view name) {
  const size_t place = place_of(node, name);
  return place < node.inputs.size() ? node.inputs[place] : kNone;
}

ValueId& operand_of(Node& node, std::string_view name) {
  const size_t place = place_of(node, name);
  HR_CHECK(place < node.inputs.size(), "a call of {} has no operand '{}'", op_name(*node.op), name);
  return node.inputs[place];
}

Bindings Graph::bounds() const {
  Bindings out;
  for (const Symbol& symbol : symbols) out.push_back(symbol.bound);
  return out;
}

}  // namespace headroom
