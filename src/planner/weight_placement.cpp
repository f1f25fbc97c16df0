#include "planner/weight_placement.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/bytes.h"
#include "base/error.h"
#include "cost/stream_timeline.h"
#include "memory/arenas.h"
#include "passes/prefetch.h"
#include "planner/emit.h"
#include "planner/pipeline.h"
#include "planner/search.h"
#include "planner/techniques/offload.h"
#include "planner/techniques/precision.h"

namespace headroom {
namespace {

constexpr int64_t kDepths[] = {0, 1, 2, 4};

Arenas assign(const PlanRequest& request, const Liveness& liveness, bool searched) {
  AssignmentOptions options;
  options.alignment = request.facts.alignment;
  if (searched) options.exact_nodes = 0;  // many are tried: greedy orders are within 0.3 % of the bound
  return assign_arenas(liveness, options);
}

Liveness liveness_of(const PlanRequest& request, const Graph& graph) {
  return analyze_liveness(graph, graph.bounds(), request.facts);
}

double seconds_of(const PlanRequest& request, const Graph& graph, const ProgramRuns& work) {
  return static_cast<double>(work.runs) *
         predict_program(graph, graph.find_program(work.program), graph.bounds(), work.trips, request.profile);
}

Plan describe(const PlanRequest& request, const Variant& variant) {
  Plan plan;
  plan.model = request.model;
  plan.parameters = request.parameters;
  plan.budget_bytes = request.budget_bytes;
  plan.profile = request.profile.identity();
  plan.facts = request.facts;
  plan.process = request.process;
  plan.choices.seq_length = request.seq_length;
  plan.choices.micro_batch = variant.micro_batch;
  plan.choices.set("precision", precision_of(request));
  plan.choices.set("loss_chunk_rows", variant.loss_chunk);
  return plan;
}

// Assigns offsets to a variant and emits it; feasible if it fits.
Plan lay_out_by(const PlanRequest& request, const Variant& variant, const std::string& timed, bool searched) {
  Plan plan = describe(request, variant);
  const Liveness liveness = liveness_of(request, variant.graph);
  emit_programs(variant.graph, variant.graph.bounds(), liveness, assign(request, liveness, searched), request, plan);
  set_peaks(request, plan);
  plan.minimum_bytes = plan.peak_bytes;
  plan.step_seconds = seconds_of(request, variant.graph, {timed, 1, 1});
  return plan;
}

// The settings that pins allow, and what each needs.
class PlacementChoices {
 public:
  struct Choice {
    Placement at;
    TierBytes peaks;
  };

  explicit PlacementChoices(const PlanRequest& request) : request_(request) {
    check_untrained_pins(request);
    if (const std::optional<int64_t> pinned = pinned_prefetch(request)) depths_ = {*pinned};
    if (const std::optional<OffloadPin> pinned = offload_pin(request, kOffloadParameters.name)) weights_ = *pinned;
    if (!weights_ || !weights_->off) tiers_ = allowed_tiers(request, kOffloadParameters.name);
  }

  const std::vector<Tier>& tiers() const { return tiers_; }  // for the weights
  const std::vector<int64_t>& depths() const { return depths_; }
  bool may_stay() const { return !weights_ || weights_->off; }

  // Every useful setting of layers, ascending in bytes.
  std::vector<int64_t> settings(const Variant& variant) const {
    const int64_t layers = block_count(variant.graph);
    if (weights_) return {weights_->layers > 0 ? std::min(weights_->layers, layers) : kEveryLayer};
    std::vector<int64_t> all;
    for (int64_t i = 1; i <= layers; ++i) all.push_back(i);
    all.push_back(kEveryLayer);
    return all;
  }

