#include "doctor/remedies/situations/situation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <set>

#include "doctor/remedies/log_batch.h"
#include "doctor/remedies/log_job.h"
#include "doctor/remedies/posted_numbers.h"
#include "doctor/remedies/preconditions.h"
#include "doctor/remedies/program_words.h"
#include "doctor/remedies/respelling.h"
#include "doctor/remedies/situations/conditions.h"
#include "doctor/remedies/situations/releases.h"
#include "doctor/remedies/tried.h"
#include "doctor/remedies/unknown_program.h"

namespace headroom::doctor {
namespace {

// Each further piece of advice is this much weaker than the one before.
constexpr double kStep = 0.05;
// What somebody has tried already weighs so much less.
constexpr double kTried = 0.3, kTriedInPart = 0.08;

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
      {"causal", ""},
      {"workers", "0"},
      {"kill", "nvidia-smi; end what is not needed, or take another GPU: CUDA_VISIBLE_DEVICES=1"},
      {"dtype", "bfloat16"},
      {"litgpt", "bf16"},
      {"params", "half as many"},
      {"gpu", "a GPU with more memory"}};
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

// Moves the remedies for which why(remedy) has a reason to those that are refused.
template <typename Why>
void drop(Findings& findings, Why why) {
  std::erase_if(findings.remedies, [&](Remedy& remedy) {
    std::string reason = why(remedy);
    if (reason.empty()) return false;
    findings.refused.push_back({remedy.name, std::move(reason)});
    return true;
  });
}

// A trainer with its own keys, which only its situations can spell: the rules use keys of PyTorch or another trainer.
bool keys_of_its_own(const CaseView& view) { return !view.reinforcement_library().empty() && !view.has_job(); }
void keep_own_spelling(const CaseView& view, Findings& findings) {
  if (!keys_of_its_own(view)) return;
  drop(findings, [&](const Remedy& remedy) -> std::string {
    if (remedy.evidence > 0 || of_every_program(remedy.name)) return {};
    return fmt::format("{} has keys of its own", view.reinforcement_library());
  });
}

// Scripts that train diffusion models have options of their own, which only their situations can spell.
void keep_options_of_diffusion(const std::vector<Seen>& seen, Findings& findings) {
  const bool trains = std::any_of(seen.begin(), seen.end(), [](const Seen& one) {
    return one.situation->name.starts_with("diffusion_training") && one.evidence.weight > kUsual;
  });
  if (!trains) return;
  drop(findings, [](const Remedy& remedy) -> std::string {
    if (remedy.evidence > 0 || of_every_program(remedy.name)) return {};
    return "scripts of diffusion models have options of their own";
  });
}

// A stage that the log names in words.
constexpr double kTold = 0.9;
bool of_the_step(std::string_view technique) { return holds_fact(presupposed_by(technique), Fact::step_failed); }

// Nothing shows PyTorch: no word of it, and neither a language nor a diffusion model, which nearly always run on it.
bool without_pytorch(const CaseView& view) {
  if (view.pool() != Pool::device || view.foreign_framework() || !view.message()) return false;
  return !view.shows_pytorch() && !speaks_of_texts(view) && !speaks_of_diffusion(view);
}
bool words_alone(const CaseView& view) { return view.message() && view.message()->format == "words"; }

// Its code and options are told in words for any program then, or left out. Beside a person's words alone they are
// kept, as what they are.
void drop_unshown_pytorch(const CaseView& view, Findings& findings) {
  if (!without_pytorch(view)) return;
  constexpr std::string_view kOfOthersToo = "device=\"cpu\"";  // boosted trees
  drop(findings, [&](Remedy& remedy) -> std::string {
    const bool named = remedy.set.find("PyTorch") != std::string::npos;
    if (named || !written_for_pytorch(without_words(remedy.set, kOfOthersToo))) return {};
    const std::string_view words = words_for_any_program(remedy.name);
    if (!words_alone(view) && words.empty()) return "nothing shows that the program is one of PyTorch";
    remedy.set = words_alone(view) ? "in PyTorch: " + remedy.set : std::string(words);
    remedy.settings.clear();
    remedy.needs.clear();
    return {};
  });
}

// Situations whose first advice is code of PyTorch, where the program is one of another framework.
void drop_other_code(const CaseView& view, std::vector<Seen>& seen) {
  const bool recognition = std::any_of(seen.begin(), seen.end(),
                                       [](const Seen& one) { return one.situation->name == "recognition_that_grows"; });
  const bool of_any_program = without_pytorch(view) && !words_alone(view);
  if (other_framework(view).empty() && !recognition && !of_any_program) return;
  std::erase_if(seen, [](const Seen& one) {
    const auto advice = one.situation->advice();
    return !advice.empty() && written_for_pytorch(advice.front().set);
  });
}

// A size that was never computed: nothing that saves memory changes it.
void keep_what_answers_a_wrong_size(const CaseView& view, Findings& findings) {
  if (!asks_for_a_wrong_size(view)) return;
  drop(findings, [](const Remedy& remedy) -> std::string {
    return remedy.evidence > 0 ? std::string() : "the size was never computed rightly";
  });
}

// A server's smaller share must still hold its weights.
std::string below_the_weights(const CaseView& view, const Remedy& remedy) {
  const size_t at = remedy.set.find_first_of("0123456789");
  const bool of_the_device = !any_word(remedy.set, "gpu-memory-utilization|gpu_memory_utilization").empty();
  if (!of_the_device || at == std::string::npos) return {};
  const double share = std::strtod(remedy.set.c_str() + at, nullptr);
  if (share <= 0 || share >= 1) return {};
  const std::optional<double> weights = share_of_weights(view);
  if (!weights || share > *weights) return {};
  return fmt::format("the weights alone take {:.2f} of the device", *weights);
}

// Advice that only lowers what the post has lower already is left out; other numbers are made smaller than the post's.
void compare_numbers(const CaseView& view, Findings& findings) {
  const std::string post = view.incident().setup_text + "\n" + view.incident().log_text;
  drop(findings, [&](Remedy& remedy) -> std::string {
    // Computed from the job's own value, or compared by its rule.
    const bool compared = view.has_job() || remedy.name == "gpu-memory-utilization";
    if (remedy.saves_bytes || (compared && !remedy.settings.empty())) return {};
    std::string set = below_posted(remedy.set, post);
    if (set.empty()) return "the post sets the least value already";
    if (set != remedy.set) remedy.settings.clear();
    remedy.set = std::move(set);
    return {};
  });
  drop(findings, [&](const Remedy& remedy) { return below_the_weights(view, remedy); });
}

// Whether the advice is for the view's system and not yet in use.
bool meant_for(const Advice& advice, const CaseView& view) {
  if (view.says(advice.unless)) return false;
  const System system = view.job().system;
  if (advice.system == System::unknown || advice.system == system) return true;
  return builds_on(system, advice.system) && !server_system(system);  // each server has options of its own
}

// Of texts the input's size is their length.
constexpr std::string_view
    kShorterTexts = "shorter texts: half of max_length (max_seq_length)",
    kShorterOrSmaller =
        "shorter or smaller inputs: truncate long audio and texts (a maximal length), images of half the side";
bool translates(const CaseView& view) {
  constexpr std::string_view kTranslates =
      "-sourcelang|--source-lang|-src_vocab|opennmt|seq2seq|machine translation|neural translation|机器翻译|機械翻訳";
  return !view.log_says(kTranslates).empty() && !speaks_of_images(view);
}
bool of_texts(const CaseView& view, const Advice& advice) {
  if (advice.technique != "input-size" || !(speaks_of_texts(view) || translates(view))) return false;
  constexpr std::string_view kNoImages =
      "text|token|prompt|length|context|answer|histor|segment|clip|slice|record|audio|chunk|piece|duration";
  return advice.set.empty() || (!speaks_of_images(view) && any_word(advice.set, kNoImages).empty());
}
// Of recordings, their duration. Advice with words of its own knows what the inputs are.
constexpr std::string_view kShorterRecordings =
    "shorter recordings: cut into clips, those beyond a length left out (half of the longest)";
bool of_recordings(const CaseView& view, const Advice& advice) {
  constexpr std::string_view kFaces = "wav2lip|lip sync|lip-sync|lipsync|talking head|talking face|说话人脸|数字人";
  return advice.technique == "input-size" && advice.set.empty() && !view.foreign_framework() &&
         !speaks_of_images(view) && view.log_says(kFaces).empty() && !speech_word(view.incident().log_text).empty();
}

// Half of two rows is one.
void name_one_row(const CaseView& view, Findings& findings) {
  if (rows_of_the_post(view.incident().log_text) != 2) return;
  for (Remedy& remedy : findings.remedies) {
    if (remedy.name != "micro-batch" || !remedy.changes.empty()) continue;
    for (const std::string_view half : {"<half>", "half of it"})
      for (size_t at = remedy.set.find(half); at != std::string::npos; at = remedy.set.find(half, at)) {
        remedy.set.replace(at, half.size(), "1");
        remedy.settings.clear();
      }
  }
}

// Steps of an optimizer are named where something shows a training, not where it is only assumed, nor beside words
// alone.
void name_no_steps(const CaseView& view, Findings& findings) {
  if (!view.message() || !unknown_program(view)) return;
  const bool words = view.message()->frames.empty() && view.message()->format == "words";
  if (!words && says_training(view)) return;
  for (Remedy& remedy : findings.remedies) {
    if (remedy.name != "micro-batch" || remedy.set.find("optimizer.step() every") == std::string::npos) continue;
    remedy.set = "a smaller batch_size: half of it (in training with twice the accumulation)";
    remedy.settings.clear();
    remedy.changes.clear();
  }
}

std::string_view words_of(const Advice& advice, const CaseView& view) {
  if (of_texts(view, advice)) return names_texts(view) || translates(view) ? kShorterTexts : kShorterOrSmaller;
  if (of_recordings(view, advice)) return kShorterRecordings;
  const bool batch = advice.technique == "micro-batch" && advice.set.empty() && unknown_program(view) &&
                     !view.foreign_framework();  // each has words of its own (rules_frameworks.cpp)
  if (batch && (speaks_of_prediction(view) || view.story().task == ToldTask::prediction))
    return "a smaller batch: DataLoader(..., batch_size=<half>)";  // without steps of an optimizer
  // The older scripts of LitGPT and others add up micro-batches to batch_size.
  if (batch && posted_value(view.incident().log_text, "micro_batch_size").value_or(0) > 1)
    return "micro_batch_size = <half>: it is what runs at once (batch_size is the sum of several)";
  return advice.set;
}

bool tried_before(const CaseView& view, std::string_view technique) {
  const std::string& log = view.incident().log_text;
  // Its error has a cure (checkpointing_of_a_frozen_base).
  if (technique == "checkpointing" && !view.log_says("element 0 of tensors does not require grad").empty())
    return false;
  if (technique == "micro-batch" || technique == "auto-batch") return smaller_batch_failed(log);
  return tried_in_vain(log, technique);
}

// A program of TensorFlow or another framework has little beside its batch: where a few rows failed, one is still the
// next step.
bool one_row_is_left(const CaseView& view, std::string_view technique) {
  constexpr int64_t kFew = 4;
  if (technique != "micro-batch" || !view.foreign_framework()) return false;
  const int64_t rows = rows_of_the_post(view.incident().log_text).value_or(1);
  return rows > 1 && rows <= kFew;
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
  // Uses the advice's own text, unless the memory model or the quoted settings have chosen a value.
  const bool chosen = view.incident().estimate || view.incident().quoted;
  if (words.empty() || (!known->changes.empty() && chosen)) return;
  known->set = words;
  constexpr std::string_view kOfImages =
      "image|resolution|crop|pixel|frame|photo|--img|patch|tile|scale|width|size_train";
  if (advice.technique == "input-size" && any_word(without_words(known->set, "frames_per_step"), kOfImages).empty())
    known->effect = "shorter inputs: less is seen at once";
  if (advice.technique == "sequence-length" && !any_word(known->set, "utterance").empty())
    known->effect = "longer ones are not heard";
  if (known->set == kShorterOrSmaller)
    known->effect = "less of each is seen at once";
  else if (of_texts(view, advice))
    known->effect = technique("sequence-length").effect;  // the text is about text length
  known->needs = technique(advice.technique).needs;       // not what the system's own option would need
  if (advice.technique == "optimizer-8bit" && known->set.find('8') == std::string::npos) {
    known->effect = "another optimizer: the result differs a little";
    known->needs.clear();
  }
  if (known->set.find("networks.lora") != std::string::npos) known->needs.clear();  // modules of the script's own
  known->settings.clear();
  known->changes.clear();
}

}  // namespace

