#include "passes/lora.h"

#include <algorithm>
#include <set>

#include "base/counter_random.h"
#include "base/error.h"
#include "base/nearest_name.h"
#include "ir/builder.h"
#include "ir/rewrite.h"
#include "ops/registry.h"
#include "passes/freeze.h"
#include "passes/lora_targets.h"

namespace headroom {
namespace {

constexpr std::string_view kWeight = ".weight";

// Names of experts' weights ("...experts.*.gate_proj.weight").
std::vector<std::string> expert_weights(const Graph& graph) {
  std::vector<std::string> names;
  for (const Value& value : graph.values)
    if (value.persistent && value.role == Role::parameter && !is_lora_name(value.name) && expert_weight(value.name))
      names.push_back(value.name);
  return names;
}

// PEFT matches targets with experts' names only to experts in every layer, so a module with such a name has no adapter.
std::set<std::string> last_parts(const std::vector<std::string>& weights) {
  std::set<std::string> parts;
  for (const std::string& weight : weights) parts.emplace(last_part(module_of(weight)));
  return parts;
}

bool targeted(const std::string& module, const LoraOptions& options) {
  return std::any_of(options.targets.begin(), options.targets.end(),
                     [&](const std::string& target) { return target_means(target, module); });
}

bool trained_whole(const std::string& module, const LoraOptions& options) {
  return std::any_of(options.modules_to_save.begin(), options.modules_to_save.end(),
                     [&](const std::string& saved) { return pattern_means(saved, module); });
}

class Adapter {
 public:
  Adapter(Graph& graph, RegionId region, const LoraOptions& options, RowLengthsIn lengths)
      : graph_(graph),
        region_(region),
        options_(options),
        lengths_(lengths),
        build_(graph, region, find_op),
        factor_(adapter_factor(options.alpha, options.rank, options.rank_stabilised)),
        expert_weights_(expert_weights(graph)),
        expert_parts_(last_parts(expert_weights_)),
        routers_(router_logits(graph, region)),
        experts_(expert_weights_, options) {}

  int64_t run() {
    std::vector<NodeId> rewritten;
    for (NodeId id : std::vector<NodeId>(graph_.region(region_).nodes)) {
      for (ValueId& input : graph_.node(id).inputs)
        if (const auto at = replaced_.find(input); at != replaced_.end()) input = at->second;
      rewritten.push_back(id);
      if (const ValueId weight = product_weight(graph_, graph_.node(id)); weight != kNone) adapt(id, weight, rewritten);
    }
    for (ValueId& result : graph_.region(region_).results)
      if (const auto at = replaced_.find(result); at != replaced_.end()) result = at->second;
    graph_.region(region_).nodes = std::move(rewritten);
    refuse_strangers();
    return count_;
  }

 private:
  void adapt(NodeId product, ValueId weight, std::vector<NodeId>& nodes) {
    const std::string name = graph_.value(weight).name, module = module_of(name);
    if (const std::optional<ExpertWeight> expert = expert_weight(name)) {
      if (experts_.of(*expert).rank > 0) extend_experts(product, weight, *expert, nodes);
      return;
    }
    if (expert_parts_.contains(std::string(last_part(module)))) return;
    // The head's logits name their dtype as well.
    const bool router = routers_.contains(result_of(graph_.node(product)));
    if (graph_.node(product).attrs.has("dtype") && !router) return;
    modules_.insert(module);
    if (!targeted(module, options_) || trained_whole(module, options_)) return;
    check_decomposed(module, graph_.node(product).attrs.text("layout") == "in_out", router);
    if (router) refuse_dropout(module);
    extend(product, weight, nodes);
  }

  void extend(NodeId product, ValueId weight, std::vector<NodeId>& nodes) {
    ++count_;
    const std::string name = graph_.value(weight).name;
    const int32_t block = graph_.node(product).block;
    const bool transposed = graph_.node(product).attrs.text("layout") == "in_out";
    const std::vector<Dim> shape = graph_.value(weight).type.shape;
    const Dim in = shape[transposed ? 0 : 1], out = shape[transposed ? 1 : 0], rank = Dim::of(options_.rank);
    const ValueId a = matrix(lora_name(name, 'A'), Type{DType::f32, {rank, in}});
    const ValueId b = matrix(lora_name(name, 'B'), Type{DType::f32, {out, rank}});
    const ValueId y = result_of(graph_.node(product));
    ValueId x = operand(graph_.node(product), "x");
    if (options_.dropout > 0) {
      const Attrs drop{{"rate", options_.dropout}, {"tensor", static_cast<int64_t>(hash_text(name) >> 1)}};
      x = append("dropout", {x, hyper()}, drop, block, nodes);
    }
    const Attrs plain{{"layout", "out_in"}, {"bias", int64_t{0}}, {"residual", int64_t{0}}};
    const ValueId t = append("linear", {x, a}, plain, block, nodes);
    const ValueId s = append("scale", {t}, {{"factor", factor_}}, block, nodes);
    if (options_.decomposed) return decompose(product, {weight, a, b, factor_}, s, nodes);
    // A product that adds the residual stream stays in fp32 under bf16-mixed, and so does the sum with it; others
    // narrow.
    if (graph_.node(product).attrs.integer("residual") != 0) {
      Attrs sum = plain;
      sum.set("residual", int64_t{1});
      replaced_[y] = append("linear", {s, b, y}, sum, block, nodes);
    } else {
      Attrs beside = plain;
      if (const std::string_view dtype = graph_.node(product).attrs.text("dtype"); !dtype.empty())
        beside.set("dtype", std::string(dtype));
      const ValueId u = append("linear", {s, b}, beside, block, nodes);
      replaced_[y] = append("add", {y, u}, {}, block, nodes);
    }
  }

