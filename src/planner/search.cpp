#include "planner/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <tuple>

#include "base/bytes.h"
#include "base/error.h"
#include "memory/arenas.h"
#include "optim/curvature.h"
#include "plan/step_memory.h"
#include "planner/bounds.h"
#include "planner/candidates.h"
#include "planner/emit.h"
#include "planner/explain.h"
#include "planner/frontier.h"
#include "planner/mixed_layers.h"
#include "planner/techniques/length_buckets.h"

namespace headroom {
namespace {

constexpr int64_t kPageTableRatio = 512;  // 8 bytes of page table per 4 KiB page

// Copies count if something is kept on disk.
ProcessBytes beside(const TierBytes& arenas, ProcessBytes process) {
  if (arenas.disk == 0) process.copies = 0;
  return process;
}

// Bytes held on the device and on the host outside the arenas; tables of plans are on the host.
ProcessBytes on_device(const TierBytes& arenas, const PlanRequest& request, int64_t more) {
  ProcessBytes process = beside(arenas, request.process);
  if (request.facts.is_cpu()) process.planner += more;
  return with_page_tables(process, arenas.device, request.facts);
}
ProcessBytes on_host(const TierBytes& arenas, const PlanRequest& request, int64_t more) {
  ProcessBytes process = beside(arenas, request.host_process);
  if (!request.facts.is_cpu()) process.planner += more;
  return host_with_page_tables(process, arenas.host);
}

class Search {
 public:
  explicit Search(const PlanRequest& request) : request_(request), bounder_(request) {}

  // The part that does not depend on the device's budget.
  void prepare() {
    check_techniques(request_);
    bound(families(request_));
    refine();
    mix_layers();
    least_ = least_of(Tier::device);
    for (FrontierPoint& point : points_) fastest_first_.push_back(&point);
    std::stable_sort(fastest_first_.begin(), fastest_first_.end(), [](const FrontierPoint* a, const FrontierPoint* b) {
      return std::tie(a->step_seconds, a->peaks.disk, a->peaks.host, a->peaks.device) <
             std::tie(b->step_seconds, b->peaks.disk, b->peaks.host, b->peaks.device);
    });
  }

  // The least budget of the device.
  int64_t least() const { return least_; }

  // With the request's current budgets.
  SearchResult take() {
    result_ = {};
    result_.plan.minimum_bytes = least_;
    describe_request();
    if (const FrontierPoint* chosen = choose()) {
      emit(*chosen);
      report_techniques(request_, bounder_, chosen->candidate, {result_.plan.arenas(), chosen->step_seconds},
                        result_.plan);
    } else {
      record(most_frugal(request_).candidate);
      for (const Tier tier : kLowerTiers)
        if (request_.budgets().of(tier) > 0) result_.plan.below(tier).peak_bytes = least_of(tier);
    }
    result_.frontier = unbeaten_within(points_, request_.budgets());
    return std::move(result_);
  }

 private:
  // Bounds each family together with those that share its graphs. The points are in the order of the families: of equal
  // ones the first stays.
  void bound(const std::vector<CandidateFamily>& families) {
    std::vector<Candidate> graphs;
    for (const CandidateFamily& family : families) graphs.push_back(in_graph(request_, family.candidate));
    std::vector<size_t> order(families.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return expands_before(graphs[a], graphs[b]); });
    std::vector<std::vector<Bound>> bounds(families.size());
    for (const size_t at : order) {
      const bool mixes = may_mix(request_, families[at]);
      LayerFacts facts;
      bounds[at] =
          bounder_.bounds(families[at].candidate, families[at].places, families[at].chunks, mixes ? &facts : nullptr);
      if (mixes) add_level(families[at], std::move(facts), levelled_);
    }
    for (size_t at = 0; at < families.size(); ++at) add(families[at], bounds[at]);
    points_ = unbeaten(std::move(points_));
  }

  void add(const CandidateFamily& family, const std::vector<Bound>& bounds) {
    const int64_t more = process_bytes_of(request_, family.candidate);
    size_t at = 0;
    for (const Candidate& place : family.places)
      for (const int64_t chunk : family.chunks) {
        points_.push_back({member(family, place, chunk), run_peaks(bounds[at].arenas, request_, more), false,
                           bounds[at].step_seconds});
        ++at;
      }
  }

  // Refinements only of families worth using.
  void refine() {
    std::vector<Candidate> worth_taking;
    for (const FrontierPoint& point : points_) worth_taking.push_back(point.candidate);
    bound(refined_families(request_, worth_taking));
    bounder_.forget();
  }