  // The bytes that the budgets must hold; lower bounds are enough if they are above the device's.
  TierBytes peaks_of(const Graph& graph, bool bounds_will_do) const {
    const Liveness liveness = liveness_of(request_, graph);
    const TierBytes bounds = tier_peaks(lower_bounds(liveness, request_.facts.alignment), request_);
    if (bounds_will_do && bounds.device > request_.budget_bytes) return bounds;
    return tier_peaks(assign(request_, liveness, true).peaks, request_);
  }

  // The placement that needs least of the device within the other tiers' budgets: all layers, or all weights, whose
  // windows for large ones may need more; else as many layers as those budgets hold. The least of the device if they
  // hold none.
  Choice least(const Variant& variant, Tier tier, int64_t depth) const {
    const std::vector<int64_t> all = settings(variant);
    const auto at = [&](size_t index) {
      const Placement placement{tier, all[index], depth};
      return Choice{placement, peaks_of(placed(variant, placement), false)};
    };
    Choice out = at(all.size() - 1);
    if (all.size() == 1) return out;
    if (const Choice layers = at(all.size() - 2); !others_fit(out.peaks) || layers.peaks.device < out.peaks.device)
      out = layers;
    if (others_fit(out.peaks)) return out;
    std::optional<Choice> found;
    for (size_t low = 0, high = all.size() - 2; low < high;) {
      const size_t middle = (low + high) / 2;
      const Choice choice = at(middle);
      if (others_fit(choice.peaks))
        found = choice, low = middle + 1;
      else
        high = middle;
    }
    return found.value_or(out);
  }

  // Whether the budgets of all tiers except the device's hold it.
  bool others_fit(TierBytes peaks) const {
    peaks.device = 0;
    return fits(peaks, request_);
  }

  // The fewest layers below the device with which the rest fits the device. More layers never need more of it, except
  // for the last setting.
  std::optional<Choice> fewest(const Variant& variant, Tier tier, int64_t depth) const {
    const std::vector<int64_t> choices = settings(variant);
    std::optional<Choice> found;
    const auto fits_at = [&](size_t index) {
      const Placement at{tier, choices[index], depth};
      const TierBytes peaks = peaks_of(placed(variant, at), true);
      const bool holds = peaks.device <= request_.budget_bytes;
      if (holds) found = {at, peaks};
      return holds;
    };
    if (choices.empty()) return {};
    size_t low = 0, high = choices.size() - 1;
    if (high == 0 || !fits_at(--high)) {
      fits_at(choices.size() - 1);
      return found;
    }
    while (low < high) {
      const size_t middle = (low + high) / 2;
      fits_at(middle) ? high = middle : low = middle + 1;
    }
    return found;
  }

  // Over all tiers and depths the fewest layers that fit all tiers; of these the fastest for the work.
  std::optional<Placement> fastest(const Variant& variant, double& seconds) const {
    std::optional<Placement> best;
    for (const Tier tier : tiers_)
      for (const int64_t depth : depths_) {
        const std::optional<Choice> choice = fewest(variant, tier, depth);
        if (!choice || !fits(choice->peaks, request_)) continue;
        const Graph graph = placed(variant, choice->at);
        double needed = 0;
        for (const ProgramRuns& work : variant.work) needed += seconds_of(request_, graph, work);
        if (best && needed >= seconds) continue;
        best = choice->at;
        seconds = needed;
      }
    return best;
  }

 private:
  const PlanRequest& request_;
  std::optional<OffloadPin> weights_;
  std::vector<Tier> tiers_;
  std::vector<int64_t> depths_{std::begin(kDepths), std::end(kDepths)};
};

void report(const PlanRequest& request, const Placement& at, int64_t resident, double seconds, Plan& plan) {
  const auto add = [&](const PassInfo& info, std::string value, int64_t saves, double costs, std::string why) {
    const bool taken = value != "off";
    if (const std::string text = pin(request, info.name); !text.empty())
      why = fmt::format("pinned by --technique {}={}", info.name, text);
    plan.techniques.push_back({std::string(info.name), std::string(kind_name(info.kind)), std::move(value), saves,
                               costs, std::move(why), taken});
  };
  add(kOffloadParameters, tier_setting(at.tier, at.layers), resident - plan.arena_bytes, plan.step_seconds - seconds,
      "compared with keeping them on the device");
  add(kPrefetch, at.depth > 0 ? std::to_string(at.depth) : "off", 0, 0, "how many windows early copies start");
}

class WeightPlacer {
 public:
  WeightPlacer(const PlanRequest& request, size_t count, const Variants& variant, const std::string& timed)
      : request_(request), count_(count), variant_(variant), timed_(timed), choices_(request) {}

