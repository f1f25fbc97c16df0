#include "planner/explain.h"

#include <algorithm>

#include "base/bytes.h"
#include "base/error.h"
#include "base/least_bytes.h"
#include "passes/bf16_mixed.h"
#include "passes/bf16_true.h"
#include "passes/chunked_loss.h"
#include "passes/freeze.h"
#include "passes/fused_optimizer.h"
#include "passes/lora.h"
#include "passes/matmul_precision.h"
#include "passes/micro_batch.h"
#include "passes/recompute.h"
#include "planner/candidates.h"
#include "planner/estimates.h"
#include "planner/explain_automatic.h"
#include "planner/explain_data_order.h"
#include "planner/explain_frontier.h"
#include "planner/explain_offload.h"
#include "planner/offload_choices.h"

namespace headroom {
namespace {

class Reporter {
 public:
  Reporter(const PlanRequest& request, Bounder& bounder, const Candidate& chosen, const Bound& reached, Plan& plan)
      : request_(request), bounder_(bounder), chosen_(chosen), reached_(reached), plan_(plan) {}

  void run() {
    report_data_order(request_, chosen_, reached_, plan_);
    report_lora();
    report_freeze();
    report_precision();
    report_true_precision();
    report_matmul_precision();
    report_micro_batch();
    report_loss();
    report_recompute();
    report_fused_optimizer();
    report_offload(request_, bounder_, chosen_, reached_, plan_);
    plan_.techniques.push_back({"flash-attention", "reassociating", "on", 0, 0,
                                "the only attention kernel here: tiled, never sequence x sequence"});
  }

 private:
  // Why a technique has its value: `choice`, unless the user pinned it.
  std::string reason(const PassInfo& info, std::string choice) const {
    const auto pin = request_.techniques.find(std::string(info.name));
    if (pin == request_.techniques.end() || (info.name == kMicroBatch.name && pin->second == "on")) return choice;
    return fmt::format("pinned by --technique {}={}", pin->first, pin->second);
  }

  void add(const PassInfo& info, std::string value, const Candidate* without, std::string why) {
    TechniqueReport report{std::string(info.name), std::string(kind_name(info.kind)), std::move(value), 0, 0,
                           std::move(why)};
    if (without) {
      const Bound bound = bounder_.bound(*without);
      report.saves_bytes = bound.arenas.device - reached_.arenas.device;
      report.costs_seconds = reached_.step_seconds - bound.step_seconds;
    }
    plan_.techniques.push_back(std::move(report));
  }

  void report_lora() {
    if (request_.lora.rank == 0) {
      add(kLora, "off", nullptr, "trains another, smaller model: taken only when named (--lora-r)");
      return;
    }
    PlanRequest full = request_;
    full.lora.rank = 0;
    Bounder other(full);
    const Bound bound = other.bound(chosen_);
    plan_.techniques.push_back({std::string(kLora.name), std::string(kind_name(kLora.kind)),
                                fmt::format("rank {}", request_.lora.rank),
                                bound.arenas.device - reached_.arenas.device,
                                reached_.step_seconds - bound.step_seconds, "named by --lora-r"});
  }

  void report_freeze() {
    if (request_.freeze.empty()) {
      add(kFreeze, "off", nullptr, "trains other weights: taken only when named (--freeze)");
      return;
    }
    PlanRequest full = request_;
    full.freeze.clear();
    Bounder other(full);
    const Bound bound = other.bound(chosen_);
    plan_.techniques.push_back({std::string(kFreeze.name), std::string(kind_name(kFreeze.kind)),
                                fmt::format("{}", fmt::join(request_.freeze, ",")),
                                bound.arenas.device - reached_.arenas.device,
                                reached_.step_seconds - bound.step_seconds, "named by --freeze"});
  }

  void report_precision() {
    if (request_.precision != "bf16-mixed") {
      add(kBf16Mixed, "off", nullptr,
          reason(kBf16Mixed, "changes the arithmetic: taken only when named (--precision bf16-mixed)"));
      return;
    }
    PlanRequest full = request_;
    full.precision = "32-true";
    Bounder other(full);
    Candidate plain = chosen_;
    plain.weight_copies = false;
    const Bound bound = other.bound(plain);
    TechniqueReport report{"bf16-mixed",
                           "lossy",
                           "on",
                           bound.arenas.device - reached_.arenas.device,
                           reached_.step_seconds - bound.step_seconds,
                           reason(kBf16Mixed, "named by --precision")};
    report.why += chosen_.weight_copies ? "; bf16 copies of the weights are kept"
                                        : "; weights are rounded where they are multiplied";
    if (report.saves_bytes < 0)
      report.why += "; here it needs more memory than fp32: the copies outweigh the activations saved";
    plan_.techniques.push_back(std::move(report));
  }

