#include "doctor/remedies/situations/situation.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "doctor/remedies/log_batch.h"
#include "doctor/remedies/situations/conditions.h"
#include "doctor/remedies/tried.h"

namespace headroom::doctor {
namespace {

// Each further piece of advice is this much weaker than the one before.
constexpr double kStep = 0.05;
// What somebody has tried already weighs so much less.
constexpr double kTried = 0.3;

Evidence evidence_of(const Situation& situation, const CaseView& view) {
  if (!situation.possible(view)) return {};
  Evidence best;
  for (const Sign& sign : situation.signs()) {
    const std::string_view logged = sign.in == Sign::In::setup ? std::string_view() : view.log_says(sign.words);
    const std::string_view word = logged.empty() && sign.in != Sign::In::log ? view.setup_says(sign.words) : logged;
    if (word.empty() || sign.weight <= best.weight) continue;
    best = {sign.weight, fmt::format("`{}` in the {}", word, logged.empty() ? "configuration" : "log")};
  }
  if (!situation.figures) return best;
  Evidence figures = situation.figures(view);
  return figures.weight > best.weight ? figures : best;
}

// When nothing is known of the job, a value is a fraction of its current value, or a usual one.
const Values& usual_values() {
  static const Values values{
      {"micro", "<half>"},
      {"acc", "<double>"},
      {"seq", "<half>"},
      {"eval", "1"},
      {"steps", "1"},
      {"allocator", "PYTORCH_CUDA_ALLOC_CONF"},
      {"fraction", "0.8"},
      {"length", "4096"},
      {"input", "4095"},
      {"count", "16"},
      {"tokens", "2048"},
      {"gpus", "2"},
      {"recipe", "full"},
      {"launcher", "distributed_type=FSDP; "},
      {"full_shard", "fsdp_config.fsdp_sharding_strategy=FULL_SHARD"},
      {"split", "1,1"},
      {"gib", "8"},
      {"layers", "<half of the layers>"},
      {"workers", "0"},
      {"kill", "nvidia-smi; end what is not needed, or take another GPU: CUDA_VISIBLE_DEVICES=1"},
      {"dtype", "bfloat16"},
      {"litgpt", "bf16"},
      {"params", "half as many"}};
  return values;
}

Remedy* offered(Findings& findings, std::string_view technique) {
  for (Remedy& remedy : findings.remedies)
    if (remedy.name == technique) return &remedy;
  return nullptr;
}

// Refused for a reason. That the memory model sees no saving is none: the situation is what it does not see; nor is it
// one that the system has no option, or that one peak gains nothing, where the situation has words.
bool refused(const Findings& findings, std::string_view technique, bool with_words) {
  return std::any_of(findings.refused.begin(), findings.refused.end(), [&](const Refusal& refusal) {
    const bool general = refusal.unspelt || refusal.why == kNoGainAtThePeak;
    return refusal.name == technique && refusal.why != kNothingSaved && !(general && with_words);
  });
}

// Remedies for any process on a device, whatever its program.
bool of_every_program(std::string_view technique) {
  for (const std::string_view each :
       {"expandable-segments", "max-split-size", "own-allocator", "end-other-processes", "larger-gpu", "measure",
        "find-sample", "host-memory", "more-swap", "shared-memory"})
    if (technique == each) return true;
  return false;
}

// A trainer with its own keys, which only its situations can spell: the rules use keys of PyTorch or another trainer.
bool keys_of_its_own(const CaseView& view) { return !view.reinforcement_library().empty() && !view.has_job(); }
void keep_own_spelling(const CaseView& view, Findings& findings) {
  if (!keys_of_its_own(view)) return;
  std::erase_if(findings.remedies, [&](const Remedy& remedy) {
    if (remedy.evidence > 0 || of_every_program(remedy.name)) return false;
    findings.refused.push_back({remedy.name, fmt::format("{} has keys of its own", view.reinforcement_library())});
    return true;
  });
}

// The log says in words that it failed while evaluating or saving: the training step is not to blame.
constexpr double kTold = 0.9;
bool failed_beside_the_training(const CaseView& view) {
  return told_at(view, ToldStage::evaluation).weight > 0 || told_at(view, ToldStage::saving).weight > 0;
}
bool of_the_step(std::string_view technique) {
  for (const std::string_view each :
       {"micro-batch", "auto-batch", "checkpointing", "optimizer-8bit", "activation-offload", "sequence-length",
        "shorter-pack", "length-buckets", "sequence-chunks", "input-size", "liger", "compile", "chunked-loss",
        "flash-attention", "mixed-precision", "optimizer-in-backward", "fused-optimizer", "freeze"})
    if (technique == each) return true;
  return false;
}
// What a failure while saving is not answered with.
void drop_the_step(const CaseView& view, Findings& findings) {
  const bool saving = view.phase("checkpoint_save") || told_at(view, ToldStage::saving).weight > 0;
  if (!view.training() || !saving || view.pool() != Pool::device) return;
  std::erase_if(findings.remedies, [&](const Remedy& remedy) {
    if (!of_the_step(remedy.name)) return false;
    findings.refused.push_back({remedy.name, "it failed while it saved: the steps fit"});
    return true;
  });
}

// Whether the advice is for the view's system and not yet in use.
bool meant_for(const Advice& advice, const CaseView& view) {
  if (!view.log_says(advice.unless).empty() || !view.setup_says(advice.unless).empty()) return false;
  const System system = view.job().system;
  return advice.system == System::unknown || advice.system == system || builds_on(system, advice.system);
}

// Of texts the input's size is their length.
constexpr std::string_view kShorterTexts = "shorter texts: half of max_length (max_seq_length)";
bool of_texts(const CaseView& view, const Advice& advice) {
  return advice.technique == "input-size" && advice.set.empty() && speaks_of_texts(view);
}

std::string_view words_of(const Advice& advice, const CaseView& view) {
  if (of_texts(view, advice)) return kShorterTexts;
  const bool batch = advice.technique == "micro-batch" && advice.set.empty() && unknown_program(view);
  if (batch && (speaks_of_prediction(view) || view.story().task == ToldTask::prediction))
    return "a smaller batch: DataLoader(..., batch_size=<half>)";  // without steps of an optimizer
  // Words alone, without a program's.
  const bool words = view.message() && view.message()->format == "words" && view.message()->frames.empty();
  if (batch && words && !view.foreign_framework())
    return "a smaller batch_size: half of it (in training with twice the accumulation)";
  return advice.set;
}

bool tried_before(const CaseView& view, std::string_view technique) {
  const std::string& log = view.incident().log_text;
  if (technique == "micro-batch" || technique == "auto-batch") return smaller_batch_failed(log);
  return tried_in_vain(log, technique);
}

// The techniques of advice and remedies that somebody has tried in vain, by the log.
std::set<std::string_view> tried_of(const CaseView& view, const std::vector<Seen>& seen, const Findings& findings) {
  std::set<std::string_view> asked{"sequence-length"}, tried;
  for (const Seen& one : seen)
    for (const Advice& advice : one.situation->advice()) asked.insert(advice.technique);
  for (const Remedy& remedy : findings.remedies) asked.insert(technique(remedy.name).name);
  for (const std::string_view each : asked)
    if (tried_before(view, each)) tried.insert(each);
  return tried;
}

void take(const CaseView& view, const Situation& situation, const Advice& advice, double evidence, Findings& findings) {
  const std::string_view words = words_of(advice, view);
  if (words.empty() && keys_of_its_own(view) && !of_every_program(advice.technique)) return;
  Remedy* known = offered(findings, advice.technique);
  if (!known) {
    if (refused(findings, advice.technique, !words.empty())) return;
    Remedy remedy = make_remedy(view, advice.technique, usual_values(), {}, std::string(situation.cause));
    if (words.empty() && !remedy.available) return;
    remedy.available = true;
    findings.offer(std::move(remedy));
    known = offered(findings, advice.technique);
    if (!known) return;
    known->settings.clear();
  }
  if (evidence <= known->evidence) return;
  known->evidence = evidence;
  if (!advice.why.empty()) known->why = advice.why;
  // Uses the advice's own text, unless the memory model has chosen a value.
  if (words.empty() || (!known->changes.empty() && view.incident().estimate)) return;
  known->set = words;
  if (known->set != advice.set) known->effect = technique("sequence-length").effect;  // the text is about text length
  known->needs = technique(advice.technique).needs;  // not what the system's own option would need
  known->settings.clear();
  known->changes.clear();
}

}  // namespace

std::vector<const Situation*> all_situations() {
  std::vector<const Situation*> all;
  for (const auto group :
       {saving_situations, reworking_situations, rerun_situations, chat_situations, evaluation_situations,
        input_situations, program_situations, loading_situations, server_situations, llama_cpp_situations,
        host_situations, device_situations, diffusion_situations, reinforcement_situations, sharding_situations,
        toolbox_situations, other_program_situations, model_size_situations})
    for (const Situation& situation : group()) all.push_back(&situation);
  return all;
}

std::vector<Seen> seen_situations(const CaseView& view) {
  std::vector<Seen> seen;
  for (const Situation* situation : all_situations()) {
    Evidence evidence = evidence_of(*situation, view);
    if (evidence.weight > 0) seen.push_back({situation, std::move(evidence)});
  }
  std::stable_sort(seen.begin(), seen.end(),
                   [](const Seen& a, const Seen& b) { return a.evidence.weight > b.evidence.weight; });
  return seen;
}

void advise(const CaseView& view, const std::vector<Seen>& seen, Findings& findings) {
  const std::set<std::string_view> in_vain = tried_of(view, seen, findings);
  const bool elsewhere = failed_beside_the_training(view);
  for (const Seen& one : seen) {
    std::vector<std::string_view> given;
    for (const Advice& advice : one.situation->advice()) {
      if (!meant_for(advice, view)) continue;
      if (std::find(given.begin(), given.end(), advice.technique) != given.end()) continue;
      double evidence = one.evidence.weight - kStep * static_cast<double>(given.size());
      if (in_vain.contains(of_texts(view, advice) ? "sequence-length" : advice.technique)) evidence -= kTried;
      if (elsewhere && one.evidence.weight < kTold && of_the_step(advice.technique)) evidence -= kTried;
      take(view, *one.situation, advice, evidence, findings);
      given.push_back(advice.technique);
    }
  }
  for (Remedy& remedy : findings.remedies)
    remedy.tried = in_vain.contains(remedy.set == kShorterTexts ? "sequence-length" : remedy.name) &&
                   (remedy.name != "micro-batch" || smallest_batch_failed(view.incident().log_text));
  keep_own_spelling(view, findings);
  drop_the_step(view, findings);
}

}  // namespace headroom::doctor
