#include "doctor/remedies/rules.h"

#include <fmt/format.h>

#include <algorithm>

#include "doctor/remedies/figures.h"

namespace headroom::doctor {
namespace {

// Smaller savings are noise of the model.
constexpr int64_t kLeastSaving = int64_t{8} << 20;

double effort_cost(std::string_view effort) {
  if (effort == "flag") return 1;
  if (effort == "config") return 1.5;
  if (effort == "code") return 3;
  if (effort == "install") return 4;
  return 12;
}

// Whether the stage of ZeRO is set in Accelerate's file and not in DeepSpeed's.
bool staged_by_accelerate(const Job& job) {
  const auto stage = job.keys.origins.find("sharding");
  return job.system == System::accelerate && stage != job.keys.origins.end() &&
         stage->second.key.find("zero_stage") != std::string::npos;
}

// Accelerate and the Trainer pass sharding and offload to DeepSpeed if their file says so; FSDP's options would have no
// effect.
System spelling_system(const CaseView& view, std::string_view technique) {
  const Job& job = view.job();
  const bool hands_over =
      job.system == System::accelerate || job.system == System::hf_trainer || job.system == System::trl;
  if (!hands_over || !(view.zero() || job.parallel.deepspeed)) return job.system;
  // Accelerate's file has its own keys for these.
  for (const std::string_view name : {"shard", "shard-more", "offload-optimizer", "offload-parameters"})
    if (technique == name) return staged_by_accelerate(job) ? System::accelerate : System::deepspeed;
  for (const std::string_view name : {"smaller-buckets", "offload-nvme", "no-prefetch", "sharded-save"})
    if (technique == name) return System::deepspeed;
  return job.system;
}

// BAdam, GaLore and similar optimizers have their own switches, which override the optimizer's option.
void drop_overridden_optimizers(const CaseView& view, Findings& findings) {
  const auto own = [&](std::string_view name) { return view.optimizer().find(name) != std::string::npos; };
  if (!own("badam") && !own("galore") && !own("apollo") && !own("adam_mini")) return;
  std::erase_if(findings.remedies, [&](const Remedy& remedy) {
    const bool sets = std::any_of(remedy.changes.begin(), remedy.changes.end(),
                                  [](const auto& change) { return change.first == "optimizer"; });
    if (sets) findings.refuse(remedy.name, "the switch of the job's own optimizer comes before this option");
    return sets;
  });
}

}  // namespace

void Findings::offer(Remedy remedy) {
  if (!remedy.available) {
    refused.push_back({remedy.name, remedy.set, true});
    return;
  }
  if (remedy.saves_bytes && *remedy.saves_bytes < kLeastSaving && !remedy.one_try) {
    if (*remedy.saves_bytes < -kLeastSaving)
      return refuse(remedy.name, fmt::format("would take {} more here", figure(-*remedy.saves_bytes)));
    return refuse(remedy.name, std::string(kNothingSaved));
  }
  remedy.likely_alone = remedy.likely_alone || remedy.fits_alone;
  remedy.cost = cost_of(remedy);
  remedies.push_back(std::move(remedy));
}

void Findings::refuse(std::string_view technique, std::string why) {
  refused.push_back({std::string(technique), std::move(why), false});
}

void Findings::note(std::string text) { notes.push_back(std::move(text)); }

Remedy make_remedy(const CaseView& view, std::string_view name, const Values& values, Changes changes,
                   std::string why) {
  const Technique& facts = technique(name);
  const System system = spelling_system(view, name);
  const bool handed_over = system != view.job().system;
  Style style = changes.empty() ? view.style() : style_of(view.job(), changes.front().first);
  if (handed_over) style = Style::json;
  const Spelt spelt = spell(name, system, style, values);
  Remedy remedy;
  remedy.name = name;
  remedy.row = facts.row;
  remedy.set = spelt.text;
  if (!handed_over) remedy.settings = spelt.settings;  // otherwise they belong in another file than the job's
  remedy.available = spelt.available;
  remedy.slowdown = facts.slowdown;
  remedy.kind = kind_name(facts.arithmetic.kind);
  remedy.effect = facts.effect;
  remedy.effort = facts.effort;
  remedy.needs = needs_in(facts, view.job().system);
  remedy.why = std::move(why);
  if (!changes.empty()) {
    remedy.saves_bytes = view.saving(changes);
    // A job in doubt stays in doubt: a remedy that removes the doubt (a cut to some length) makes it only likely.
    remedy.fits_alone = view.doubt_after({}).empty() && view.fits_after(changes);
    remedy.likely_alone = !view.likely_after({}) && view.likely_after(changes);
    const std::optional<Estimate> after = view.after(changes);
    if (after) remedy.terms_after = after->terms;
    if (after && view.incident().estimate)
      remedy.host_bytes = std::max<int64_t>(0, after->host_likely_bytes - view.incident().estimate->host_likely_bytes);
  }
  remedy.changes = std::move(changes);
  return remedy;
}

double cost_of(const Remedy& remedy) {
  return effort_cost(remedy.effort) + 10 * std::max(0.0, remedy.slowdown - 1) + technique(remedy.name).accuracy_cost +
         remedy.extra_cost;
}

Findings run_rules(const CaseView& view) {
  Findings findings;
  if (view.foreign_framework()) {
    for (const auto group : {framework_rules, host_rules, hardware_rules})
      for (const Rule rule : group()) rule(view, findings);
    return findings;
  }
  for (const auto group :
       {batch_rules, evaluation_rules, precision_rules, checkpointing_rules, optimizer_rules, sharding_rules,
        kernel_rules, adapter_rules, allocator_rules, serving_rules, host_rules, hardware_rules, advice_rules})
    for (const Rule rule : group()) rule(view, findings);
  drop_overridden_optimizers(view, findings);
  return findings;
}

}  // namespace headroom::doctor
