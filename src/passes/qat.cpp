#include "passes/qat.h"

#include <map>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/quantization_grid.h"
#include "ir/rewrite.h"
#include "ops/registry.h"
#include "passes/quantize_weights.h"

namespace headroom {
namespace {

class Rounder {
 public:
  Rounder(Graph& graph, RegionId region, std::string_view kind) : graph_(graph), region_(region), kind_(kind) {}

  int64_t run() {
    const std::vector<NodeId> layers = quantizable_layers(graph_, region_);
    const std::vector<NodeId> nodes = graph_.region(region_).nodes;
    auto layer = layers.begin();
    for (const NodeId id : nodes) {
      if (layer != layers.end() && *layer == id) {
        round_operands(id);
        ++layer;
      }
      rewritten_.push_back(id);
    }
    graph_.region(region_).nodes = std::move(rewritten_);
    return static_cast<int64_t>(layers.size());
  }

 private:
  void round_operands(NodeId id) {
    const int32_t block = graph_.node(id).block;
    const ValueId x = operand(graph_.node(id), "x"), weight = operand(graph_.node(id), "weight");
    if (kind_ == "int8-int4") operand_of(graph_.node(id), "x") = decoded(x, block);
    if (graph_.value(weight).type.storage.dense()) operand_of(graph_.node(id), "weight") = rounded(weight, block);
    infer_again(graph_, id);
  }

  ValueId append(std::string_view op, std::vector<ValueId> inputs, Attrs attrs, int32_t block) {
    rewritten_.push_back(make_node(graph_, find_op(op), std::move(inputs), std::move(attrs), block, Stage::forward));
    return result_of(graph_.node(rewritten_.back()));
  }

  ValueId rounded(ValueId weight, int32_t block) {
    const auto at = weights_.find(weight);
    if (at != weights_.end()) return at->second;
    const Value& value = graph_.value(weight);
    const int64_t row = value.type.shape.back().constant;
    if (row % kQatGroup != 0)
      throw Error(ErrorKind::usage,
                  fmt::format("--technique qat={}: the rows of {} have {} elements, not a multiple of {}", kind_,
                              value.name, row, kQatGroup),
                  "train without qat; nf4, whose blocks go across rows, takes the result (headroom quantize)");
    const Attrs attrs{{"bits", int64_t{kind_ == "int8" ? 8 : 4}}, {"group", int64_t{kQatGroup}}};
    return weights_[weight] = append("fake_quantize_weight", {weight}, attrs, block);
  }

  ValueId decoded(ValueId x, int32_t block) {
    const auto at = inputs_.find({x, block});
    if (at != inputs_.end()) return at->second;
    append("quantize_tokens", {x}, {}, block);
    std::vector<ValueId> codes = graph_.node(rewritten_.back()).outputs;
    return inputs_[{x, block}] = append("dequantize_tokens", std::move(codes), {}, block);
  }

  Graph& graph_;
  RegionId region_;
  std::string_view kind_;
  std::vector<NodeId> rewritten_;
  std::map<ValueId, ValueId> weights_;
  std::map<std::pair<ValueId, int32_t>, ValueId> inputs_;
};

}  // namespace

int64_t fake_quantize(Graph& graph, RegionId region, std::string_view kind) {
  return Rounder(graph, region, kind).run();
}

}  // namespace headroom