  // All weights on the device; the least that takes, if nothing fits.
  std::optional<Plan> stay() {
    for (size_t i = 0; i < count_ && choices_.may_stay(); ++i) {
      Plan plan = lay_out_by(request_, variant_(i, true), timed_, false);
      least_ = std::min(least_, plan.minimum_bytes);
      if (plan.feasible) return plan;
    }
    return {};
  }

  // Weights in lower tiers; feasible if that fits. `least` is known to work otherwise.
  Plan move(int64_t least) {
    least_ = std::min(least_, least);
    for (size_t i = 0; i < count_; ++i) consider(i);
    find_least();
    Plan plan = best_ ? lay_out(request_, variant_(best_->variant, true), best_->at, timed_) : refusal();
    plan.minimum_bytes = least_;
    return plan;
  }

  // For the last variant.
  int64_t least() {
    find_least();
    return least_;
  }

  Plan run() {
    std::optional<Plan> plan = stay();
    return plan ? std::move(*plan) : move(INT64_MAX);
  }

 private:
  struct Best {
    size_t variant = 0;
    Placement at;
    double seconds = 0;
  };

  void consider(size_t which) {
    if (choices_.tiers().empty()) return;
    double seconds = 0;
    const std::optional<Placement> at = choices_.fastest(variant_(which, false), seconds);
    if (at && (!best_ || seconds < best_->seconds)) best_ = {which, *at, seconds};
  }

  // The least of the device within the other budgets; for each lower tier the least within the device's budget, or what
  // that least needs there.
  void find_least() {
    const Variant variant = variant_(count_ - 1, false);
    const int64_t depth = choices_.depths().front();
    for (const Tier tier : choices_.tiers()) {
      const PlacementChoices::Choice roomiest = choices_.least(variant, tier, depth);
      least_below_.of(tier) = roomiest.peaks.of(tier);
      if (choices_.others_fit(roomiest.peaks)) least_ = std::min(least_, roomiest.peaks.device);
      if (const auto beside = choices_.fewest(variant, tier, depth)) least_below_.of(tier) = beside->peaks.of(tier);
    }
  }

  Plan refusal() const {
    Plan plan = describe(request_, variant_(count_ - 1, false));
    plan.peak_bytes = least_;
    for (const Tier tier : choices_.tiers())
      plan.below(tier).budget_bytes = request_.budgets().of(tier), plan.below(tier).peak_bytes = least_below_.of(tier);
    return plan;
  }

