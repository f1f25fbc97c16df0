#include "planner/alternatives.h"

#include <optional>

#include "base/error.h"
#include "base/least_bytes.h"
#include "planner/bounds.h"
#include "planner/candidates.h"
#include "planner/search.h"
#include "planner/techniques/micro_batch.h"
#include "planner/techniques/precision.h"

namespace headroom {
namespace {

// The peaks of the candidate with least memory, using as little of tier `scarce` as the other tiers' budgets allow.
TierBytes least_peaks(const PlanRequest& request, Tier scarce) {
  std::optional<TierBytes> least;
  const auto better = [&](const TierBytes& peaks) {
    const bool fitting = fits(peaks, request);
    return !least || fitting > fits(*least, request) ||
           (fitting == fits(*least, request) && peaks.of(scarce) < least->of(scarce));
  };
  Bounder bounder(request);
  for (const CandidateFamily& frugal : frugal_families(request)) {
    const int64_t more = process_bytes_of(request, frugal.candidate);
    for (const Bound& bound : bounder.bounds(frugal.candidate, frugal.places, frugal.chunks))
      if (const TierBytes peaks = tier_peaks(bound.arenas, request, more); better(peaks)) least = peaks;
  }
  return *least;
}

void add_tiers(const PlanRequest& request, std::vector<ChangedRequest>& out) {
  if (!request.facts.is_cpu() && request.host_budget_bytes == 0) {
    PlanRequest hosted = request;
    hosted.host_budget_bytes = INT64_MAX;
    const TierBytes peaks = least_peaks(hosted, Tier::host);
    out.push_back({tier_option(Tier::host, peaks.host), "slower", std::move(hosted)});
  }
  if (request.disk_budget_bytes == 0) {
    PlanRequest on_disk = request;
    on_disk.disk_budget_bytes = INT64_MAX;
    const TierBytes peaks = least_peaks(on_disk, Tier::disk);
    out.push_back({tier_option(Tier::disk, peaks.disk), "slower", std::move(on_disk)});
  }
}

// Whether a pin may be dropped.
bool is_planners(std::string_view name) {
  const Technique* const technique = find_technique(name);
  return technique && is_planners_choice(*technique);
}

// The same training in less memory.
std::vector<ChangedRequest> changes_of_speed(const PlanRequest& request) {
  std::vector<ChangedRequest> out;
  PlanRequest free = request;
  if (std::erase_if(free.techniques, [](const auto& pin) { return is_planners(pin.first); }) > 0)
    out.push_back({"let the planner choose: drop --micro-batch-size and --technique", "", std::move(free)});
  add_tiers(request, out);
  return out;
}

std::vector<ChangedRequest> shorter_sequences(const PlanRequest& request) {
  std::vector<ChangedRequest> out;
  for (int64_t length = request.seq_length / 2; length >= 16; length /= 2) {
    PlanRequest shorter = request;
    shorter.seq_length = length;
    shorter.forward.symbols[static_cast<size_t>(shorter.forward.find_symbol("seq"))].bound = length;
    out.push_back({fmt::format("--max-seq-length {}", length), "longer rows are cut", std::move(shorter)});
  }
  return out;
}

// Turning clipping off needs the user's consent more than any other change.
std::vector<ChangedRequest> without_clipping(const PlanRequest& request) {
  if (!request.clips || scales_loss(request)) return {};
  PlanRequest single = request;
  single.clips = false;
  single.global_batch = 1;
  pin_micro_batch(single.techniques, 0);
  return {
      {"--global-batch-size 1 --max-grad-norm 0", "steps of one sequence, gradients not clipped", std::move(single)}};
}

Alternative measured(const ChangedRequest& change) {
  const TierBytes least = least_peaks(change.request, Tier::device);
  return {change.options, change.effect, least.device, fits(least, change.request)};
}

std::string describe_fix(const Alternative& a) {
  return fmt::format("{}{} would need {}", a.options, a.effect.empty() ? "" : " (" + a.effect + ")",
                     format_least_bytes(a.minimum_bytes));
}

}  // namespace

void find_alternatives(const PlanRequest& request, const std::vector<ChangedRequest>& other_trainings, Plan& plan) {
  const auto add = [&](const Alternative& found) {
    if (found.fits || found.minimum_bytes < plan.minimum_bytes) plan.alternatives.push_back(found);
  };
  for (const ChangedRequest& change : changes_of_speed(request)) add(measured(change));
  for (const ChangedRequest& change : shorter_sequences(request)) {  // the longest that fits
    const Alternative found = measured(change);
    if (!found.fits) continue;
    add(found);
    break;
  }
  for (const ChangedRequest& change : other_trainings) add(measured(change));
  for (const ChangedRequest& change : without_clipping(request)) add(measured(change));
  for (const Alternative& found : plan.alternatives)
    if (found.fits && plan.cheapest_fix.empty()) plan.cheapest_fix = describe_fix(found);
}

}  // namespace headroom
