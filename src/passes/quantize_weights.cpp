#include "passes/quantize_weights.h"

#include <algorithm>
#include <map>
#include <optional>

#include "base/error.h"
#include "base/integer_codes.h"
#include "ops/registry.h"
#include "passes/lora.h"

namespace headroom {
namespace {

constexpr int64_t kBlock = 64;        // of nf4 and fp4, as in QLoRA
constexpr int64_t kScaleBlock = 256;  // of nf4-dq

constexpr Product kLinear{ProductPart::output, ProductMatrices::one};

// What is read, and not as the weight of a linear layer or for the lengths of its rows; what a router decides by.
struct OtherUses {
  std::set<ValueId> read, routing;
};

OtherUses other_uses(const Graph& graph) {
  OtherUses uses;
  for (const Node& node : graph.nodes) {
    if (!node.op) continue;
    if (node.op->kind() == OpKind::router) uses.routing.insert(operand(node, "logits"));
    const bool takes_codes = node.op->product() == kLinear || node.op->kind() == OpKind::row_lengths;
    const ValueId weight = takes_codes ? operand(node, "weight") : kNone;
    for (const ValueId input : node.inputs)
      if (input != weight) uses.read.insert(input);
  }
  return uses;
}

Storage storage_of(std::string_view kind, const Value& weight) {
  Storage storage{static_cast<int32_t>(kBlock), 4, DType::f32, CodeTable::nf4};
  if (kind == "nf4-dq") storage.scale_block = static_cast<int32_t>(kScaleBlock);
  if (kind == "fp4") storage.codes = CodeTable::fp4;
  const std::optional<IntegerCodes> codes = integer_codes(kind);
  if (!codes) return storage;
  const int64_t row = weight.type.shape.back().constant;
  if (codes->group != 0 && row % codes->group != 0) {
    const int64_t nearest = nearest_group(row, codes->group);
    throw Error(
        ErrorKind::usage,
        fmt::format("--technique quantize-weights={}: the rows of {} have {} elements, which is not a multiple of {}",
                    kind, weight.name, row, codes->group),
        fmt::format("use {}{}, or nf4, whose blocks go across rows",
                    nearest == 0 ? "" : integer_codes_name({codes->bits, nearest}) + " (the nearest that divides), ",
                    integer_codes_name({codes->bits, 0})));
  }
  if (codes->group == 0 && codes->bits == 4 && row % 2 != 0)
    throw Error(ErrorKind::usage,
                fmt::format("--technique quantize-weights={}: the rows of {} have {} elements, no whole bytes of codes",
                            kind, weight.name, row),
                "use int8, or nf4, whose blocks go across rows");
  storage.codes = CodeTable::integer;
  storage.block = static_cast<int32_t>(codes->group == 0 ? row : codes->group);
  storage.payload_bits = codes->bits;
  return storage;
}

// Whether a node looks up rows by the ids of its tokens, not by their positions.
bool looks_up_tokens(const Node& node) {
  return node.op->kind() == OpKind::lookup &&
         operand_place(*node.op, node.attrs, node.inputs.size(), "ids") < node.inputs.size();
}

void name_form(std::map<ValueId, std::string>& forms, ValueId weight, const std::string& form) {
  const auto [at, added] = forms.emplace(weight, form);
  if (added || at->second == form) return;
  throw Error(
      ErrorKind::usage,
      fmt::format("--technique quantize-weights: embedding and head are one matrix, which cannot be both {} and {}",
                  at->second, form),
      "name one form");
}

void require_part(std::string_view part, const std::string& form, bool found) {
  if (form.empty() || found) return;
  throw Error(ErrorKind::usage, fmt::format("--technique quantize-weights: the model has no {} to quantise", part),
              fmt::format("leave +{} out", part));
}

}  // namespace

std::vector<NodeId> quantizable_layers(const Graph& graph, RegionId region) {
  const OtherUses others = other_uses(graph);
  std::vector<NodeId> layers;
  for (const NodeId id : graph.region(region).nodes) {
    const Node& node = graph.node(id);
    if (!node.op || node.block == kNone || node.op->product() != kLinear) continue;
    const ValueId weight = operand(node, "weight");
    const Value& value = graph.value(weight);
    if (!value.persistent || value.role != Role::parameter || is_lora_name(value.name)) continue;
    if (!others.read.contains(weight) && !others.routing.contains(result_of(node))) layers.push_back(id);
  }
  return layers;
}

int64_t quantize_weights(Graph& graph, RegionId region, std::string_view kind, const std::set<ValueId>* frozen) {
  int64_t count = 0;
  for (const NodeId id : quantizable_layers(graph, region)) {
    const ValueId weight = operand(graph.node(id), "weight");
    Value& value = graph.value(weight);
    if (!value.type.storage.dense() || (frozen && !frozen->contains(weight))) continue;
    value.type.storage = storage_of(kind, value);
    ++count;
  }
  return count;
}

std::vector<ValueId> quantize_embedding_and_head(Graph& graph, RegionId region, const CodedParts& parts) {
  std::map<ValueId, std::string> forms;
  bool embedding = false, head = false;
  for (const NodeId id : graph.region(region).nodes) {
    const Node& node = graph.node(id);
    if (!node.op || node.block != kNone) continue;
    const bool looks_up = looks_up_tokens(node), multiplies = node.op->product() == kLinear;
    if (!looks_up && !multiplies) continue;
    const ValueId weight = operand(node, looks_up ? "table" : "weight");
    if (!graph.value(weight).persistent || is_lora_name(graph.value(weight).name)) continue;
    (looks_up ? embedding : head) = true;
    if (const std::string& form = looks_up ? parts.embedding : parts.head; !form.empty())
      name_form(forms, weight, form);
  }
  require_part("embedding", parts.embedding, embedding);
  require_part("head", parts.head, head);
  std::vector<ValueId> coded;
  for (const auto& [weight, form] : forms) {
    graph.value(weight).type.storage = storage_of(form, graph.value(weight));
    coded.push_back(weight);
  }
  return coded;
}

}  // namespace headroom