std::vector<const Situation*> all_situations() {
  std::vector<const Situation*> all;
  for (const auto group :
       {saving_situations,    reworking_situations,    rerun_situations,         chosen_device_situations,
        chat_situations,      evaluation_situations,   input_situations,         program_situations,
        loading_situations,   server_situations,       llama_cpp_situations,     host_situations,
        device_situations,    diffusion_situations,    kohya_situations,         reinforcement_situations,
        sharding_situations,  toolbox_situations,      other_program_situations, model_size_situations,
        inferring_situations, frame_situations,        replay_situations,        gathered_situations,
        release_situations,   comfyui_situations,      near_miss_situations,     one_image_situations,
        long_row_situations,  several_gpu_situations,  host_job_situations,      inner_engine_situations,
        piece_situations,     told_history_situations, read_whole_situations})
    for (const Situation& situation : group()) all.push_back(&situation);
  return all;
}

std::vector<Seen> seen_situations(const CaseView& view) {
  std::vector<Seen> seen;
  for (const Situation* situation : all_situations()) {
    Evidence evidence = evidence_of(*situation, view);
    if (evidence.weight > 0) seen.push_back({situation, std::move(evidence)});
  }
  drop_other_code(view, seen);
  if (asks_for_a_wrong_size(view))
    std::erase_if(seen,
                  [](const Seen& one) { return !one.situation->name.starts_with("size_that_was_never_computed"); });
  std::stable_sort(seen.begin(), seen.end(),
                   [](const Seen& a, const Seen& b) { return a.evidence.weight > b.evidence.weight; });
  return seen;
}

