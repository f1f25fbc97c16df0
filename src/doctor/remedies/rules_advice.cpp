// Notes on settings and common advice that are outdated, misspelt or contradictory.
#include <fmt/format.h>

#include "doctor/remedies/rules.h"

namespace headroom::doctor {
namespace {

void corrected_names(const CaseView& s, Findings& findings) {
  for (const KeyNote& note : s.job().keys.corrected)
    findings.note(fmt::format("{}{}: {}", note.origin.key, note.value.empty() ? "" : " = " + note.value, note.text));
}

void conflicting_values(const CaseView& s, Findings& findings) {
  for (const KeyNote& note : s.job().keys.conflicts) findings.note(fmt::format("{}: {}", note.origin.key, note.text));
}

void apex(const CaseView& s, Findings& findings) {
  bool frame = false;
  if (s.message())
    for (const Frame& entry : s.message()->frames) frame = frame || entry.file.find("apex/amp") != std::string::npos;
  if (s.job().precision.apex || frame || s.optimizer().find("apex") != std::string::npos)
    findings.note("apex.amp is gone: mixed precision is part of PyTorch (torch.autocast) since 1.6 and needs no apex");
}

void sharding_conflicts(const CaseView& s, Findings& findings) {
  if ((s.zero() || s.fsdp()) && s.job().batch.finds_size.value_or(false))
    findings.note("auto_find_batch_size does not work under FSDP or DeepSpeed: set the batch by hand");
  if (s.zero() && s.optimizer().find("8bit") != std::string::npos)
    findings.note(
        "8-bit optimizers do not go with ZeRO: untested there (zero_allow_untested_optimizer), and its flat 32-bit "
        "partitions and CPU Adam do not know them: drop one");
}

void allocator_conflicts(const CaseView& s, Findings& findings) {
  const auto& set = s.job().environment.allocator;
  if (set.count("expandable_segments") && set.count("max_split_size_mb"))
    findings.note("expandable_segments and max_split_size_mb do not go together: drop max_split_size_mb");
}

void half_on_old_gpus(const CaseView& s, Findings& findings) {
  if (!s.gpu() || s.gpu()->bf16 || s.gpu()->compute_capability == 0) return;
  const bool asks = s.job().precision.autocast == "bfloat16" || s.job().precision.weights == "bfloat16";
  const bool usual = s.has_job() && !s.job().precision.autocast && s.mixed();
  if (asks || usual)
    findings.note(fmt::format("{} has no bf16 units: bf16{} is emulated or refused there; use fp16", s.gpu()->name,
                              asks ? "" : ", this system's default,"));
}

void half_true(const CaseView& s, Findings& findings) {
  // DeepSpeed's fp16 has 32-bit master weights and a loss scale.
  const bool masters = s.zero() || s.job().system == System::deepspeed || s.job().system == System::neox;
  if (s.training() && s.job().precision.weights == "float16" && !s.quantized_base() && !s.lora() && !masters)
    findings.note("weights in true float16 often end in NaN: bf16-true, or mixed precision");
}

// Oumi freezes layers by their full names, and ignores unknown names.
void oumi_layer_names(const CaseView& s, Findings& findings) {
  if (s.job().system != System::oumi) return;
  const std::string& frozen = s.job().frozen;
  if (frozen.find("layer.") == std::string::npos || frozen.find("layers.") != std::string::npos) return;
  findings.note(fmt::format(
      "Oumi passes over names in freeze_layers that the model does not have: \"layer.0\" is \"{}.0\" in this model",
      layer_stack(s)));
}

void ring_attention(const CaseView& s, Findings& findings) {
  if (s.job().system == System::oumi && s.job().compute.attention &&
      s.job().compute.attention->find("ring") != std::string::npos)
    findings.note("Oumi has no ring attention: its page announced one for 0.2.0 and it never came; use sdpa");
}

constexpr Rule kRules[] = {corrected_names,    conflicting_values,  apex,
                           sharding_conflicts, allocator_conflicts, half_on_old_gpus,
                           half_true,          ring_attention,      oumi_layer_names};

}  // namespace

std::span<const Rule> advice_rules() { return kRules; }

}  // namespace headroom::doctor
