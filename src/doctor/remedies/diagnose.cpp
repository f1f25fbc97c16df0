// The whole answer: causes, remedies in order, the smallest set that fits.
#include <algorithm>

#include "doctor/remedies/causes.h"
#include "doctor/remedies/rules.h"
#include "doctor/remedies/smallest_set.h"

namespace headroom::doctor {
namespace {

constexpr size_t kNoAnswer = 1000;

// Place of a remedy among the answers to the causes: 0 when it answers the first cause best. Where no bytes are known,
// what usually helps comes after them.
size_t answer_rank(const std::vector<Cause>& causes, const Remedy& remedy) {
  size_t rank = 0;
  const auto answers = [&](std::string_view cause) {
    for (const std::string_view name : answers_to(cause)) {
      if (name == remedy.name) return true;
      ++rank;
    }
    return false;
  };
  for (const Cause& cause : causes)
    if (cause.weight >= 0.4 && answers(cause.name)) return rank;
  if (!remedy.saves_bytes && answers("device_full")) return rank;
  return kNoAnswer;
}

bool member(const Diagnosis& diagnosis, const Remedy& remedy) {
  const std::vector<std::string>& set = diagnosis.proposed_set();
  return std::find(set.begin(), set.end(), remedy.name) != set.end();
}

// First those that fit alone, then the set that fits together, then another device or model, then answers to the
// causes, then those with a known saving; each group by cost.
void order(const Diagnosis& diagnosis, std::vector<Remedy>& remedies) {
  const auto group = [&](const Remedy& remedy) {
    const bool replaces = remedy.name == "larger-gpu" || remedy.name == "smaller-model";
    if (remedy.likely_alone && !replaces) return 0;
    if (member(diagnosis, remedy)) return 1;
    if (replaces) return remedy.likely_alone ? 2 : 5;
    if (answer_rank(diagnosis.causes, remedy) < kNoAnswer && remedy.effort != "hardware") return 3;
    return remedy.saves_bytes ? 4 : 5;
  };
  std::stable_sort(remedies.begin(), remedies.end(), [&](const Remedy& a, const Remedy& b) {
    const int ga = group(a), gb = group(b);
    if (ga != gb) return ga < gb;
    if (ga == 3) {
      const size_t ra = answer_rank(diagnosis.causes, a), rb = answer_rank(diagnosis.causes, b);
      if (ra != rb) return ra < rb;
    }
    return a.cost < b.cost;
  });
}

// The remedies of the set stand in the list in the size that the set takes.
void choose_set(const Situation& situation, std::vector<Remedy>& remedies, Diagnosis& diagnosis) {
  // Where the job itself is in doubt no set is sought that would only end the doubt (a cut at some length).
  std::optional<FittingSet> set;
  if (situation.doubt_after({}).empty()) set = smallest_fitting_set(situation, remedies, true);
  std::vector<std::string>& names = set ? diagnosis.smallest_fitting_set : diagnosis.likely_set;
  if (!set) set = smallest_fitting_set(situation, remedies, false);
  if (!set) return;
  for (const Remedy& chosen : set->members) {
    names.push_back(chosen.name);
    for (Remedy& remedy : remedies)
      if (remedy.name == chosen.name) remedy = chosen;
  }
  diagnosis.set_changes = set->changes;
  if (set->changes.empty()) return;
  diagnosis.bytes_after = situation.need_after(set->changes);
  diagnosis.high_after = situation.most_after(set->changes);
  if (const std::optional<Estimate> after = situation.after(set->changes)) diagnosis.terms_after = after->terms;
}

}  // namespace

namespace {

// Yes where it is proven, no where not even the likely figure fits, else open.
std::optional<bool> judge(const Situation& situation) {
  if (situation.fits_after({})) return true;
  return situation.likely_after({}) ? std::nullopt : std::optional(false);
}

}  // namespace

Diagnosis diagnose(const Case& incident, const Estimator& estimator) {
  const Situation situation(incident, estimator);
  Diagnosis diagnosis;
  diagnosis.causes = rank_causes(situation);
  Findings findings = run_rules(situation);
  diagnosis.refused = std::move(findings.refused);
  diagnosis.notes = std::move(findings.notes);
  diagnosis.need_bytes = situation.balance().need;
  diagnosis.limit_bytes = situation.balance().limit;
  diagnosis.host = situation.pool() != Pool::device;
  const bool estimated = incident.estimate && diagnosis.limit_bytes;
  if (!incident.messages.empty())
    diagnosis.fits = false;
  else if (estimated)
    diagnosis.fits = judge(situation);
  if (estimated) diagnosis.doubt = situation.doubt_after({});
  if (!diagnosis.fits.value_or(false) && estimated) choose_set(situation, findings.remedies, diagnosis);
  order(diagnosis, findings.remedies);
  diagnosis.remedies = std::move(findings.remedies);
  return diagnosis;
}

}  // namespace headroom::doctor