  const PlanRequest& request_;
  size_t count_;
  const Variants& variant_;
  const std::string& timed_;
  const PlacementChoices choices_;
  std::optional<Best> best_;
  int64_t least_ = INT64_MAX;
  TierBytes least_below_;
};

}  // namespace

std::string way_below(const PlanRequest& request, size_t count, const Variants& variant, const std::string& timed,
                      int64_t known) {
  std::string least;
  if (pin(request, kOffloadParameters.name) == "off") return least;
  for (const Tier tier : kLowerTiers) {
    if (request.budgets().of(tier) > 0 || (tier == Tier::host && request.facts.is_cpu())) continue;
    PlanRequest with = request;
    (tier == Tier::host ? with.host_budget_bytes : with.disk_budget_bytes) = INT64_MAX;
    const Plan plan = WeightPlacer(with, count, variant, timed).move(known);
    const std::string option = tier_option(tier, plan.below(tier).peak_bytes);
    if (plan.feasible) return fmt::format("{} would need {}", option, format_bytes(plan.peak_bytes));
    least = fmt::format("--memory {} with {}", plan.minimum_bytes, option);
  }
  return least;
}

int64_t least_below(const PlanRequest& request, const Variant& variant) {
  const auto each = [&](size_t, bool) { return variant; };
  return WeightPlacer(request, 1, each, {}).least();
}

Graph placed(const Variant& variant, const Placement& at, bool verify) {
  Graph graph = variant.graph;
  if (at.layers > 0)
    run_pass(kOffloadParameters, graph, verify, nullptr,
             [&](Graph& g) { offload_parameters(g, at.tier, at.layers, at.depth); });
  return graph;
}

Plan place_weights(const PlanRequest& request, size_t count, const Variants& variant, const std::string& timed) {
  Plan plan = WeightPlacer(request, count, variant, timed).run();
  if (plan.feasible) return plan;
  plan.cheapest_fix = way_below(request, count, variant, timed, plan.minimum_bytes);
  if (plan.cheapest_fix.empty()) plan.cheapest_fix = "a shorter sequence";
  return plan;
}

namespace {

// "quantize-weights, qat and prefetch"
std::string inference_technique_names() {
  const std::vector<const PassInfo*> infos = inference_passes();
  std::string names;
  for (size_t i = 0; i < infos.size(); ++i)
    names += std::string(i == 0 ? "" : i + 1 < infos.size() ? ", " : " and ") + std::string(infos[i]->name);
  return names;
}

}  // namespace

void check_untrained_pins(const PlanRequest& request) {
  for (const auto& [name, pin] : request.techniques) {
    if (!pin.why.empty()) continue;
    const Technique* const technique = find_technique(name);
    if (!technique || !technique->for_inference)
      throw Error(ErrorKind::usage, fmt::format("--technique {} does not apply to a model that is not trained", name),
                  inference_technique_names() + " are");
    technique->check(request, pin.setting);
  }
}

TierBytes arenas_of(const PlanRequest& request, const Graph& graph, bool below) {
  return assign(request, liveness_of(request, graph), below).peaks;
}

std::vector<Placement> roomy_placements(const PlanRequest& request, const Variant& variant) {
  const PlacementChoices choices(request);
  std::vector<Placement> out;
  for (const Tier tier : choices.tiers())
    for (const int64_t depth : std::span(choices.depths()).first(std::min<size_t>(choices.depths().size(), 2)))
      out.push_back(choices.least(variant, tier, depth).at);
  return out;
}

std::optional<Placement> fastest_placement(const PlanRequest& request, const Variant& variant, double& seconds) {
  return PlacementChoices(request).fastest(variant, seconds);
}

Plan lay_out(const PlanRequest& request, const Variant& variant, const std::string& timed) {
  return lay_out_by(request, variant, timed, false);
}

Plan lay_out(const PlanRequest& request, const Variant& variant, const Placement& at, const std::string& timed) {
  const TierBytes resident = assign(request, liveness_of(request, variant.graph), true).peaks;
  const double seconds = seconds_of(request, variant.graph, {timed, 1, 1});
  Variant moved = variant;
  moved.graph = placed(variant, at, true);
  Plan plan = lay_out_by(request, moved, timed, true);
  report(request, at, resident.device, seconds, plan);
  return plan;
}

std::string describe_placement(const Plan& plan) {
  int64_t bytes = 0;
  for (const Tier tier : kLowerTiers) bytes += plan.below(tier).breakdown.weights;
  if (bytes == 0) return {};
  std::string text;
  for (const TechniqueReport& technique : plan.techniques)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", technique.name, technique.value);
  return fmt::format("{}: {} of weights", text, format_bytes(bytes));
}

}  // namespace headroom
