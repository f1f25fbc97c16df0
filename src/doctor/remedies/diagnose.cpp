// The whole answer: causes, remedies in order, the smallest set that fits.
#include <algorithm>

#include "doctor/remedies/causes.h"
#include "doctor/remedies/changes.h"
#include "doctor/remedies/rules.h"
#include "doctor/remedies/smallest_set.h"

namespace headroom::doctor {
namespace {

constexpr size_t kNoAnswer = 1000;

// Place of a remedy among the answers to the causes: 0 when it answers the first cause best.
size_t answer_rank(const std::vector<Cause>& causes, const Remedy& remedy) {
  size_t rank = 0;
  for (const Cause& cause : causes) {
    if (cause.weight < 0.4) break;
    for (const std::string_view name : answers_to(cause.name)) {
      if (name == remedy.name) return rank;
      ++rank;
    }
  }
  return kNoAnswer;
}

// First those that fit alone, then answers to the causes, then those with a known saving; each group by cost.
void order(const std::vector<Cause>& causes, std::vector<Remedy>& remedies) {
  const auto group = [&](const Remedy& remedy) {
    if (remedy.fits_alone) return 0;
    if (answer_rank(causes, remedy) < kNoAnswer && remedy.effort != "hardware") return 1;
    return remedy.saves_bytes ? 2 : 3;
  };
  std::stable_sort(remedies.begin(), remedies.end(), [&](const Remedy& a, const Remedy& b) {
    const int ga = group(a), gb = group(b);
    if (ga != gb) return ga < gb;
    if (ga == 1) {
      const size_t ra = answer_rank(causes, a), rb = answer_rank(causes, b);
      if (ra != rb) return ra < rb;
    }
    return a.cost < b.cost;
  });
}

// A set need not go to a micro-batch of 1 where its other members make room: the largest that still fits.
void widen_micro_batch(const Situation& s, std::vector<Remedy>& remedies, FittingSet& set) {
  for (const size_t member : set.members) {
    if (remedies[member].name != "micro-batch" || remedies[member].fits_alone || !s.micro_batch()) continue;
    Changes others;
    for (const size_t other : set.members)
      if (other != member) others = together(others, remedies[other].changes);
    for (int64_t micro = *s.micro_batch() / 2; micro >= 1; micro /= 2) {
      Remedy wider = micro_batch_remedy(s, micro);
      const Changes changes = together(others, wider.changes);
      if (!s.fits_after(changes)) continue;
      wider.cost = cost_of(wider);
      remedies[member] = std::move(wider);
      set.changes = changes;
      return;
    }
  }
}

void choose_set(const Situation& situation, std::vector<Remedy>& remedies, Diagnosis& diagnosis) {
  std::optional<FittingSet> set = smallest_fitting_set(situation, remedies);
  if (!set) return;
  widen_micro_batch(situation, remedies, *set);
  for (const size_t member : set->members) diagnosis.smallest_fitting_set.push_back(remedies[member].name);
  diagnosis.set_changes = set->changes;
  if (set->changes.empty()) return;
  diagnosis.bytes_after = situation.need_after(set->changes);
  if (const std::optional<Estimate> after = situation.after(set->changes)) diagnosis.terms_after = after->terms;
}

}  // namespace

Diagnosis diagnose(const Case& patient, const Estimator& estimator) {
  const Situation situation(patient, estimator);
  Diagnosis diagnosis;
  diagnosis.causes = rank_causes(situation);
  Findings findings = run_rules(situation);
  diagnosis.refused = std::move(findings.refused);
  diagnosis.notes = std::move(findings.notes);
  diagnosis.need_bytes = situation.balance().need;
  diagnosis.limit_bytes = situation.balance().limit;
  diagnosis.host = situation.pool() != Pool::device;
  const bool estimated = patient.estimate && diagnosis.limit_bytes;
  if (!patient.messages.empty())
    diagnosis.fits = false;
  else if (estimated)
    diagnosis.fits = situation.fits_after({});
  if (!diagnosis.fits.value_or(false) && estimated) choose_set(situation, findings.remedies, diagnosis);
  order(diagnosis.causes, findings.remedies);
  diagnosis.remedies = std::move(findings.remedies);
  return diagnosis;
}

}  // namespace headroom::doctor
