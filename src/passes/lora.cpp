#include "passes/lora.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/counter_random.h"
#include "base/error.h"
#include "base/nearest_name.h"
#include "ir/builder.h"
#include "ir/rewrite.h"
#include "ops/registry.h"
#include "passes/freeze.h"

namespace headroom {
namespace {

constexpr std::string_view kPrefix = "base_model.model.", kWeight = ".weight";

std::string module_of(std::string_view weight) {
  if (weight.ends_with(kWeight)) weight.remove_suffix(kWeight.size());
  return std::string(weight);
}

std::string last_part(const std::string& module) { return module.substr(module.rfind('.') + 1); }

// Last parts of the names of experts ("...experts.*.gate_proj"). PEFT takes targets of these names for experts in every
// layer, so that no module of such a name has an adapter.
std::set<std::string> expert_parts(const Graph& graph) {
  std::set<std::string> parts;
  for (const Value& value : graph.values)
    if (value.persistent && value.role == Role::parameter && value.name.find('*') != std::string::npos)
      parts.insert(last_part(module_of(value.name)));
  return parts;
}

bool targeted(const std::string& module, const LoraOptions& options) {
  return std::any_of(options.targets.begin(), options.targets.end(), [&](const std::string& target) {
    return target == "all-linear" || pattern_means(target, module);
  });
}

bool trained_whole(const std::string& module, const LoraOptions& options) {
  return std::any_of(options.modules_to_save.begin(), options.modules_to_save.end(),
                     [&](const std::string& saved) { return pattern_means(saved, module); });
}

// The weight of a product with a matrix of the checkpoint; kNone for other nodes, and for logits, whose product alone
// names its dtype.
ValueId weight_of(const Graph& graph, const Node& node) {
  if (!node.op || node.op->name() != "linear" || node.attrs.has("dtype")) return kNone;
  const Value& weight = graph.value(node.inputs[1]);
  return weight.persistent && weight.role == Role::parameter ? node.inputs[1] : kNone;
}

class Adapter {
 public:
  Adapter(Graph& graph, RegionId region, const LoraOptions& options)
      : graph_(graph), region_(region), options_(options), build_(graph, region, find_op) {
    const double rank = static_cast<double>(options.rank);
    factor_ = options.alpha / (options.rank_stabilised ? std::sqrt(rank) : rank);
    experts_ = expert_parts(graph);
  }

  int64_t run() {
    std::vector<NodeId> rewritten;
    for (NodeId id : std::vector<NodeId>(graph_.region(region_).nodes)) {
      for (ValueId& input : graph_.node(id).inputs)
        if (const auto at = replaced_.find(input); at != replaced_.end()) input = at->second;
      rewritten.push_back(id);
      const ValueId weight = weight_of(graph_, graph_.node(id));
      if (weight == kNone) continue;
      const std::string module = module_of(graph_.value(weight).name);
      if (experts_.contains(last_part(module))) continue;
      modules_.insert(module);
      if (targeted(module, options_) && !trained_whole(module, options_)) extend(id, weight, rewritten);
    }
    for (ValueId& result : graph_.region(region_).results)
      if (const auto at = replaced_.find(result); at != replaced_.end()) result = at->second;
    graph_.region(region_).nodes = std::move(rewritten);
    refuse_strangers();
    return count_;
  }

 private:
  void extend(NodeId product, ValueId weight, std::vector<NodeId>& nodes) {
    const std::string name = graph_.value(weight).name;
    const int32_t block = graph_.node(product).block;
    const bool transposed = graph_.node(product).attrs.text("layout") == "in_out";
    const std::vector<Dim> shape = graph_.value(weight).type.shape;
    const Dim in = shape[transposed ? 0 : 1], out = shape[transposed ? 1 : 0], rank = Dim::of(options_.rank);
    const ValueId a = matrix(lora_name(name, 'A'), Type{DType::f32, {rank, in}});
    const ValueId b = matrix(lora_name(name, 'B'), Type{DType::f32, {out, rank}});
    const ValueId y = graph_.node(product).outputs[0];
    ValueId x = graph_.node(product).inputs[0];
    if (options_.dropout > 0) {
      const Attrs drop{{"rate", options_.dropout}, {"tensor", static_cast<int64_t>(hash_text(name) >> 1)}};
      x = append("dropout", {x, hyper()}, drop, block, nodes);
    }
    const Attrs plain{{"layout", "out_in"}, {"bias", int64_t{0}}, {"residual", int64_t{0}}};
    const ValueId t = append("linear", {x, a}, plain, block, nodes);
    const ValueId s = append("scale", {t}, {{"factor", factor_}}, block, nodes);
    // A product that adds the residual stream stays in fp32 under bf16-mixed, and so does the sum with it; others
    // narrow.
    if (graph_.node(product).attrs.integer("residual") != 0) {
      Attrs sum = plain;
      sum.set("residual", int64_t{1});
      replaced_[y] = append("linear", {s, b, y}, sum, block, nodes);
    } else {
      const ValueId u = append("linear", {s, b}, plain, block, nodes);
      replaced_[y] = append("add", {y, u}, {}, block, nodes);
    }
    ++count_;
  }

