// What is kept for the backward pass: recomputation and offloading of activations (T06, T13).
#include <fmt/format.h>

#include "doctor/config/config_reader.h"
#include "doctor/remedies/rules.h"

namespace headroom::doctor {
namespace {

bool applies(const CaseView& s) { return s.training() && s.pool() == Pool::device; }

// Its frames, or words that say so.
bool on_by_the_log(const CaseView& s) {
  constexpr std::string_view kOn =
      "torch/utils/checkpoint.py|gradient_checkpointing=true|gradient_checkpointing: true|--gradient_checkpointing|"
      "with gradient checkpointing|gradient checkpointing is on|gradient checkpointing enabled|开了gradient "
      "checkpointing|"
      "+ gradient checkpointing|and gradient checkpointing|开启了gradient|开启gradient|开了梯度检查点|开启了梯度检查点";
  if (!s.log_says("element 0 of tensors does not require grad").empty()) return false;  // it failed otherwise
  return !s.log_says(kOn).empty() && s.log_says("gradient_checkpointing=false|gradient_checkpointing: false").empty();
}

void checkpointing(const CaseView& s, Findings& findings) {
  if (!applies(s)) return;
  if (s.checkpointing()) {
    if (!s.job().compute.checkpointing)
      return findings.refuse("checkpointing", fmt::format("{} has it on by default", system_name(s.job().system)));
    if (s.job().compute.checkpointing_kind != "selective") return findings.refuse("checkpointing", "it is on already");
    Remedy remedy = make_remedy(s, "checkpointing", {}, {{"checkpointing_kind", "full"}}, "full instead of selective");
    return findings.offer(std::move(remedy));
  }
  if (!s.has_job() && s.job().system == System::llamafactory)
    return findings.refuse("checkpointing", "LLaMA-Factory has it on by default");
  if (!s.has_job() && on_by_the_log(s)) return findings.refuse("checkpointing", "it is on already, by the log");
  const Changes changes{{"checkpointing", "true"}};
  Remedy remedy = make_remedy(s, "checkpointing", {}, changes,
                              "keeps each layer's input only and computes the rest again in the backward pass");
  if (s.job().system == System::accelerate && !s.fsdp()) {
    remedy.set = spell("checkpointing", System::pytorch_script, Style::python, {}).text;
    remedy.settings.clear();  // the file's key is FSDP's
  }
  if (s.job().system == System::litgpt && s.gpus() > 1)
    return findings.refuse("checkpointing", "LitGPT checkpoints by itself under FSDP");
  if (s.lora() && s.job().system != System::litgpt)
    remedy.caveats.push_back("with a frozen base use_reentrant=False, or model.enable_input_require_grads()");
  remedy.caveats.push_back("20 to 30 % slower; use_cache goes off by itself");
  findings.offer(std::move(remedy));
}

void activation_offload(const CaseView& s, Findings& findings) {
  if (!applies(s) || s.job().compute.activation_offload.value_or(false)) return;
  const System system = s.job().system;
  if (system != System::trl && system != System::axolotl && system != System::torchtune &&
      system != System::deepspeed && system != System::pytorch_script && system != System::unknown)
    return;
  Changes changes{{"activation_offload", "true"}};
  if (system != System::pytorch_script && system != System::unknown) changes.emplace_back("checkpointing", "true");
  Remedy remedy = make_remedy(s, "activation-offload", {}, changes, "saved activations wait in pinned host memory");
  if (system == System::torchtune) remedy.caveats.push_back("needs enable_activation_checkpointing: True");
  remedy.slowdown = s.checkpointing() ? 1.15 : 1.45;
  findings.offer(std::move(remedy));
}

constexpr Rule kRules[] = {checkpointing, activation_offload};

}  // namespace

std::span<const Rule> checkpointing_rules() { return kRules; }

}  // namespace headroom::doctor
