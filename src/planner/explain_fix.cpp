// What would make a plan fit that does not.
#include <optional>

#include "base/error.h"
#include "base/least_bytes.h"
#include "planner/candidates.h"
#include "planner/explain.h"
#include "planner/offload_choices.h"

namespace headroom {
namespace {

// The peaks of the candidate of least memory, with as little as the other tiers' budgets allow in `scarce`.
TierBytes least_peaks(const PlanRequest& request, Tier scarce) {
  const Candidate frugal = most_frugal(request);
  std::optional<TierBytes> least;
  const auto better = [&](const TierBytes& peaks) {
    const bool fitting = fits(peaks, request);
    return !least || fitting > fits(*least, request) ||
           (fitting == fits(*least, request) && peaks.of(scarce) < least->of(scarce));
  };
  for (const Bound& bound :
       Bounder(request).bounds(frugal, tier_choices(request, frugal.offload), {&frugal.loss_chunk, 1}))
    if (const TierBytes peaks = tier_peaks(bound.arenas, request); better(peaks)) least = peaks;
  return *least;
}

// A changed request and the options that change it, from least to most drastic.
struct Change {
  std::string options;
  PlanRequest request;
};

std::vector<Change> changes(const PlanRequest& request) {
  std::vector<Change> out;
  if (request.micro_batch > 0 || request.loss_chunk >= 0 || !request.techniques.empty()) {
    PlanRequest free = request;
    free.micro_batch = 0;
    free.loss_chunk = -1;
    free.techniques.clear();
    out.push_back({"let the planner choose: drop --micro-batch-size and --technique", std::move(free)});
  }
  if (request.clips) {
    PlanRequest single = request;
    single.clips = false;
    single.global_batch = 1;
    single.micro_batch = 0;
    out.push_back({"--global-batch-size 1 --max-grad-norm 0 (updates inside the backward pass)", std::move(single)});
  }
  if (request.facts.device != "cpu" && request.host_budget_bytes == 0) {
    PlanRequest hosted = request;
    hosted.host_budget_bytes = INT64_MAX;
    const TierBytes peaks = least_peaks(hosted, Tier::host);
    out.push_back({tier_option(Tier::host, peaks.host), std::move(hosted)});
  }
  if (request.disk_budget_bytes == 0) {
    PlanRequest on_disk = request;
    on_disk.disk_budget_bytes = INT64_MAX;
    const TierBytes peaks = least_peaks(on_disk, Tier::disk);
    out.push_back({tier_option(Tier::disk, peaks.disk), std::move(on_disk)});
  }
  for (int64_t length = request.seq_length / 2; length >= 16; length /= 2) {
    PlanRequest shorter = request;
    shorter.seq_length = length;
    shorter.forward.symbols[static_cast<size_t>(shorter.forward.find_symbol("seq"))].bound = length;
    out.push_back({fmt::format("--max-seq-length {}", length), std::move(shorter)});
  }
  return out;
}

}  // namespace

std::string find_cheapest_fix(const PlanRequest& request) {
  for (const Change& change : changes(request)) {
    const TierBytes least = least_peaks(change.request, Tier::device);
    if (fits(least, change.request))
      return fmt::format("{} would need {}", change.options, format_least_bytes(least.device));
  }
  return {};
}

}  // namespace headroom