  void report_true_precision() {
    if (request_.precision != "bf16-true") {
      add(kBf16True, "off", nullptr,
          reason(kBf16True, "changes the arithmetic: taken only when named (--precision bf16-true)"));
      return;
    }
    PlanRequest full = request_;
    full.precision = "32-true";
    const Bound bound = Bounder(full).bound(chosen_);
    plan_.techniques.push_back({std::string(kBf16True.name), std::string(kind_name(kBf16True.kind)), "on",
                                bound.arenas.device - reached_.arenas.device,
                                reached_.step_seconds - bound.step_seconds, reason(kBf16True, "named by --precision")});
  }

  // Products of f32 operands on bf16 tiles stand for fp32's but for the ends of its range.
  void report_matmul_precision() {
    const std::string& precision = request_.matmul_precision;
    const bool cpu = request_.facts.is_cpu(), tiles = request_.facts.has_bf16_tiles();
    if (precision == "highest") {
      add(kMatmulPrecision, precision, nullptr,
          std::string("changes the arithmetic: taken only when named (--matmul-precision)") +
              (tiles && request_.precision == "32-true" ? "; fp32 products as sums of three bf16 parts: finite "
                                                          "operands above 3.396e38 become infinite, parts "
                                                          "below 2^-126 zero"
                                                        : ""));
      return;
    }
    PlanRequest full = request_;
    full.matmul_precision = "highest";
    Bounder other(full);
    const Bound bound = other.bound(chosen_);
    plan_.techniques.push_back(
        {std::string(kMatmulPrecision.name), "lossy", precision, bound.arenas.device - reached_.arenas.device,
         reached_.step_seconds - bound.step_seconds,
         std::string("named by --matmul-precision") +
             (cpu && !tiles ? "; without bf16 tiles the rounded operands are multiplied in fp32, "
                              "which is no faster"
                            : "")});
  }

  void report_micro_batch() {
    const std::string value = std::to_string(chosen_.micro_batch);
    if (chosen_.micro_batch >= request_.global_batch) {
      add(kMicroBatch, value, nullptr,
          micro_batch_reason(loss_spans_batch(request_) ? "the loss that balances experts is of the whole global batch"
                                                        : "the whole global batch fits at once"));
      return;
    }
    Candidate whole = chosen_;
    whole.micro_batch = request_.global_batch;
    add(kMicroBatch, value, &whole,
        micro_batch_reason(fmt::format("against all {} sequences at once", request_.global_batch)));
  }

  std::string micro_batch_reason(std::string choice) const {
    if (request_.micro_batch > 0) return "pinned by --micro-batch-size";
    return reason(kMicroBatch, std::move(choice));
  }

  void report_loss() {
    const int64_t rows = chosen_.micro_batch * request_.seq_length;
    const int64_t chunk = chosen_.loss_chunk == 0 ? rows : std::min(rows, chosen_.loss_chunk);
    if (chunk >= rows) {
      add(kChunkedLoss, "off", nullptr, reason(kChunkedLoss, fmt::format("logits of all {} rows fit", rows)));
      return;
    }
    Candidate whole = chosen_;
    whole.loss_chunk = 0;
    add(kChunkedLoss, std::to_string(chunk), &whole,
        reason(kChunkedLoss, fmt::format("{} rows of logits at a time instead of {}", chunk, rows)));
  }

  void report_recompute() {
    Candidate plain = chosen_;
    std::fill(plain.keep.begin(), plain.keep.end(), Keep::all);
    const bool none = plain.keep == chosen_.keep;
    add(kRecompute, describe_keep(chosen_.keep), none ? nullptr : &plain,
        reason(kRecompute, none ? "every activation fits" : "against keeping every activation"));
  }

  void report_fused_optimizer() {
    if (request_.clips)
      add(kFusedOptimizer, "off", nullptr,
          reason(kFusedOptimizer,
                 "clipping by global norm needs every gradient before the first update (--max-grad-norm 0 lifts "
                 "this and trains without clipping)"));
    else if (chosen_.micro_batch < request_.global_batch)
      add(kFusedOptimizer, "off", nullptr,
          reason(kFusedOptimizer,
                 fmt::format("{} micro-batches accumulate into every gradient: they must outlive the backward pass",
                             accumulation_steps(request_, chosen_.micro_batch))));
    else if (!chosen_.fused_optimizer)
      add(kFusedOptimizer, "off", nullptr, reason(kFusedOptimizer, "not taken"));
    else {
      Candidate plain = chosen_;
      plain.fused_optimizer = false;
      add(kFusedOptimizer, "on", &plain,
          reason(kFusedOptimizer, "one micro-batch and no clipping: each gradient dies after its update"));
    }
  }

