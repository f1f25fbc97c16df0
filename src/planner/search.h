// Chooses the fastest plan that fits.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "memory/arenas.h"
#include "planner/pipeline.h"
#include "planner/request.h"

namespace headroom {

// A candidate with its arena (lower bound until offsets are assigned) and predicted time.
struct FrontierPoint {
  Candidate candidate;
  TierBytes peaks;        // of each tier while there are arenas (run_peaks), which are compared
  bool assigned = false;  // `peaks` are those of a checked offset assignment, else lower bounds
  double step_seconds = 0;
};

struct SearchResult {
  Plan plan;                            // of the chosen candidate; without programs if nothing fits
  std::vector<FrontierPoint> frontier;  // no other candidate is both smaller and faster; ascending in bytes
  std::vector<PassTrace> trace;         // of the chosen candidate's passes
};

// Enumerates candidates (independent of the budgets, except for which lower tiers have one), bounds each by its largest
// live sums, keeps the frontier in (bytes of each tier, seconds), and takes the fastest candidate whose checked offset
// assignment fits all tiers. A candidate that fits some budgets fits any larger ones, so more of any is never slower.
// Pure function of the request. Throws Error(usage) for pins that cannot be honoured; a budget that is too small is not
// an error: plan.feasible is false, and minimum_bytes and the peak of each lower tier are set to the least that the
// offset assignments of the frontier need. A candidate that is beaten by its bounds gets no offsets, although its own
// might be tighter than those of the candidates that beat it.
SearchResult search_training_plan(const PlanRequest& request);

// The same with the least budget of the device, whatever the request's is. Not feasible if nothing fits the other
// tiers' budgets.
SearchResult search_least_plan(PlanRequest request);

// The plans that budgets of the device buy, from the request's on: the fastest that fits, then the fastest whose peak
// is smaller, and so on down to the least budget; `take` gets them one by one and returns whether it wants another.
// Each is the result of search_training_plan for its peak as the budget. If there are more than about `most`, those
// whose peaks are closer than an even spacing are left out. If nothing fits, `take` gets one plan that is not feasible.
void search_by_budget(PlanRequest request, int64_t most, const std::function<bool(const Plan&)>& take);

// The whole process: arena, everything else, page tables of both.
int64_t process_peak(int64_t arena_bytes, const ProcessBytes& process, const DeviceFacts& facts);
// Page tables are charged if memory is the host's (device cpu); on another device they are not part of the budget.
ProcessBytes with_page_tables(ProcessBytes process, int64_t arena_bytes, const DeviceFacts& facts);
// The same for the host's tier of a device, where page tables are always charged.
ProcessBytes host_with_page_tables(ProcessBytes process, int64_t host_arena_bytes);

// The bytes of each tier while there are arenas: the device's and the host's arena and the process, whose copies count
// if something is kept on disk. `more`: bytes that the process holds for a candidate (process_bytes_of).
TierBytes run_peaks(const TierBytes& arenas, const PlanRequest& request, int64_t more = 0);
// The same over all phases: for the host at least what preparing the data needs.
TierBytes with_prepare(TierBytes peaks, const PlanRequest& request);
// Whether the budgets hold the phase `prepare`, as far as it is booked.
bool prepare_fits(const PlanRequest& request);
// The budget that each tier needs with these arenas, over all phases.
TierBytes tier_peaks(const TierBytes& arenas, const PlanRequest& request, int64_t more = 0);
// True if all tiers fit; a budget of 0 for a lower tier sets no limit.
bool fits(const TierBytes& peaks, const PlanRequest& request);

// The option that gives a lower tier a budget: "--disk-memory DIR:4096".
std::string tier_option(Tier tier, int64_t bytes);

// Fills the process bytes and peaks of all tiers, the budgets and `feasible` of a plan that has its arenas.
void set_peaks(const PlanRequest& request, Plan& plan, int64_t more = 0);

}  // namespace headroom
