// What would make a plan fit that does not.
#include "base/bytes.h"
#include "base/error.h"
#include "planner/candidates.h"
#include "planner/explain.h"

namespace headroom {
namespace {

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
    const int64_t least = process_peak(Bounder(change.request).bound(most_frugal(change.request)).arena_bytes,
                                       change.request.process, change.request.facts);
    if (least <= request.budget_bytes) return fmt::format("{} would need {}", change.options, format_bytes(least));
  }
  return {};
}

}  // namespace headroom
