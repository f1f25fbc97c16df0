#include "ir/block_signature.h"

#include <bit>

namespace headroom {

uint64_t stable_hash(std::string_view bytes) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

BlockSignature::BlockSignature(const Graph& graph)
    : graph_(graph), local_(graph.values.size(), 0), epoch_of_(graph.values.size(), 0) {}

std::string BlockSignature::of(std::span<const NodeId> nodes) {
  out_.clear();
  ++epoch_;
  next_ = 0;
  for (NodeId id : nodes) node(id);
  return out_;
}

std::string BlockSignature::shape_of(NodeId id) {
  out_.clear();
  ++epoch_;
  next_ = 0;
  const Node& node = graph_.node(id);
  operation(node);
  for (ValueId input : node.inputs) value(input);
  number(static_cast<int64_t>(node.outputs.size()));
  for (ValueId output : node.outputs) value(output);
  if (is_loop(node)) body(graph_.region(node.body));
  return out_;
}

void BlockSignature::node(NodeId id) {
  const Node& node = graph_.node(id);
  operation(node);
  for (ValueId input : node.inputs) wire(input);
  if (is_loop(node)) body(graph_.region(node.body));
  number(static_cast<int64_t>(node.outputs.size()));
  for (ValueId output : node.outputs) define(output);
}

void BlockSignature::body(const Region& region) {
  number(static_cast<int64_t>(region.params.size()));
  for (ValueId param : region.params) define(param);
  number(static_cast<int64_t>(region.nodes.size()));
  for (NodeId id : region.nodes) node(id);
  for (ValueId result : region.results) wire(result);
}

void BlockSignature::operation(const Node& node) {
  text(op_name(*node.op));
  number(static_cast<int64_t>(node.stage));
  attrs(node.attrs);
  number(static_cast<int64_t>(node.inputs.size()));
}

void BlockSignature::attrs(const Attrs& attrs) {
  number(static_cast<int64_t>(attrs.items().size()));
  for (const auto& [name, attr] : attrs.items()) {
    text(name);
    number(static_cast<int64_t>(attr.index()));
    if (const auto* whole = std::get_if<int64_t>(&attr))
      number(*whole);
    else if (const auto* real = std::get_if<double>(&attr))
      number(std::bit_cast<int64_t>(*real));
    else
      text(std::get<std::string>(attr));
  }
}

void BlockSignature::value(ValueId id) {
  const Value& value = graph_.value(id);
  const Type& type = value.type;
  number(static_cast<int64_t>(value.role) * 2 + (value.persistent ? 1 : 0));
  number(static_cast<int64_t>(type.dtype));
  number(static_cast<int64_t>(type.shape.size()));
  for (const Dim& dim : type.shape) {
    number(dim.symbol);
    number(dim.symbol < 0 ? dim.constant : 0);
    if (dim.parts != 1) number(dim.part), number(dim.parts);
  }
  number(type.storage.block);
  if (!type.storage.dense()) {
    number(type.storage.payload_bits);
    number(static_cast<int64_t>(type.storage.scale));
    number(static_cast<int64_t>(type.storage.codes));
    number(type.storage.scale_block);
  }
  number(static_cast<int64_t>(type.tier));
  number(type.shard ? type.shard->parts : 0);
  if (type.shard) number(type.shard->axis);
}

void BlockSignature::wire(ValueId id) {
  const auto index = static_cast<size_t>(id);
  if (epoch_of_[index] == epoch_) return number(local_[index]);
  // First use of a value from outside: it takes the next number, and its type is part of the structure.
  number(-1);
  define(id);
}

void BlockSignature::define(ValueId id) {
  const auto index = static_cast<size_t>(id);
  epoch_of_[index] = epoch_;
  local_[index] = next_++;
  value(id);
}

// Zigzag, then base 128 with the low digits first (LEB128): most numbers are small, so most take one byte.
void BlockSignature::number(int64_t value) {
  uint64_t rest = (static_cast<uint64_t>(value) << 1) ^ static_cast<uint64_t>(value >> 63);
  for (; rest >= 128; rest >>= 7) out_.push_back(static_cast<char>((rest & 127) | 128));
  out_.push_back(static_cast<char>(rest));
}

void BlockSignature::text(std::string_view value) {
  number(static_cast<int64_t>(value.size()));
  out_.append(value);
}

}  // namespace headroom
