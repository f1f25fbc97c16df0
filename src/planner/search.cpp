#include "planner/search.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "base/bytes.h"
#include "base/error.h"
#include "ir/verify.h"
#include "memory/arenas.h"
#include "planner/bounds.h"
#include "planner/candidates.h"
#include "planner/emit.h"
#include "planner/explain.h"
#include "planner/frontier.h"
#include "planner/offload_choices.h"

namespace headroom {
namespace {

constexpr int64_t kPageTableRatio = 512;  // 8 bytes of page table per 4 KiB page

// Copies count where something lies on disk.
ProcessBytes beside(const TierBytes& arenas, ProcessBytes process) {
  if (arenas.disk == 0) process.copies = 0;
  return process;
}

// True when the candidates' graphs are the same but for the tiers below the device and the loss's chunk.
bool same_graph(const Candidate& a, const Candidate& b) {
  const auto kept = [](const Offload& offload) {
    const auto below = [](Tier tier) { return tier != Tier::device; };
    return std::tuple(below(offload.optimizer), below(offload.gradients), below(offload.parameters),
                      offload.parameter_layers, offload.activation_blocks, offload.prefetch);
  };
  return a.micro_batch == b.micro_batch && a.weight_copies == b.weight_copies && a.keep == b.keep &&
         kept(a.offload) == kept(b.offload);
}

class Search {
 public:
  explicit Search(const PlanRequest& request) : request_(request), bounder_(request) {}

  SearchResult run() {
    check_techniques(request_);
    enumerate();
    points_ = unbeaten(std::move(points_));
    try_prefetch();
    result_.plan.minimum_bytes = least_of(Tier::device);
    describe_request();
    if (const FrontierPoint* chosen = choose()) {
      emit(*chosen);
      report_techniques(request_, bounder_, chosen->candidate, {result_.plan.arenas(), chosen->step_seconds},
                        result_.plan);
    } else {
      for (const Tier tier : kLowerTiers)
        if (request_.budgets().of(tier) > 0) result_.plan.below(tier).peak_bytes = least_of(tier);
    }
    result_.frontier = unbeaten_within(points_, request_.budgets());
    return std::move(result_);
  }

 private:
  void enumerate() {
    std::vector<Family> families;
    const int64_t blocks = block_count(request_.forward);
    for (const Offload& offload : offload_choices(request_, blocks))
      for (bool copies : weight_copy_choices(request_))
        for (int64_t micro_batch : micro_batch_choices(request_))
          for (const std::vector<Keep>& keep : keeps_beside(request_, offload, blocks)) {
            Candidate candidate{micro_batch,
                                0,
                                keep,
                                copies,
                                fuses_optimizer(request_, micro_batch),
                                micro_batch < request_.global_batch,
                                offload};
            families.push_back({candidate, tier_choices(request_, offload),
                                loss_chunk_choices(request_, micro_batch * request_.seq_length)});
          }
    bound(families);
  }

  // Candidates of one graph but for the tiers below the device and the loss's chunk.
  struct Family {
    Candidate candidate;
    std::vector<Offload> places;
    std::vector<int64_t> chunks;
  };

  // Bounds each family beside those that share its graphs. The points stand in the order of the families: of equals the
  // first one stays.
  void bound(const std::vector<Family>& families) {
    std::vector<size_t> order(families.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return expands_before(families[a].candidate, families[b].candidate); });
    std::vector<std::vector<Bound>> bounds(families.size());
    for (const size_t at : order)
      bounds[at] = bounder_.bounds(families[at].candidate, families[at].places, families[at].chunks);
    for (size_t at = 0; at < families.size(); ++at) add(families[at], bounds[at]);
  }

  void add(const Family& family, const std::vector<Bound>& bounds) {
    Candidate candidate = family.candidate;
    size_t at = 0;
    for (const Offload& place : family.places)
      for (const int64_t chunk : family.chunks) {
        candidate.offload = place, candidate.loss_chunk = chunk;
        points_.push_back({candidate, run_peaks(bounds[at].arenas, request_), false, bounds[at].step_seconds});
        ++at;
      }
  }

  // The candidates of the points, by what tiers and chunks share.
  static std::vector<Family> families(const std::vector<FrontierPoint>& points) {
    std::vector<Family> out;
    for (const FrontierPoint& point : points) {
      const Candidate& candidate = point.candidate;
      auto family = std::find_if(out.begin(), out.end(),
                                 [&](const Family& other) { return same_graph(other.candidate, candidate); });
      if (family == out.end()) family = out.insert(out.end(), {candidate, {}, {}});
      const auto add = [](auto& to, const auto& value) {
        if (std::find(to.begin(), to.end(), value) == to.end()) to.push_back(value);
      };
      add(family->places, candidate.offload);
      add(family->chunks, candidate.loss_chunk);
    }
    return out;
  }

  // Other depths only for what is worth taking at one depth.
  void try_prefetch() {
    std::vector<Family> deeper;
    for (Family& family : families(points_))
      for (const int64_t depth : prefetch_choices(request_, family.candidate.offload)) {
        family.candidate.offload.prefetch = depth;
        for (Offload& place : family.places) place.prefetch = depth;
        deeper.push_back(family);
      }
    bound(deeper);
    bounder_.forget();
    points_ = unbeaten(std::move(points_));
  }