  // Points that a mix's bounds beat are kept: their offsets might be tighter, and need the least.
  void mix_layers() {
    const std::vector<FrontierPoint> mixed = mixed_points(request_, levelled_, points_);
    points_.insert(points_.end(), mixed.begin(), mixed.end());
    std::stable_sort(points_.begin(), points_.end(), [](const FrontierPoint& a, const FrontierPoint& b) {
      return std::tie(a.peaks.device, a.peaks.host, a.peaks.disk, a.step_seconds) <
             std::tie(b.peaks.device, b.peaks.host, b.peaks.disk, b.step_seconds);
    });
  }

  // Replaces a point's bounds by the peaks of its offset assignment.
  void pack_point(FrontierPoint& point) {
    if (point.assigned) return;
    point.peaks = run_peaks(assign_arenas(liveness_of(point.candidate), assignment_options()).peaks, request_,
                            process_bytes_of(request_, point.candidate));
    point.assigned = true;
  }

  Liveness liveness_of(const Candidate& candidate) {
    const Graph graph = expand(bounder_.assembled(candidate), request_, candidate);
    return training_liveness(graph, request_);
  }

  AssignmentOptions assignment_options() const {
    AssignmentOptions options;
    options.alignment = request_.facts.alignment;
    options.exact_nodes = 0;  // slow, and only useful for tiny timelines; greedy orders are within 0.3 % of the bound
    return options;
  }

  // Whether the budgets of the other tiers hold the point.
  bool fits_beside(const FrontierPoint& point, Tier tier) const {
    TierBytes others = with_prepare(point.peaks, request_);
    others.of(tier) = 0;
    return fits(others, request_);
  }

  // The least budget of a tier that works with the other tiers' budgets; without these if nothing fits them.
  int64_t least_of(Tier tier) {
    std::vector<FrontierPoint*> order;
    for (FrontierPoint& point : points_) order.push_back(&point);
    std::stable_sort(order.begin(), order.end(), [&](const FrontierPoint* a, const FrontierPoint* b) {
      return a->peaks.of(tier) < b->peaks.of(tier);
    });
    for (const bool beside : {true, false}) {
      int64_t least = INT64_MAX;
      for (FrontierPoint* point : order) {
        if (point->peaks.of(tier) >= least) break;  // bounds ascend: no later point can be smaller
        if (beside && !fits_beside(*point, tier)) continue;
        pack_point(*point);
        if (!beside || fits_beside(*point, tier)) least = std::min(least, point->peaks.of(tier));
      }
      if (least < INT64_MAX) return with_prepare(only(tier, least), request_).of(tier);
    }
    return INT64_MAX;
  }

  static TierBytes only(Tier tier, int64_t bytes) {
    TierBytes out;
    out.of(tier) = bytes;
    return out;
  }

  // The fastest point whose assigned offsets fit all tiers; of equally fast ones, the one that keeps least in the
  // lowest tiers.
  const FrontierPoint* choose() {
    for (FrontierPoint* point : fastest_first_) {
      if (!fits(with_prepare(point->peaks, request_), request_)) continue;
      pack_point(*point);
      if (fits(with_prepare(point->peaks, request_), request_)) return point;
    }
    return nullptr;
  }

  void describe_request() {
    Plan& plan = result_.plan;
    plan.model = request_.model;
    plan.parameters = request_.parameters;
    plan.budget_bytes = request_.budget_bytes;
    plan.profile = request_.profile.identity();
    plan.facts = request_.facts;
    plan.process = beside(plan.arenas(), request_.process);
    for (const Tier tier : kLowerTiers) plan.below(tier).budget_bytes = request_.budgets().of(tier);
    plan.host_process = beside(plan.arenas(), request_.host_process);
    plan.choices.seq_length = request_.seq_length;
  }

  void emit(const FrontierPoint& point) {
    Plan& plan = result_.plan;
    const Graph graph = expand(assemble_training(request_, point.candidate, true, &result_.trace), request_,
                               point.candidate, true, &result_.trace);
    const Bindings bindings = graph.bounds();
    const Liveness liveness = training_liveness(graph, request_);
    const Arenas arenas = assign_arenas(liveness, assignment_options());
    emit_programs(graph, bindings, liveness, arenas, request_, plan);
    record(point.candidate);
    if (!plan.choices.buckets.empty()) emit_buckets(graph, liveness, arenas, request_, plan.choices.buckets, plan);
    plan.peak_tensors = peak_tensors(plan);
    set_peaks(request_, plan, process_bytes_of(request_, point.candidate));
    plan.step_seconds = point.step_seconds;
  }