  ValueId matrix(const std::string& name, const Type& type) {
    const ValueId known = persistent_named(name);
    return known == kNone ? build_.persistent(name, type, Role::parameter) : known;
  }

  ValueId hyper() const {
    const ValueId hyper = persistent_named("hyper");
    HR_CHECK(hyper != kNone, "dropout needs the step's scalars");
    return hyper;
  }

  ValueId persistent_named(std::string_view name) const {
    for (ValueId id = 0; id < static_cast<ValueId>(graph_.values.size()); ++id)
      if (graph_.value(id).persistent && graph_.value(id).name == name) return id;
    return kNone;
  }

  ValueId append(const char* op, std::vector<ValueId> inputs, Attrs attrs, int32_t block, std::vector<NodeId>& nodes) {
    const NodeId node = make_node(graph_, find_op(op), std::move(inputs), std::move(attrs), block, Stage::forward);
    nodes.push_back(node);
    return graph_.node(node).outputs[0];
  }

  void refuse_strangers() const {
    std::set<std::string> parts;
    for (const std::string& module : modules_) parts.insert(last_part(module));
    const std::vector<std::string> names(parts.begin(), parts.end());
    for (const std::string& target : options_.targets) {
      const bool means =
          target == "all-linear" ||
          std::any_of(modules_.begin(), modules_.end(), [&](const std::string& m) { return pattern_means(target, m); });
      if (!means)
        throw Error(
            ErrorKind::usage, fmt::format("--lora-target-modules {} means no linear layer of this model", target),
            fmt::format("there are {}; did you mean '{}'?", fmt::join(names, ", "), nearest_name(target, names)));
    }
  }

  Graph& graph_;
  RegionId region_;
  const LoraOptions& options_;
  Builder build_;
  double factor_ = 1;
  int64_t count_ = 0;
  std::map<ValueId, ValueId> replaced_;
  std::set<std::string> modules_, experts_;
};

}  // namespace

std::string lora_name(std::string_view weight, char which) {
  return fmt::format("{}{}.lora_{}{}", kPrefix, module_of(weight), which, kWeight);
}

bool is_lora_name(std::string_view name) {
  return name.starts_with(kPrefix) && (name.ends_with(".lora_A.weight") || name.ends_with(".lora_B.weight"));
}

int64_t add_lora(Graph& graph, RegionId region, const LoraOptions& options) {
  HR_CHECK(options.rank > 0, "rank {}", options.rank);
  return Adapter(graph, region, options).run();
}

std::vector<ValueId> lora_frozen(const Graph& graph, const LoraOptions& options) {
  std::vector<ValueId> frozen;
  std::set<std::string> saved;
  for (ValueId id = 0; id < static_cast<ValueId>(graph.values.size()); ++id) {
    const Value& value = graph.value(id);
    if (!value.persistent || value.role != Role::parameter || is_lora_name(value.name)) continue;
    bool trained = false;
    for (const std::string& module : options.modules_to_save)
      if (pattern_means(module, value.name)) {
        if (value.name.find('*') != std::string::npos)
          throw Error(ErrorKind::usage,
                      fmt::format("--modules-to-save {} means experts ({}), which an adapter's file cannot hold",
                                  module, value.name),
                      "name modules outside the experts, or train without --lora-r");
        saved.insert(module);
        trained = true;
      }
    if (!trained) frozen.push_back(id);
  }
  for (const std::string& module : options.modules_to_save)
    if (!saved.contains(module))
      throw Error(ErrorKind::usage, fmt::format("--modules-to-save {} means no weight of this model", module),
                  "a part of a weight's name: lm_head, embed_tokens; a tied head is its embedding");
  return frozen;
}

}  // namespace headroom
