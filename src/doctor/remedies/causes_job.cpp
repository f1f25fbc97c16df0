// What the estimate of the job says: fixed terms, terms of the batch, the logits.
#include <fmt/format.h>

#include <array>

#include "doctor/remedies/causes.h"
#include "doctor/remedies/figures.h"

namespace headroom::doctor {
namespace {

constexpr std::array<std::string_view, 6> kFixed{"weights", "gradients", "optimizer", "context", "buckets", "adapters"};

bool fixed(std::string_view name) {
  for (const std::string_view known : kFixed)
    if (name == known) return true;
  return false;
}

std::string largest_terms(const Estimate& estimate) {
  std::string text;
  for (size_t i = 0; i < estimate.terms.size() && i < 3; ++i)
    text += fmt::format("{}{} {}", i ? ", " : "", estimate.terms[i].name, figure(estimate.terms[i].bytes));
  return text;
}

}  // namespace

void job_causes(const Situation& s, std::vector<Cause>& causes) {
  const std::optional<Estimate>& estimate = s.patient().estimate;
  if (!estimate || !s.balance().limit || s.pool() != Pool::device || s.serving()) return;
  const int64_t limit = *s.balance().limit;
  const bool fitting = fits(estimate->likely_bytes, limit);
  if (fitting && !s.message()) return;
  int64_t constant = 0, varying = 0;
  for (const Term& term : estimate->terms) (fixed(term.name) ? constant : varying) += term.bytes;
  const std::string terms = largest_terms(*estimate);
  if (constant > limit) {
    causes.push_back({"model_too_large",
                      fmt::format("weights, gradients, states and context take {} of {} before any activation: {}",
                                  figure(constant), figure(limit), terms),
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
