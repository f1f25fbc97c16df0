// The graph: values in SSA form, nodes in program order, regions (program bodies and loop bodies), symbols.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ir/op.h"
#include "ir/type.h"

namespace headroom {

using ValueId = int32_t;
using NodeId = int32_t;
using RegionId = int32_t;
constexpr int32_t kNone = -1;

// What a value is for: the classes of the memory breakdown.
enum class Role : uint8_t { activation, parameter, gradient, optimizer, constant, data, kv_cache, workspace };
std::string_view role_name(Role role);

// Which part of the step a node belongs to.
enum class Stage : uint8_t { forward, backward, recompute, update, transfer };
std::string_view stage_name(Stage stage);

struct Value {
  std::string name;  // empty, or unique: the weight's name in the checkpoint for parameters
  Type type;
  Role role = Role::activation;
  // A persistent value has no producer, lives for the whole run and is visible in every program.
  bool persistent = false;
};

struct Node {
  const Op* op = nullptr;
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
  Attrs attrs;
  int32_t block = kNone;  // the layer the node belongs to
  Stage stage = Stage::forward;
  RegionId body = kNone;  // of a loop
};

// A straight sequence of nodes. A loop body has `params` (loop-carried, one per input of the loop node) and as many
// `results`; result i, param i, and input i and output i of the loop share one storage.
struct Region {
  std::vector<ValueId> params;
  std::vector<NodeId> nodes;
  std::vector<ValueId> results;
};

struct Program {
  std::string name;
  RegionId region = kNone;
};

struct Graph {
  std::string name;
  std::vector<Symbol> symbols;
  std::vector<Value> values;
  std::vector<Node> nodes;
  std::vector<Region> regions;
  std::vector<Program> programs;  // in the order of the run's timeline

  const Value& value(ValueId id) const { return values[static_cast<size_t>(id)]; }
  Value& value(ValueId id) { return values[static_cast<size_t>(id)]; }
  const Node& node(NodeId id) const { return nodes[static_cast<size_t>(id)]; }
  Node& node(NodeId id) { return nodes[static_cast<size_t>(id)]; }
  const Region& region(RegionId id) const { return regions[static_cast<size_t>(id)]; }
  Region& region(RegionId id) { return regions[static_cast<size_t>(id)]; }

  SymbolId add_symbol(std::string_view symbol, int64_t bound);
  // The id of a symbol by name, or kNone.
  SymbolId find_symbol(std::string_view symbol) const;
  // The region of a program by name, or kNone.
  RegionId find_program(std::string_view program) const;
  // Every symbol at its bound.
  Bindings bounds() const;
};

// The input of a node that its op calls `name`; kNone if the call has none of that name.
ValueId operand(const Node& node, std::string_view name);
// The same as a reference, for replacing it. Throws InternalError if there is none.
ValueId& operand_of(Node& node, std::string_view name);
// The first input of a product: what it multiplies by the matrix, or x of a weight's gradient.
inline ValueId first_factor(const Node& node) { return node.inputs.front(); }
// What a cast, a rounding or a copy takes: its first input.
inline ValueId source_of(const Node& node) { return node.inputs.front(); }
// The first output, of most ops the only one; as a reference, for replacing it.
inline ValueId result_of(const Node& node) { return node.outputs.front(); }
inline ValueId& result_of(Node& node) { return node.outputs.front(); }
// The token of a node that starts a transfer: its last output.
inline ValueId token_of(const Node& node) { return node.outputs.back(); }

// The op name of a loop node; its trip count is the run-time number named by attribute "trips".
constexpr std::string_view kLoop = "loop";
inline bool is_loop(const Node& node) { return node.body != kNone; }

}  // namespace headroom