bool weights_exceed_the_device(const std::vector<Seen>& seen) {
  return std::any_of(seen.begin(), seen.end(), [](const Seen& one) {
    return one.situation->name == "served_on_one_of_several_devices" || one.situation->name == "served_model_too_large";
  });
}

void advise(const CaseView& view, const std::vector<Seen>& seen, Findings& findings) {
  const std::set<std::string_view> in_vain = tried_of(view, seen, findings);
  const bool elsewhere = told_beside_the_steps(view);
  for (const Seen& one : seen) {
    std::vector<std::string_view> given;
    for (const Advice& advice : one.situation->advice()) {
      if (!meant_for(advice, view)) continue;
      if (std::find(given.begin(), given.end(), advice.technique) != given.end()) continue;
      double evidence = one.evidence.weight - kStep * static_cast<double>(given.size());
      if (in_vain.contains(of_texts(view, advice) ? "sequence-length" : advice.technique))
        evidence -= one_row_is_left(view, advice.technique) ? kTriedInPart : kTried;
      if (elsewhere && one.evidence.weight < kTold && of_the_step(advice.technique)) evidence -= kTried;
      take(view, *one.situation, advice, evidence, findings);
      given.push_back(advice.technique);
    }
  }
  for (Remedy& remedy : findings.remedies) {
    remedy.attempted = in_vain.contains(remedy.set == kShorterTexts ? "sequence-length" : remedy.name);
    remedy.tried = remedy.attempted && !one_row_is_left(view, remedy.name) &&
                   (remedy.name != "micro-batch" || smallest_batch_failed(view.incident().log_text));
  }
  if (weights_exceed_the_device(seen))
    drop(findings, [](const Remedy& remedy) -> std::string {
      return remedy.name == "gpu-memory-utilization" ? "the weights alone are larger than the device" : "";
    });
  keep_what_answers_a_wrong_size(view, findings);
  keep_own_spelling(view, findings);
  keep_options_of_diffusion(seen, findings);
  const Facts facts(view, seen);
  check_preconditions(facts, findings);
  name_no_steps(view, findings);
  name_one_row(view, findings);
  drop_unshown_pytorch(view, findings);
  compare_numbers(view, findings);
  check_preconditions(facts, findings);  // of the words that have changed
  say_conditions(facts, findings);
  respell(view, findings);
}

}  // namespace headroom::doctor
