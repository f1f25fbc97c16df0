// The structure of a block of nodes as bytes: equal bytes mean equal structure. Private to blocks.cpp.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace headroom {

// Builds signatures for one graph. Keeps tables between calls, with an entry per value of the graph.
class BlockSignature {
 public:
  explicit BlockSignature(const Graph& graph);

  // The nodes with their wiring relative to the block: a value made in the block is identified by its position among
  // the block's definitions, one from outside by type, role, persistence and the order of first use. Includes the
  // bodies of loops.
  std::string of(std::span<const NodeId> nodes);

  // A node without its wiring: op, attributes, stage, types and roles, which inputs are persistent, loop body.
  std::string shape_of(NodeId node);

 private:
  void node(NodeId id);
  void body(const Region& region);
  void operation(const Node& node);
  void attrs(const Attrs& attrs);
  void value(ValueId id);
  void wire(ValueId id);
  void define(ValueId id);
  void number(int64_t value);
  void text(std::string_view value);

  const Graph& graph_;
  // The number of each value in the current signature; valid when `epoch_of_` is the current epoch.
  std::vector<int32_t> local_;
  std::vector<int32_t> epoch_of_;
  int32_t epoch_ = 0;
  int32_t next_ = 0;
  std::string out_;
};

// 64-bit FNV-1a: the same on every machine.
uint64_t stable_hash(std::string_view bytes);

}  // namespace headroom
