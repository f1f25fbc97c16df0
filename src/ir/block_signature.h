// The structure of one block of nodes as bytes: equal bytes, equal structure. Private to blocks.cpp.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace headroom {

// Builds signatures for one graph; keeps tables of the size of its values between calls.
class BlockSignature {
 public:
  explicit BlockSignature(const Graph& graph);

  // The nodes with their wiring relative to the block: a value made in it is known by its place among the block's
  // definitions, one from outside by type, role, persistence and the order of first use. Bodies of loops included.
  std::string of(std::span<const NodeId> nodes);

  // One node without its wiring: op, attributes, stage, types and roles, which inputs are persistent, loop body.
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

// FNV-1a of 64 bits: the same on every machine.
uint64_t stable_hash(std::string_view bytes);

}  // namespace headroom
