#include "planner/search.h"

#include <algorithm>

#include "base/bytes.h"
#include "base/error.h"
#include "ir/verify.h"
#include "memory/arenas.h"
#include "planner/bounds.h"
#include "planner/candidates.h"
#include "planner/emit.h"
#include "planner/explain.h"

namespace headroom {
namespace {

constexpr int64_t kPageTableRatio = 512;  // 8 bytes of page table per 4 KiB page

class Search {
 public:
  explicit Search(const PlanRequest& request) : request_(request), bounder_(request) {}

  SearchResult run() {
    check_techniques(request_);
    enumerate();
    keep_frontier();
    result_.plan.minimum_bytes = find_minimum();
    describe_request();
    if (const Rung* chosen = choose()) {
      emit(*chosen);
      report_techniques(request_, bounder_, chosen->candidate, {result_.plan.arena_bytes, chosen->step_seconds},
                        result_.plan);
    }
    result_.frontier = std::move(rungs_);
    return std::move(result_);
  }

 private:
  void enumerate() {
    const std::vector<std::vector<Keep>> keeps = keep_choices(request_, block_count(request_.forward));
    for (bool copies : weight_copy_choices(request_))
      for (int64_t micro_batch : micro_batch_choices(request_))
        for (const std::vector<Keep>& keep : keeps) {
          Candidate candidate{micro_batch, 0, keep, copies, fuses_optimizer(request_, micro_batch)};
          const std::vector<int64_t> chunks = loss_chunk_choices(request_, micro_batch * request_.seq_length);
          const std::vector<Bound> bounds = bounder_.bounds(candidate, chunks);
          for (size_t i = 0; i < chunks.size(); ++i) {
            candidate.loss_chunk = chunks[i];
            rungs_.push_back({candidate, process_peak(bounds[i].arena_bytes, request_.process, request_.facts), false,
                              bounds[i].step_seconds});
          }
        }
  }

  // Ascending in bytes, strictly descending in time.
  void keep_frontier() {
    std::stable_sort(rungs_.begin(), rungs_.end(), [](const Rung& a, const Rung& b) {
      return a.peak_bytes != b.peak_bytes ? a.peak_bytes < b.peak_bytes : a.step_seconds < b.step_seconds;
    });
    std::vector<Rung> kept;
    for (Rung& rung : rungs_)
      if (kept.empty() || rung.step_seconds < kept.back().step_seconds) kept.push_back(std::move(rung));
    rungs_ = std::move(kept);
  }

  // Replaces a rung's bound by the peak of a packing.
  void pack_rung(Rung& rung) {
    if (rung.packed) return;
    const Graph graph = expand(bounder_.assembled(rung.candidate.weight_copies), rung.candidate, false, nullptr);
    const Liveness liveness = analyze_liveness(graph, graph.bounds(), request_.facts);
    rung.peak_bytes =
        process_peak(pack_arenas(liveness, pack_options()).peaks.device, request_.process, request_.facts);
    rung.packed = true;
  }

  PackOptions pack_options() const {
    PackOptions options;
    options.alignment = request_.facts.alignment;
    options.exact_nodes = 0;  // for tiny timelines only, and slow there; greedy orders are within 0.3 % of the bound
    return options;
  }

  int64_t find_minimum() {
    int64_t least = INT64_MAX;
    for (Rung& rung : rungs_) {
      if (rung.peak_bytes >= least) break;  // bounds ascend: no later rung can be smaller
      pack_rung(rung);
      least = std::min(least, rung.peak_bytes);
    }
    return least;
  }

  // The fastest rung whose packing fits; rungs ascend in bytes and descend in time.
  const Rung* choose() {
    for (size_t i = rungs_.size(); i-- > 0;) {
      if (rungs_[i].peak_bytes > request_.budget_bytes) continue;
      pack_rung(rungs_[i]);
      if (rungs_[i].peak_bytes <= request_.budget_bytes) return &rungs_[i];
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
    plan.process = request_.process;
    plan.host_budget_bytes = request_.host_budget_bytes;
    plan.host_process = request_.host_process;
    plan.choices.seq_length = request_.seq_length;
    plan.choices.precision = request_.precision;
    plan.choices.packing = request_.packing;
    plan.choices.matmul_precision = request_.matmul_precision;
  }

  void emit(const Rung& rung) {
    Plan& plan = result_.plan;
    const Graph& base = bounder_.assembled(rung.candidate.weight_copies);
    verify_or_throw(base, "assemble");
    const Graph graph = expand(base, rung.candidate, true, &result_.trace);
    const Bindings bindings = graph.bounds();
    const Liveness liveness = analyze_liveness(graph, bindings, request_.facts);
    const Arenas arenas = pack_arenas(liveness, pack_options());
    emit_programs(graph, bindings, liveness, arenas, request_, plan);
    if (request_.length_buckets) {
      plan.choices.buckets = bucket_choices(request_);
      emit_buckets(graph, liveness, arenas, request_, plan.choices.buckets, plan);
    }
    set_peaks(request_, plan);
    plan.step_seconds = rung.step_seconds;
    plan.choices.micro_batch = rung.candidate.micro_batch;
    plan.choices.accumulation = accumulation_steps(request_, rung.candidate.micro_batch);
    plan.choices.loss_chunk = rung.candidate.loss_chunk;
    plan.choices.recompute = describe_keep(rung.candidate.keep);
    plan.choices.weight_copies = rung.candidate.weight_copies;
    plan.choices.fused_optimizer = rung.candidate.fused_optimizer;
  }

  const PlanRequest& request_;
  Bounder bounder_;
  std::vector<Rung> rungs_;
  SearchResult result_;
};

}  // namespace

ProcessBytes host_with_page_tables(ProcessBytes process, int64_t host_arena_bytes) {
  process.page_tables = align_up((host_arena_bytes + process.total() - process.page_tables) / kPageTableRatio, 4096);
  return process;
}

ProcessBytes with_page_tables(ProcessBytes process, int64_t arena_bytes, const DeviceFacts& facts) {
  return facts.device == "cpu" ? host_with_page_tables(process, arena_bytes) : process;
}

int64_t process_peak(int64_t arena_bytes, const ProcessBytes& process, const DeviceFacts& facts) {
  return arena_bytes + with_page_tables(process, arena_bytes, facts).total();
}

TierBytes tier_peaks(const TierBytes& arenas, const PlanRequest& request) {
  return {process_peak(arenas.device, request.process, request.facts),
          arenas.host + host_with_page_tables(request.host_process, arenas.host).total()};
}

bool fits(const TierBytes& peaks, const PlanRequest& request) {
  return peaks.device <= request.budget_bytes &&
         (request.host_budget_bytes == 0 || peaks.host <= request.host_budget_bytes);
}

void set_peaks(const PlanRequest& request, Plan& plan) {
  const TierBytes peaks = tier_peaks({plan.arena_bytes, plan.host_arena_bytes}, request);
  plan.process = with_page_tables(request.process, plan.arena_bytes, request.facts);
  plan.host_process = host_with_page_tables(request.host_process, plan.host_arena_bytes);
  plan.budget_bytes = request.budget_bytes;
  plan.host_budget_bytes = request.host_budget_bytes;
  plan.peak_bytes = peaks.device;
  plan.host_peak_bytes = peaks.host;
  plan.feasible = fits(peaks, request);
}

SearchResult search_training_plan(const PlanRequest& request) { return Search(request).run(); }

}  // namespace headroom