  // Replaces a point's bounds by the peaks of a packing.
  void pack_point(FrontierPoint& point) {
    if (point.packed) return;
    point.peaks = run_peaks(pack_arenas(liveness_of(point.candidate), pack_options()).peaks, request_);
    point.packed = true;
  }

  Liveness liveness_of(const Candidate& candidate) {
    const Graph graph = expand(bounder_.assembled(candidate.weight_copies), candidate, false, nullptr);
    return analyze_liveness(graph, graph.bounds(), request_.facts);
  }

  PackOptions pack_options() const {
    PackOptions options;
    options.alignment = request_.facts.alignment;
    options.exact_nodes = 0;  // for tiny timelines only, and slow there; greedy orders are within 0.3 % of the bound
    return options;
  }

  // The budgets of the other tiers hold the point.
  bool fits_beside(const FrontierPoint& point, Tier tier) const {
    TierBytes others = with_prepare(point.peaks, request_);
    others.of(tier) = 0;
    return fits(others, request_);
  }

  // The least budget of a tier that works with the other tiers' budgets; without regard to those when nothing fits
  // them.
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

  // The fastest point whose packing fits all tiers; of equally fast ones, what keeps least in the lowest tiers.
  const FrontierPoint* choose() {
    std::vector<FrontierPoint*> order;
    for (FrontierPoint& point : points_) order.push_back(&point);
    std::stable_sort(order.begin(), order.end(), [](const FrontierPoint* a, const FrontierPoint* b) {
      return std::tie(a->step_seconds, a->peaks.disk, a->peaks.host, a->peaks.device) <
             std::tie(b->step_seconds, b->peaks.disk, b->peaks.host, b->peaks.device);
    });
    for (FrontierPoint* point : order) {
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
    plan.choices.precision = request_.precision;
    plan.choices.packing = request_.packing;
    plan.choices.matmul_precision = request_.matmul_precision;
  }

  void emit(const FrontierPoint& point) {
    Plan& plan = result_.plan;
    const Graph& base = bounder_.assembled(point.candidate.weight_copies);
    verify_or_throw(base, "assemble");
    const Graph graph = expand(base, point.candidate, true, &result_.trace);
    const Bindings bindings = graph.bounds();
    const Liveness liveness = analyze_liveness(graph, bindings, request_.facts);
    const Arenas arenas = pack_arenas(liveness, pack_options());
    emit_programs(graph, bindings, liveness, arenas, request_, plan);
    if (request_.length_buckets) {
      plan.choices.buckets = bucket_choices(request_);
      emit_buckets(graph, liveness, arenas, request_, plan.choices.buckets, plan);
    }
    set_peaks(request_, plan);
    plan.step_seconds = point.step_seconds;
    plan.choices.micro_batch = point.candidate.micro_batch;
    plan.choices.accumulation = accumulation_steps(request_, point.candidate.micro_batch);
    plan.choices.loss_chunk = point.candidate.loss_chunk;
    plan.choices.recompute = describe_keep(point.candidate.keep);
    plan.choices.weight_copies = point.candidate.weight_copies;
    plan.choices.fused_optimizer = point.candidate.fused_optimizer;
  }

  const PlanRequest& request_;
  Bounder bounder_;
  std::vector<FrontierPoint> points_;
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

TierBytes run_peaks(const TierBytes& arenas, const PlanRequest& request) {
  const ProcessBytes host = host_with_page_tables(beside(arenas, request.host_process), arenas.host);
  return {process_peak(arenas.device, beside(arenas, request.process), request.facts), arenas.host + host.total(),
          arenas.disk};
}

TierBytes with_prepare(TierBytes peaks, const PlanRequest& request) {
  int64_t& prepared_in = request.facts.is_cpu() ? peaks.device : peaks.host;
  prepared_in = std::max(prepared_in, request.prepare.least);
  return peaks;
}

TierBytes tier_peaks(const TierBytes& arenas, const PlanRequest& request) {
  return with_prepare(run_peaks(arenas, request), request);
}

bool fits(const TierBytes& peaks, const PlanRequest& request) {
  const TierBytes budgets = request.budgets();
  const auto below = [&](Tier tier) { return budgets.of(tier) == 0 || peaks.of(tier) <= budgets.of(tier); };
  return peaks.device <= budgets.device && std::all_of(kLowerTiers.begin(), kLowerTiers.end(), below);
}

bool prepare_fits(const PlanRequest& request) { return fits(with_prepare({}, request), request); }

void set_peaks(const PlanRequest& request, Plan& plan) {
  const TierBytes arenas = plan.arenas(), peaks = tier_peaks(arenas, request);
  plan.process = with_page_tables(beside(arenas, request.process), arenas.device, request.facts);
  plan.host_process = host_with_page_tables(beside(arenas, request.host_process), arenas.host);
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

SearchResult search_training_plan(const PlanRequest& request) { return Search(request).run(); }

}  // namespace headroom
