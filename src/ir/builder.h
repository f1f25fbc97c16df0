// Appends nodes to one region of a graph, inferring types from the op's shape rule.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace headroom {

// Finds an op by name; throws InternalError if there is none.
using OpLookup = std::function<const Op&(std::string_view)>;

class Builder {
 public:
  Builder(Graph& graph, RegionId region, OpLookup lookup)
      : graph_(&graph), region_(region), lookup_(std::move(lookup)) {}

  Graph& graph() { return *graph_; }
  RegionId region() const { return region_; }
  const Type& type(ValueId id) const { return graph_->value(id).type; }

  // Block and stage of the nodes appended from now on.
  void set_block(int32_t block) { block_ = block; }
  void set_stage(Stage stage) { stage_ = stage; }
  int32_t block() const { return block_; }

  // A value without a producer that every program sees (weights, states, tables, KV cache).
  ValueId persistent(std::string name, Type type, Role role);

  // Appends `op(inputs) attrs`; kNone inputs are dropped. Returns all outputs.
  std::vector<ValueId> append(std::string_view op, std::vector<ValueId> inputs, Attrs attrs = {},
                              Role role = Role::activation);
  // The same for ops with one output.
  ValueId call(std::string_view op, std::vector<ValueId> inputs, Attrs attrs = {}, Role role = Role::activation);

  // Opens a loop over `carried` with the trip count named `trips`; `body` receives a builder for the body and the
  // body's params, and returns the results in the same order. Returns the loop's outputs.
  std::vector<ValueId> loop(std::string_view trips, const std::vector<ValueId>& carried,
                            const std::function<std::vector<ValueId>(Builder&, const std::vector<ValueId>&)>& body);

 private:
  Graph* graph_;
  RegionId region_;
  OpLookup lookup_;
  int32_t block_ = kNone;
  Stage stage_ = Stage::forward;
};

// Adds a program with an empty region and returns the region.
RegionId add_program(Graph& graph, std::string_view name);

// A new value without a producer (region params, results of rewriting).
ValueId add_value(Graph& graph, Type type, Role role, std::string name = {});

}  // namespace headroom
