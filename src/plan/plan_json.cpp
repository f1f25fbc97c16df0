#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "plan/plan.h"

namespace headroom {

namespace {

using Json = nlohmann::ordered_json;

Json breakdown_json(const Breakdown& b) {
  return {{"weights", b.weights},         {"gradients", b.gradients}, {"optimizer", b.optimizer},
          {"activations", b.activations}, {"workspace", b.workspace}, {"data", b.data},
          {"alignment", b.alignment}};
}

Json process_json(const ProcessBytes& c) {
  return {{"code", c.code},       {"tokenizer", c.tokenizer},
          {"grammar", c.grammar}, {"server", c.server},
          {"data", c.data},       {"kernels", c.kernels},
          {"planner", c.planner}, {"page_tables", c.page_tables},
          {"copies", c.copies},   {"gpu", c.gpu},
          {"graphs", c.graphs},   {"caller", c.caller}};
}

Json tiers_json(const Plan& plan) {
  const auto figures = [&](Tier tier) -> Json {
    const TierFigures of = tier_figures(plan, tier);
    return {{"budget_bytes", of.budget_bytes}, {"peak_bytes", of.peak_bytes}};
  };
  return {{"host", figures(Tier::host)}, {"device", figures(Tier::device)}, {"disk", figures(Tier::disk)}};
}

Json tensors_json(const Plan& plan) {
  Json out = Json::array();
  for (const TensorGroup& group : plan.peak_tensors)
    out.push_back({{"name", group.name},
                   {"class", memory_class_name(group.kind)},
                   {"count", group.count},
                   {"bytes", group.bytes}});
  return out;
}

// For the memory of the plan's own figures: on a GPU only the bare context exists while the data is prepared.
int64_t prepare_peak(const Plan& plan) { return plan.facts.is_cpu() ? plan.prepare.most : plan.process.total(); }

}  // namespace

std::string plan_json(const Plan& plan) {
  const int64_t shortfall = plan.feasible ? 0 : plan.minimum_bytes - plan.budget_bytes;
  Json out{{"feasible", plan.feasible},
           {"budget_bytes", plan.budget_bytes},
           {"peak_bytes", plan.peak_bytes},
           {"minimum_bytes", plan.minimum_bytes},
           {"shortfall_bytes", shortfall},
           {"arena_bytes", plan.arena_bytes},
           {"lower_bound_bytes", plan.lower_bound_bytes},
           {"process_bytes", plan.process.total()}};
  out["tiers"] = tiers_json(plan);
  out["phases"] = Json::array();
  if (plan.feasible && plan.prepare.most > 0)
    out["phases"].push_back({{"name", "prepare"}, {"peak_bytes", prepare_peak(plan)}});
  for (const PlanProgram& program : plan.programs)
    if (program.name.find('@') == std::string::npos)
      out["phases"].push_back({{"name", program.name}, {"peak_bytes", program.peaks.device + plan.process.total()}});
  out["breakdown"] = breakdown_json(plan.breakdown);
  for (const Tier tier : kLowerTiers) {
    const TierPlan& below = plan.below(tier);
    if (below.arena_bytes == 0) continue;
    out[fmt::format("{}_arena_bytes", tier_name(tier))] = below.arena_bytes;
    out[fmt::format("{}_breakdown", tier_name(tier))] = breakdown_json(below.breakdown);
  }
  out["process"] = process_json(plan.process);
  if (plan.host_process.total() > 0) out["host_process"] = process_json(plan.host_process);
  out["techniques"] = Json::array();
  for (const TechniqueReport& t : plan.techniques)
    out["techniques"].push_back({{"name", t.name},
                                 {"kind", t.kind},
                                 {"value", t.value},
                                 {"saves_bytes", t.saves_bytes},
                                 {"costs_seconds", t.costs_seconds},
                                 {"why", t.why}});
  out["micro_batch_size"] = plan.choices.micro_batch;
  out["gradient_accumulation_steps"] = plan.choices.accumulation;
  out["max_seq_length"] = plan.choices.seq_length;
  out["length_buckets"] = plan.choices.buckets;
  for (const auto& [name, value] : plan.choices.others)
    std::visit([&out, &key = name](const auto& chosen) { out[key] = chosen; }, value);
  out["predicted_step_seconds"] = plan.step_seconds;
  out["parameters"] = plan.parameters;
  out["model"] = plan.model;
  out["profile"] = plan.profile;
  out["threads"] = plan.facts.threads;
  out["tensors"] = tensors_json(plan);
  if (plan.feasible) return out.dump(1) + "\n";
  out["remedy"] = plan.cheapest_fix;
  out["alternatives"] = Json::array();
  for (const Alternative& a : plan.alternatives)
    out["alternatives"].push_back(
        {{"options", a.options}, {"effect", a.effect}, {"minimum_bytes", a.minimum_bytes}, {"fits", a.fits}});
  return out.dump(1) + "\n";
}

}  // namespace headroom
