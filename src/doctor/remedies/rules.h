// The rules: each looks at a case and offers a remedy, or says why it would not help.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/remedies/case_view.h"

namespace headroom::doctor {

// The reason for refusing a remedy that saves nothing by the memory model.
inline constexpr std::string_view kNothingSaved = "would save nothing to speak of here";
// Why the allocator's cache is left alone: what holds for one peak. Where objects of an earlier run live on, a
// situation says otherwise.
inline constexpr std::string_view kNoGainAtThePeak =
    "PyTorch empties its cache and tries again before it reports this error: no gain at the peak";

// The results of the rules, in the order of the rules.
class Findings {
 public:
  // Accepts a remedy. It becomes a refusal if the system has no option for it, or if it saves nothing by the memory
  // model.
  void offer(Remedy remedy);
  void refuse(std::string_view technique, std::string why);
  void note(std::string text);

  std::vector<Remedy> remedies;
  std::vector<Refusal> refused;
  std::vector<std::string> notes;
};

// A remedy with the technique's record, the option for the job's system, and bytes and fit from the memory model.
Remedy make_remedy(const CaseView& view, std::string_view technique, const Values& values, Changes changes,
                   std::string why);

// Effort, time and accuracy as one number: a flag costs 1, an installation 4, new hardware 12, each doubling of the
// time 10, plus the technique's accuracy cost.
double cost_of(const Remedy& remedy);

using Rule = void (*)(const CaseView& view, Findings& findings);

std::span<const Rule> batch_rules();
std::span<const Rule> evaluation_rules();
std::span<const Rule> precision_rules();
std::span<const Rule> checkpointing_rules();
std::span<const Rule> optimizer_rules();
std::span<const Rule> sharding_rules();
std::span<const Rule> kernel_rules();
std::span<const Rule> adapter_rules();
std::span<const Rule> allocator_rules();
std::span<const Rule> serving_rules();
std::span<const Rule> host_rules();
std::span<const Rule> hardware_rules();
std::span<const Rule> framework_rules();  // for messages of other frameworks than PyTorch
std::span<const Rule> advice_rules();     // notes on outdated, misspelt and contradictory advice

// The remedy of a smaller micro-batch, with the accumulation that keeps the global batch. The view's micro-batch is
// known; 1 <= micro < it.
Remedy micro_batch_remedy(const CaseView& view, int64_t micro);

// Dotted path of the layers in the model: "model.layers", "bert.encoder.layer", "transformer.h".
std::string layer_stack(const CaseView& view);

// Shorter sequences are not proposed.
constexpr int64_t kLeastSequence = 512;

// The remedy of a shorter sequence or pack. The view's sequence is known; 1 <= tokens < it.
Remedy sequence_remedy(const CaseView& view, int64_t tokens);

// The rule for more host memory, in the terms of whatever limits it.
void more_host_memory(const CaseView& view, Findings& findings);

// Runs the rules of all groups.
Findings run_rules(const CaseView& view);

}  // namespace headroom::doctor