  const PlanRequest& request_;
  Bounder& bounder_;
  const Candidate& chosen_;
  const Bound& reached_;
  Plan& plan_;
};

void explain_parts(const Plan& plan, std::string& text) {
  const Breakdown& b = plan.breakdown;
  const ProcessBytes& c = plan.process;
  const auto row = [&](const char* name, int64_t bytes) {
    text += fmt::format("  {:<22}{:>12}  {:>15} bytes\n", name, format_bytes(bytes), bytes);
  };
  row("weights", b.weights);
  row("gradients", b.gradients);
  row("optimizer states", b.optimizer);
  row("activations", b.activations);
  row("workspace", b.workspace);
  row("data and tables", b.data);
  row("alignment and gaps", b.alignment);
  row("arena", plan.arena_bytes);
  row("code and libraries", c.code + c.kernels);
  row("tokenizer and loader", c.tokenizer + c.data);
  row("plan tables", c.planner);
  row("copies to disk", c.copies);
  row("page tables", c.page_tables);
  if (c.caller > 0) row("calling program", c.caller);
  if (c.graphs > 0) row("CUDA graphs", c.graphs);
  row("peak", plan.peak_bytes);
}

// Whose measurements or estimates the predicted seconds rest on, where they are not this program's own.
void explain_sources(const Profile& profile, std::string& text) {
  if (profile.sources.empty()) return;
  text += "rates of the profile that headroom has not measured\n";
  for (const RateSource& source : profile.sources) text += fmt::format("  {:<40} {}\n", source.rates, source.from);
}

// Nothing for a technique that is off: what it would save is not known.
std::string describe_effect(const TechniqueReport& technique) {
  if (technique.saves_bytes == 0 && technique.costs_seconds == 0) return {};
  return fmt::format("saves {}, costs {:.3f} s per step: ", format_bytes(technique.saves_bytes),
                     technique.costs_seconds);
}

}  // namespace

void report_techniques(const PlanRequest& request, Bounder& bounder, const Candidate& chosen, const Bound& reached,
                       Plan& plan) {
  Reporter(request, bounder, chosen, reached, plan).run();
}

std::string explain(const PlanRequest& request, const SearchResult& result) {
  const Plan& plan = result.plan;
  std::string text = fmt::format("model {} with {} parameters, {} threads, profile {}\n", plan.model, plan.parameters,
                                 plan.facts.threads, plan.profile);
  if (const std::string unmeasured = estimates(request.profile); !unmeasured.empty()) text += unmeasured + "\n";
  explain_sources(request.profile, text);
  if (plan.feasible) {
    text += fmt::format("budget {}: fits, peak {} ({} unused), predicted step {:.3f} s\n",
                        format_bytes(plan.budget_bytes), format_bytes(plan.peak_bytes),
                        format_bytes(plan.budget_bytes - plan.peak_bytes), plan.step_seconds);
    explain_parts(plan, text);
    explain_lower_tiers(plan, text);
  } else {
    text += fmt::format("budget {}: does not fit, short of {}; the least that works is {} bytes ({})\n",
                        format_bytes(plan.budget_bytes), format_bytes(plan.minimum_bytes - plan.budget_bytes),
                        plan.minimum_bytes, format_least_bytes(plan.minimum_bytes));
    for (const Tier tier : kLowerTiers)
      if (const TierPlan& below = plan.below(tier); below.budget_bytes > 0)
        text +=
            fmt::format("{} budget {}: with the budget above, the least that works is {} bytes ({})\n", tier_name(tier),
                        format_bytes(below.budget_bytes), below.peak_bytes, format_least_bytes(below.peak_bytes));
  }
  if (plan.feasible) text += "techniques\n";
  for (const TechniqueReport& t : plan.techniques)
    text += fmt::format("  {:<19} {:<13} {}\n      {}{}\n", t.name, t.kind, t.value, describe_effect(t), t.why);
  if (plan.feasible) text += explain_automatic(plan);
  text += "plans that no other beats in both memory and time (least memory first)\n";
  explain_frontier(request.budget_bytes, result, text);
  return text;
}

}  // namespace headroom
