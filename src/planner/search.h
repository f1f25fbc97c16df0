// Chooses the fastest plan that fits.
#pragma once

#include <string>
#include <vector>

#include "memory/arenas.h"
#include "planner/pipeline.h"
#include "planner/request.h"

namespace headroom {

// A candidate with its arena (lower bound until packed) and predicted time.
struct Rung {
  Candidate candidate;
  int64_t peak_bytes = 0;  // arena and process
  int64_t host_bytes = 0;  // the same of the host's tier beside a device
  bool packed = false;     // peak_bytes is that of a checked packing, else a lower bound
  double step_seconds = 0;
};

struct SearchResult {
  Plan plan;                     // of the chosen candidate; without programs when nothing fits
  std::vector<Rung> frontier;    // no other candidate is both smaller and faster; ascending in bytes
  std::vector<PassTrace> trace;  // of the chosen candidate's passes
};

// Enumerates candidates (independent of the budgets, but for whether the host has one), bounds each by its largest live
// sums, keeps the frontier in (bytes of each tier, seconds), and takes the fastest candidate whose checked packing fits
// both tiers. A candidate that fits at one pair of budgets fits at any larger one, so more of either is never slower.
// Pure function of the request. Throws Error(usage) for pins that cannot be honoured; a budget that is too small is no
// error: plan.feasible is false, minimum_bytes, host_peak_bytes (the least of the host) and cheapest_fix are set.
SearchResult search_training_plan(const PlanRequest& request);

// The whole process: arena, everything else, page tables of both.
int64_t process_peak(int64_t arena_bytes, const ProcessBytes& process, const DeviceFacts& facts);
// Page tables are charged where memory is the host's (device cpu); on another device they are not the budget's.
ProcessBytes with_page_tables(ProcessBytes process, int64_t arena_bytes, const DeviceFacts& facts);
// The same of the host's tier beside a device, where page tables are always charged.
ProcessBytes host_with_page_tables(ProcessBytes process, int64_t host_arena_bytes);

// What each tier's budget must hold with these arenas.
TierBytes tier_peaks(const TierBytes& arenas, const PlanRequest& request);
// True when both tiers fit; a host budget of 0 bounds nothing.
bool fits(const TierBytes& peaks, const PlanRequest& request);

// Fills the process bytes and peaks of both tiers, the budgets and `feasible` of a plan that has its arenas.
void set_peaks(const PlanRequest& request, Plan& plan);

}  // namespace headroom
