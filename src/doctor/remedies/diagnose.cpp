// Makes the whole answer: causes, ordered remedies, the smallest set that fits.
#include <algorithm>

#include "doctor/remedies/causes.h"
#include "doctor/remedies/frequency.h"
#include "doctor/remedies/model_words.h"
#include "doctor/remedies/program_words.h"
#include "doctor/remedies/rules.h"
#include "doctor/remedies/situations/conditions.h"
#include "doctor/remedies/situations/situation.h"
#include "doctor/remedies/smallest_set.h"

namespace headroom::doctor {
namespace {

// How strongly causes without a situation support a remedy that answers them. Each further answer to a cause counts a
// little less.
double answers_cause(const Diagnosis& diagnosis, const Remedy& remedy) {
  constexpr double kStep = 0.05, kLeast = 0.4, kRest = 0.35;
  double best = 0;
  const auto answers = [&](std::string_view cause, double weight) {
    double here = weight;
    for (const std::string_view name : answers_to(cause)) {
      if (name == remedy.name) best = std::max(best, here);
      here -= kStep;
    }
  };
  for (const Cause& cause : diagnosis.causes)
    if (cause.weight >= kLeast) answers(cause.name, cause.weight);
  // The usual remedies come last, where no bytes are known or the estimate is not conclusive.
  if (!remedy.saves_bytes || !diagnosis.fits) answers("device_full", kRest);
  return best;
}

bool member(const std::vector<std::string>& set, const Remedy& remedy) {
  return std::find(set.begin(), set.end(), remedy.name) != set.end();
}

// The sort key. First what is proven (what was tried in vain comes late), then what evidence supports, what is likely
// by the estimate, and answers to the causes. Another device or model comes last, unless a situation names it.
double place(const Diagnosis& diagnosis, const Remedy& remedy) {
  constexpr double kProven = 3, kTriedAtMost = 0.3, kLikely = 1, kLikelyMember = 0.99, kSaves = 0.1, kReplaces = 0.05;
  const bool replaces = remedy.name == "larger-gpu" || remedy.name == "smaller-model";
  if (!replaces && (remedy.fits_alone || member(diagnosis.smallest_fitting_set, remedy))) return kProven;
  if (remedy.tried) return std::min(remedy.evidence, kTriedAtMost);
  if (remedy.evidence > kUsual) return 1 + remedy.evidence;
  if (replaces) return std::max(remedy.evidence, remedy.likely_alone ? 2 * kReplaces : 0.0);
  if (remedy.likely_alone) return kLikely;
  if (member(diagnosis.likely_set, remedy)) return kLikelyMember;
  const double answer = remedy.effort == "hardware" ? 0 : answers_cause(diagnosis, remedy);
  return std::max({remedy.evidence, answer, remedy.saves_bytes ? kSaves : 0.0});
}

void order(const Diagnosis& diagnosis, std::vector<Remedy>& remedies) {
  std::stable_sort(remedies.begin(), remedies.end(), [&](const Remedy& a, const Remedy& b) {
    const double pa = place(diagnosis, a), pb = place(diagnosis, b);
    return pa != pb ? pa > pb : a.cost < b.cost;
  });
}

// When no set is proven, the cheapest remedy may not save enough. The one that saves most, with the same arithmetic and
// on the same device, is put directly after it.
void name_surest(Diagnosis& diagnosis, std::vector<Remedy>& remedies) {
  if (!diagnosis.smallest_fitting_set.empty() || remedies.size() < 3) return;
  const auto saves = [](const Remedy& remedy) {
    const bool same = remedy.kind == "exact" || remedy.kind == "reassociating";
    return same && remedy.effort != "hardware" && !remedy.changes.empty() ? remedy.saves_bytes.value_or(0) : 0;
  };
  const auto surest = std::max_element(remedies.begin(), remedies.end(),
                                       [&](const Remedy& a, const Remedy& b) { return saves(a) < saves(b); });
  if (saves(*surest) <= 0) return;
  const bool likely = std::any_of(remedies.begin(), remedies.end(), [](const Remedy& r) { return r.likely_alone; });
  if (likely && !surest->likely_alone) return;
  diagnosis.surest = surest->name;
  if (surest - remedies.begin() > 2) std::rotate(remedies.begin() + 2, surest, surest + 1);
}

// Remedies of the set replace those of the list, because the set may use another size.
void choose_set(const CaseView& view, std::vector<Remedy>& remedies, Diagnosis& diagnosis) {
  if (failed_beside_the_steps(view) || view.figures_ignore_the_system()) return;  // the figures are of another job
  // Where the job itself is in doubt no set is sought that would only end the doubt (a cut at some length).
  std::optional<FittingSet> set;
  if (view.doubt_after({}).empty()) set = smallest_fitting_set(view, remedies, true);
  // A larger device is easy to prove; a set that is likely to fit on this device helps more.
  if (set && set->changes.empty() && !view.likely_after({})) {
    std::optional<FittingSet> here = smallest_fitting_set(view, remedies, false);
    if (here && !here->changes.empty()) set.reset();
  }
  std::vector<std::string>& names = set ? diagnosis.smallest_fitting_set : diagnosis.likely_set;
  // If the job is likely to fit unchanged, any small saving would count as a set.
  if (!set && !view.likely_after({})) set = smallest_fitting_set(view, remedies, false);
  if (!set) return;
  for (const Remedy& chosen : set->members) {
    names.push_back(chosen.name);
    for (Remedy& remedy : remedies)
      if (remedy.name == chosen.name) remedy = chosen;
  }
  diagnosis.set_changes = set->changes;
  if (set->changes.empty()) return;
  diagnosis.bytes_after = view.need_after(set->changes);
  diagnosis.high_after = view.most_after(set->changes);
  if (const std::optional<Estimate> after = view.after(set->changes)) diagnosis.terms_after = after->terms;
}

}  // namespace

namespace {

// true when proven, false when not even the likely figure fits, else open.
std::optional<bool> proven_fit(const CaseView& view) {
  if (view.fits_after({})) return true;
  return view.likely_after({}) ? std::nullopt : std::optional(false);
}

std::string doubt_of(const CaseView& view, bool beside, bool unstated) {
  if (unstated) return "the log names DeepSpeed, and not what it divides: give its file with --config";
  return beside ? std::string(kBesideTheSteps) : view.doubt_after({});
}

// What headroom's own commands can take: a language model of a program of PyTorch or of a server.
bool speaks_of_a_language_model(const CaseView& view) {
  if (view.foreign_framework() || speaks_of_diffusion(view)) return false;
  if (!named_framework(view.incident().log_text, view.incident().setup_text).empty()) return false;
  return view.shape() || (view.has_job() && !view.job().model.empty()) || speaks_of_texts(view) || view.serving();
}

// A stage other than a step or a prediction: what usually helps there is another matter.
bool at_another_stage(const CaseView& view) {
  for (const std::string_view phase : {"eval", "load", "checkpoint_save"})
    if (view.phase(phase)) return true;
  for (const ToldStage stage : {ToldStage::evaluation, ToldStage::saving, ToldStage::resuming, ToldStage::merging,
                                ToldStage::quantising, ToldStage::converting, ToldStage::building, ToldStage::loading})
    if (!view.story().at(stage).empty()) return true;
  return false;
}

// The kind of thread that the case belongs to, where the remedies of that kind are known.
std::optional<ThreadKind> kind_of(const CaseView& view) {
  if (view.has_job() || !view.message() || at_another_stage(view)) return std::nullopt;
  if (view.pool() == Pool::host) return ThreadKind::host;
  if (view.pool() != Pool::device) return std::nullopt;
  if (view.foreign_framework())
    return view.framework() == "tensorflow" ? std::optional(ThreadKind::tensorflow) : std::nullopt;
  const std::string& log = view.incident().log_text;
  const bool own = unknown_program(view) && view.reinforcement_library().empty() && view.inference_word().empty() &&
                   !speaks_of_diffusion(view) && !speaks_of_texts(view) && !model_in_words(log) &&
                   speech_word(log).empty();
  return own ? std::optional(ThreadKind::own_program) : std::nullopt;
}

// The situations, with those of their remedies that are offered.
std::vector<SeenSituation> recorded(const std::vector<Seen>& seen, const std::vector<Remedy>& remedies) {
  std::vector<SeenSituation> records;
  for (const auto& [situation, evidence] : seen) {
    SeenSituation& record = records.emplace_back();
    record = {std::string(situation->name), std::string(situation->cause), evidence.shown, evidence.weight, {}};
    for (const Advice& advice : situation->advice())
      for (const Remedy& remedy : remedies)
        if (remedy.name == advice.technique &&
            std::find(record.advice.begin(), record.advice.end(), remedy.set) == record.advice.end())
          record.advice.push_back(remedy.set);
  }
  return records;
}

}  // namespace

Diagnosis diagnose(const Case& incident, const Estimator& estimator) {
  const CaseView view(incident, estimator);
  Diagnosis diagnosis;
  const std::vector<Seen> seen = seen_situations(view);
  diagnosis.causes = rank_causes(view, seen);
  Findings findings = run_rules(view);
  advise(view, seen, findings);
  diagnosis.refused = std::move(findings.refused);
  diagnosis.notes = std::move(findings.notes);
  diagnosis.need_bytes = view.balance().need;
  diagnosis.limit_bytes = view.balance().limit;
  diagnosis.host = view.pool() != Pool::device;
  const bool estimated = incident.estimate && diagnosis.limit_bytes;
  const bool unstated = view.figures_ignore_the_system();
  const bool beside = unstated || failed_beside_the_steps(view);
  diagnosis.language_model = speaks_of_a_language_model(view);
  if (!incident.messages.empty() && !(beside && incident.estimate))
    diagnosis.fits = false;
  else if (estimated && !beside)
    diagnosis.fits = proven_fit(view);
  if (estimated) diagnosis.doubt = doubt_of(view, beside, unstated);
  if (!diagnosis.fits.value_or(false) && estimated) choose_set(view, findings.remedies, diagnosis);
  if (!beside && diagnosis.doubt.empty() && !diagnosis.likely_set.empty())
    diagnosis.doubt = view.doubt_after(diagnosis.set_changes);
  order(diagnosis, findings.remedies);
  name_surest(diagnosis, findings.remedies);
  if (const std::optional<ThreadKind> kind = kind_of(view)) place_the_frequent(*kind, findings.remedies);
  diagnosis.remedies = std::move(findings.remedies);
  diagnosis.situations = recorded(seen, diagnosis.remedies);
  return diagnosis;
}

}  // namespace headroom::doctor