  // The magnitude scales the product alone: what the product adds is added after it.
  void decompose(NodeId product, const AdaptedWeight& adapted, ValueId s, std::vector<NodeId>& nodes) {
    const std::string name = graph_.value(adapted.weight).name;
    const int32_t block = graph_.node(product).block;
    const ValueId bias = operand(graph_.node(product), "bias"), residual = operand(graph_.node(product), "residual");
    const Dim out = graph_.value(adapted.weight).type.shape[0];
    const Attrs plain{{"layout", "out_in"}, {"bias", int64_t{0}}, {"residual", int64_t{0}}};
    graph_.node(product).inputs = {operand(graph_.node(product), "x"), adapted.weight};
    graph_.node(product).attrs = plain;
    const ValueId magnitude = matrix(magnitude_name(name), Type{DType::f32, {out}});
    const ValueId y = result_of(graph_.node(product));
    const ValueId u = append("linear", {s, adapted.b}, plain, block, nodes);
    const ValueId z = append("add", {y, u}, {}, block, nodes);
    const ValueId lengths =
        lengths_ == RowLengthsIn::load
            ? lengths_from_load(graph_, adapted)
            : append("row_lengths", {adapted.weight, adapted.a, adapted.b}, {{"factor", adapted.factor}}, block, nodes);
    std::vector<ValueId> inputs{z, magnitude, lengths};
    if (bias != kNone) inputs.push_back(bias);
    if (residual != kNone) inputs.push_back(residual);
    const Attrs adds{{"bias", int64_t{bias != kNone}}, {"residual", int64_t{residual != kNone}}};
    replaced_[y] = append("magnitude", std::move(inputs), adds, block, nodes);
  }

  // Why a targeted product cannot be decomposed.
  void check_decomposed(const std::string& module, bool transposed, bool router) const {
    if (!options_.decomposed) return;
    if (router)
      refuse_magnitude(module, "a router",
                       "target attention alone (--lora-target-modules q_proj k_proj v_proj o_proj), or leave DoRA out");
    if (transposed) refuse_magnitude(module, "its matrix is stored [in, out]", "train LoRA without --use-dora");
    if (options_.dropout > 0)
      refuse_magnitude(
          module,
          fmt::format("dropout {} would need the layer's product again, of the dropped input", options_.dropout),
          "leave out --lora-dropout; of an adapter that is trained further, set lora_dropout to 0 in its "
          "adapter_config.json");
  }

  void extend_experts(NodeId product, ValueId weight, const ExpertWeight& expert, std::vector<NodeId>& nodes) {
    refuse_dropout(module_of(graph_.value(weight).name));
    if (options_.decomposed)
      refuse_magnitude(module_of(graph_.value(weight).name), "experts, for which PEFT has none either",
                       "target attention alone (--lora-target-modules q_proj k_proj v_proj o_proj), or leave DoRA out");
    const ExpertTargets::Scale scale = experts_.of(expert);
    const int32_t block = graph_.node(product).block;
    const std::vector<Dim> shape = graph_.value(weight).type.shape;
    const Dim rank = Dim::of(scale.rank);
    const ValueId x = operand(graph_.node(product), "x"), offsets = operand(graph_.node(product), "offsets");
    const ValueId b = matrix(expert_lora_b(expert), Type{DType::f32, {shape[0], shape[1], rank}});
    ValueId& s = shared_.try_emplace(expert.parameter(), kNone).first->second;
    if (s == kNone) {
      const ValueId a = matrix(expert_lora_a(expert), Type{DType::f32, {shape[0], rank, shape[2]}});
      const ValueId t = append("expert_linear", {x, a, offsets}, {}, block, nodes);
      s = append("scale", {t}, {{"factor", scale.factor}}, block, nodes);
    }
    const ValueId y = result_of(graph_.node(product));
    replaced_[y] = append("expert_linear", {s, b, offsets, y}, {{"addend", int64_t{1}}}, block, nodes);
    ++count_;
  }

