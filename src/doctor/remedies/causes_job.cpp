// Causes from the job's estimate: fixed terms, terms that grow with the batch, the logits.
#include <fmt/format.h>

#include <array>

#include "doctor/remedies/causes.h"
#include "doctor/remedies/figures.h"

namespace headroom::doctor {
namespace {

constexpr std::array<std::string_view, 7> kFixed{
    "weights", "gradients", "optimizer states", "master weights", "gathered parameters", "context", "workspace"};

bool fixed(std::string_view name) {
  for (const std::string_view known : kFixed)
    if (name == known) return true;
  return false;
}

std::string largest_terms(const Estimate& estimate, bool only_fixed = false) {
  std::string text;
  int count = 0;
  for (const Term& term : estimate.terms)
    if (count < 3 && (!only_fixed || fixed(term.name)))
      text += fmt::format("{}{} {}", count++ ? ", " : "", term.name, figure(term.bytes));
  return text;
}

// A server whose cache gets what the weights leave.
void server(const CaseView& s, int64_t limit, std::vector<Cause>& causes) {
  const Estimate& estimate = *s.incident().estimate;
  const int64_t weights = s.term("weights"), length = s.job().serving.max_model_len.value_or(s.shape()->max_positions);
  if (weights > limit)
    causes.push_back(
        {"model_too_large", fmt::format("the weights alone take {} of {}", figure(weights), figure(limit)), 0.95});
  else if (estimate.kv_tokens && *estimate.kv_tokens < length)
    causes.push_back({"kv_cache_too_small",
                      fmt::format("weights of {} leave the KV cache room for {} tokens; one request may have {}",
                                  figure(weights), *estimate.kv_tokens, length),
                      0.9});
  else if (!fits(estimate.likely_bytes, limit))
    causes.push_back({s.job().system == System::llama_server ? "kv_cache_too_large" : "server_workspace",
                      fmt::format("{} would be needed of {}: {}", figure(estimate.likely_bytes), figure(limit),
                                  largest_terms(estimate)),
                      0.7});
}

}  // namespace

bool failed_beside_the_steps(const CaseView& s) {
  if (!s.message() || !s.training()) return false;
  for (const ToldStage stage : {ToldStage::evaluation, ToldStage::saving})
    if (!s.story().at(stage).empty()) return true;
  return s.phase("checkpoint_save");
}

void job_causes(const CaseView& s, std::vector<Cause>& causes) {
  const std::optional<Estimate>& estimate = s.incident().estimate;
  if (!estimate || !s.balance().limit || s.pool() != Pool::device || !s.shape()) return;
  const int64_t limit = *s.balance().limit;
  if (s.serving()) return s.message() ? void() : server(s, limit, causes);
  if (failed_beside_the_steps(s) || s.figures_ignore_the_system()) return;  // the figures are of another job
  const bool fitting = fits(estimate->likely_bytes, limit);
  if (fitting && !s.message()) return;
  int64_t constant = 0, varying = 0;
  for (const Term& term : estimate->terms) (fixed(term.name) ? constant : varying) += term.bytes;
  const std::string terms = largest_terms(*estimate);
  if (constant > limit) {
    causes.push_back({"model_too_large",
                      fmt::format("weights, gradients, states and context take {} of {} before any activation: {}",
                                  figure(constant), figure(limit), largest_terms(*estimate, true)),
                      0.95});
    return;
  }
  if (s.term("logits") > limit / 5)
    causes.push_back({"logits", fmt::format("logits and their gradient take {}", figure(s.term("logits"))), 0.75});
  if (!fitting)
    causes.push_back({varying > constant ? "batch_too_large" : "job_too_large",
                      fmt::format("{} would be needed of {}: {}", figure(estimate->likely_bytes), figure(limit), terms),
                      0.8});
}

}  // namespace headroom::doctor
