#include "passes/int8_products.h"

#include <algorithm>

#include "ops/linear/int8.h"
#include "ops/registry.h"
#include "passes/quantize_weights.h"

namespace headroom {
namespace {

constexpr int64_t kThinnest = 32;  // thinner products are soon done, and their operands are not

struct PartName {
  std::string_view name;
  bool Int8Parts::*part;
};
constexpr PartName kParts[] = {
    {"output", &Int8Parts::output}, {"grad_input", &Int8Parts::grad_input}, {"grad_weight", &Int8Parts::grad_weight}};

bool is_thin(const Type& weight) {
  return std::any_of(weight.shape.begin(), weight.shape.end(), [](const Dim& dim) { return dim.constant < kThinnest; });
}

}  // namespace

std::optional<Int8Parts> int8_parts(std::string_view setting) {
  if (setting == kInt8Mixed) return Int8Parts{};
  if (!setting.starts_with(kInt8Mixed) || setting.substr(kInt8Mixed.size(), 1) != ":") return std::nullopt;
  Int8Parts parts{false, false, false};
  std::string_view rest = setting.substr(kInt8Mixed.size() + 1);
  for (bool more = true; more;) {
    const size_t plus = rest.find('+');
    more = plus != std::string_view::npos;
    const std::string_view word = rest.substr(0, plus);
    const auto* named =
        std::find_if(std::begin(kParts), std::end(kParts), [&](const PartName& p) { return p.name == word; });
    if (named == std::end(kParts) || parts.*named->part) return std::nullopt;
    parts.*named->part = true;
    if (more) rest = rest.substr(plus + 1);
  }
  return parts;
}

std::string int8_setting(const Int8Parts& parts) {
  std::string text(kInt8Mixed);
  if (parts.output && parts.grad_input && parts.grad_weight) return text;
  char before = ':';
  for (const PartName& named : kParts)
    if (parts.*named.part) {
      text += before + std::string(named.name);
      before = '+';
    }
  return text;
}

int64_t multiply_in_int8(Graph& graph, RegionId region, const Int8Parts& parts) {
  int64_t count = 0;
  for (const NodeId id : quantizable_layers(graph, region)) {
    Node& node = graph.node(id);
    const Type& weight = graph.value(operand(node, "weight")).type;
    if (!weight.storage.dense() || is_thin(weight)) continue;
    const std::string how(kMultiplyInt8);
    if (parts.output) node.attrs.set("multiply", how);
    if (parts.grad_input) node.attrs.set(kMultiplyDx, how);
    if (parts.grad_weight) node.attrs.set(kMultiplyDw, how);
    ++count;
  }
  return count;
}

}  // namespace headroom