  void refuse_dropout(const std::string& module) const {
    if (options_.dropout > 0)
      throw Error(ErrorKind::usage, fmt::format("--lora-dropout {} before {}", options_.dropout, module),
                  "adapters of experts and routers take no dropout, as in PEFT: target attention alone "
                  "(--lora-target-modules q_proj k_proj v_proj o_proj)");
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
    return result_of(graph_.node(node));
  }

  void refuse_strangers() const {
    std::set<std::string> parts;
    for (const std::string& module : modules_) parts.emplace(last_part(module));
    parts.insert(expert_parts_.begin(), expert_parts_.end());
    if (!expert_parts_.empty()) parts.insert("gate_up_proj");
    const std::vector<std::string> names(parts.begin(), parts.end());
    for (const std::string& target : options_.targets) {
      const bool known = experts_.means(target) || std::any_of(modules_.begin(), modules_.end(),
                                                               [&](const auto& m) { return target_means(target, m); });
      if (!known) refuse_stranger(target, names);
    }
  }

  // `names`: the last parts of modules that can have an adapter.
  [[noreturn]] void refuse_stranger(const std::string& target, const std::vector<std::string>& names) const {
    if (const std::string apart = pattern_without_commas("--lora-target-modules", target, " "); !apart.empty())
      throw Error(ErrorKind::usage, fmt::format("--lora-target-modules {} is not a name", target), apart);
    if (const std::string* weight = weight_without_adapter(target))
      throw Error(
          ErrorKind::usage,
          fmt::format("--lora-target-modules {} matches {}, which cannot have an adapter", target, *weight),
          fmt::format("adapters are for {}; --modules-to-save {} trains it in full", fmt::join(names, ", "), target));
    const std::string nearest = nearest_name(target, names);
    const bool misspelt = edit_distance(target, nearest) <= target.size() / 2;
    throw Error(
        ErrorKind::usage, fmt::format("--lora-target-modules {} matches no linear layer of this model", target),
        fmt::format("there are {}{}; head and embeddings cannot have an adapter: --modules-to-save trains them in full",
                    fmt::join(names, ", "), misspelt ? fmt::format("; did you mean '{}'?", nearest) : ""));
  }

  const std::string* weight_without_adapter(const std::string& target) const {
    for (const Value& value : graph_.values)
      if (value.persistent && value.role == Role::parameter && !is_lora_name(value.name) &&
          !expert_weight(value.name) && target_means(target, value.name))
        return &value.name;
    return nullptr;
  }

  Graph& graph_;
  RegionId region_;
  const LoraOptions& options_;
  RowLengthsIn lengths_;
  Builder build_;
  double factor_;
  std::vector<std::string> expert_weights_;
  std::set<std::string> expert_parts_;
  std::set<ValueId> routers_;
  ExpertTargets experts_;
  int64_t count_ = 0;
  std::map<ValueId, ValueId> replaced_;
  std::map<std::string, ValueId> shared_;  // the input that products with an experts' parameter share, by its name
  std::set<std::string> modules_;
};

}  // namespace

std::string lora_name(std::string_view weight, char which) {
  return fmt::format("{}{}.lora_{}{}", kAdapterPrefix, transformers_name(module_of(weight)), which, kWeight);
}

bool is_lora_name(std::string_view name) {
  return is_magnitude_name(name) ||
         (name.starts_with(kAdapterPrefix) && (name.ends_with(".lora_A.weight") || name.ends_with(".lora_B.weight")));
}

int64_t add_lora(Graph& graph, RegionId region, const LoraOptions& options, RowLengthsIn lengths) {
  HR_CHECK(options.rank > 0, "rank {}", options.rank);
  return Adapter(graph, region, options, lengths).run();
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
                      fmt::format("--modules-to-save {} matches experts ({}), which an adapter's file cannot hold",
                                  module, value.name),
                      "name modules outside the experts, or train without --lora-r");
        saved.insert(module);
        trained = true;
      }
    if (!trained) frozen.push_back(id);
  }
  for (const std::string& module : options.modules_to_save) {
    if (saved.contains(module)) continue;
    const std::string apart = pattern_without_commas("--modules-to-save", module, " ");
    throw Error(
        ErrorKind::usage, fmt::format("--modules-to-save {} matches no weight of this model", module),
        apart.empty() ? "a part of a weight's name: lm_head or embed_tokens; a tied head is its embedding" : apart);
  }
  return frozen;
}

}  // namespace headroom