  void record(const Candidate& chosen) {
    Choices& choices = result_.plan.choices;
    if (const int64_t interval = curvature_interval(request_.optimizer); interval > 0) {
      choices.set("curvature_interval", interval);
      choices.set("curvature_rows", request_.global_batch);
    }
    for (const Technique* technique : all_techniques()) {
      if (technique->record) technique->record(request_, chosen, choices);
      if (technique->as_pin) choices.pins[std::string(technique->name())] = technique->as_pin(chosen[*technique]);
    }
  }

  const PlanRequest& request_;
  Bounder bounder_;
  std::vector<LevelledFamilies> levelled_;
  std::vector<FrontierPoint> points_;
  std::vector<FrontierPoint*> fastest_first_;
  int64_t least_ = 0;
  SearchResult result_;
};

}  // namespace

ProcessBytes host_with_page_tables(ProcessBytes process, int64_t host_arena_bytes) {
  process.page_tables = align_up((host_arena_bytes + process.total() - process.page_tables) / kPageTableRatio, 4096);
  return process;
}

ProcessBytes with_page_tables(ProcessBytes process, int64_t arena_bytes, const DeviceFacts& facts) {
  return facts.is_cpu() ? host_with_page_tables(process, arena_bytes) : process;
}

int64_t process_peak(int64_t arena_bytes, const ProcessBytes& process, const DeviceFacts& facts) {
  return arena_bytes + with_page_tables(process, arena_bytes, facts).total();
}

TierBytes run_peaks(const TierBytes& arenas, const PlanRequest& request, int64_t more) {
  return {arenas.device + on_device(arenas, request, more).total(),
          arenas.host + on_host(arenas, request, more).total(), arenas.disk};
}

TierBytes with_prepare(TierBytes peaks, const PlanRequest& request) {
  int64_t& prepared_in = request.facts.is_cpu() ? peaks.device : peaks.host;
  prepared_in = std::max(prepared_in, request.prepare.least);
  return peaks;
}

TierBytes tier_peaks(const TierBytes& arenas, const PlanRequest& request, int64_t more) {
  return with_prepare(run_peaks(arenas, request, more), request);
}

bool fits(const TierBytes& peaks, const PlanRequest& request) {
  const TierBytes budgets = request.budgets();
  const auto below = [&](Tier tier) { return budgets.of(tier) == 0 || peaks.of(tier) <= budgets.of(tier); };
  return peaks.device <= budgets.device && std::all_of(kLowerTiers.begin(), kLowerTiers.end(), below);
}

std::string tier_option(Tier tier, int64_t bytes) {
  return fmt::format("--{}-memory {}{}", tier_name(tier), tier == Tier::disk ? "DIR:" : "", bytes);
}

bool prepare_fits(const PlanRequest& request) { return fits(with_prepare({}, request), request); }

void set_peaks(const PlanRequest& request, Plan& plan, int64_t more) {
  const TierBytes arenas = plan.arenas(), peaks = tier_peaks(arenas, request, more);
  plan.process = on_device(arenas, request, more);
  plan.host_process = on_host(arenas, request, more);
  plan.budget_bytes = request.budget_bytes;
  plan.peak_bytes = peaks.device;
  const int64_t host_peak = request.facts.is_cpu() ? peaks.device : peaks.host;
  plan.prepare = {request.prepare.least, std::clamp(host_peak, request.prepare.least, request.prepare.most)};
  for (const Tier tier : kLowerTiers) {
    plan.below(tier).budget_bytes = request.budgets().of(tier);
    plan.below(tier).peak_bytes = peaks.of(tier);
  }
  plan.feasible = fits(peaks, request);
}

SearchResult search_training_plan(const PlanRequest& request) {
  Search search(request);
  search.prepare();
  return search.take();
}

SearchResult search_least_plan(PlanRequest request) {
  Search search(request);
  search.prepare();
  request.budget_bytes = search.least();
  return search.take();
}

void search_by_budget(PlanRequest request, int64_t most, const std::function<bool(const Plan&)>& take) {
  Search search(request);
  search.prepare();
  for (int64_t apart = 0;;) {
    const Plan plan = search.take().plan;
    if (!take(plan) || !plan.feasible || plan.peak_bytes <= plan.minimum_bytes) return;
    if (apart == 0) apart = (plan.peak_bytes - plan.minimum_bytes + most - 1) / most;
    request.budget_bytes = std::max(plan.minimum_bytes, plan.peak_bytes - apart);
  }
}

}  // namespace headroom
