// Lighter optimizers (T07, T08, T09, T31).
#include <fmt/format.h>

#include <algorithm>

#include "doctor/remedies/figures.h"
#include "doctor/remedies/rules.h"

namespace headroom::doctor {
namespace {

bool applies(const CaseView& s) { return s.training() && s.pool() == Pool::device; }

// Under LoRA few weights are trained, and any optimizer's states are small.
bool refused_under_lora(const CaseView& s, std::string_view name, Findings& findings) {
  if (!s.lora()) return false;
  findings.refuse(name, fmt::format("another optimizer saves little under LoRA: about {:.1f} % of the weights are "
                                    "trained{}",
                                    100 * s.trainable_share(),
                                    s.term("optimizer states") > 0
                                        ? fmt::format(", their states take {}", figure(s.term("optimizer states")))
                                        : std::string()));
  return true;
}

bool names(const std::string& optimizer, std::string_view part) { return optimizer.find(part) != std::string::npos; }

bool light(const std::string& optimizer) {
  for (const std::string_view part : {"8bit", "4bit", "fp8", "adafactor", "sgd", "lomo", "galore", "apollo"})
    if (names(optimizer, part)) return true;
  return false;
}

void fused(const CaseView& s, Findings& findings) {
  if (!applies(s) || !names(s.optimizer(), "adam") || names(s.optimizer(), "fused") ||
      s.job().optimizer.fused.value_or(false) || light(s.optimizer()))
    return;
  if (s.zero()) return findings.refuse("fused-optimizer", "DeepSpeed's own Adam is fused already");
  if (refused_under_lora(s, "fused-optimizer", findings)) return;
  findings.offer(make_remedy(s, "fused-optimizer", {}, {{"optimizer", "adamw_torch_fused"}},
                             "the update needs no copies of all weights; states stay as they are"));
}

// bitsandbytes' 8-bit states do not work with some sharding.
bool conflicts_with_sharding(const CaseView& s, std::string_view name, Findings& findings) {
  if (!s.zero() && s.job().system != System::deepspeed) return false;
  findings.refuse(name,
                  "8-bit and paged optimizers do not go with ZeRO: it splits flat float32 states and refuses "
                  "untested optimizers; use a higher stage or offload_optimizer");
  return true;
}

void optimizer_8bit(const CaseView& s, Findings& findings) {
  if (!applies(s)) return;
  if (light(s.optimizer())) return findings.refuse("optimizer-8bit", fmt::format("{} is light already", s.optimizer()));
  if (conflicts_with_sharding(s, "optimizer-8bit", findings)) return;
  if (refused_under_lora(s, "optimizer-8bit", findings)) return;
  Remedy remedy =
      make_remedy(s, "optimizer-8bit", {}, {{"optimizer", "adamw_8bit"}}, "2 bytes of states per weight instead of 8");
  remedy.caveats.push_back("tensors below 4096 elements keep 32 bits; embeddings are best left in 32 too");
  if (s.fsdp()) remedy.caveats.push_back("under FSDP its states cannot be gathered into a full checkpoint");
  findings.offer(std::move(remedy));
}

// LLaMA-Factory's files for DeepSpeed allow untested optimizers; the offload brings an optimizer of its own.
bool paged_under_zero(const CaseView& s) {
  const ParallelSettings& parallel = s.job().parallel;
  return s.job().system == System::llamafactory && !parallel.offload_optimizer && !parallel.offload_parameters;
}

void paged(const CaseView& s, Findings& findings) {
  if (!applies(s) || names(s.optimizer(), "paged")) return;
  if (!paged_under_zero(s) && conflicts_with_sharding(s, "paged-optimizer", findings)) return;
  if (refused_under_lora(s, "paged-optimizer", findings)) return;
  const std::string name = names(s.optimizer(), "8bit") ? "paged_adamw_8bit" : "paged_adamw_32bit";
  Remedy remedy = make_remedy(s, "paged-optimizer", {}, {{"optimizer", name}},
                              "states live in unified memory and leave the device when room is short");
  // Without a GPU the memory model counts paged states in full, since they stay on the device while there is room.
  if (const int64_t states = s.term("optimizer states"); states > 0 && remedy.saves_bytes && !s.gpu()) {
    remedy.saves_bytes = std::max<int64_t>(0, *remedy.saves_bytes) + states;
    remedy.host_bytes = states;
    remedy.caveats.push_back("at most: that much leaves the device only when room is short");
  }
  remedy.caveats.push_back("page faults over PCIe: slow once the states do not fit");
  findings.offer(std::move(remedy));
}

void adafactor(const CaseView& s, Findings& findings) {
  if (!applies(s) || light(s.optimizer()) || s.zero()) return;
  if (refused_under_lora(s, "adafactor", findings)) return;
  Remedy remedy =
      make_remedy(s, "adafactor", {}, {{"optimizer", "adafactor"}}, "row and column sums instead of two full states");
  remedy.caveats.push_back(
      "known to be unstable with some models: relative_step=False, a fixed learning rate, "
      "clipping at 1.0, and a look at the loss");
  findings.offer(std::move(remedy));
}

void lion(const CaseView& s, Findings& findings) {
  if (!applies(s) || light(s.optimizer()) || names(s.optimizer(), "lion")) return;
  if (refused_under_lora(s, "lion", findings)) return;
  Remedy remedy = make_remedy(s, "lion", {}, {{"optimizer", "lion"}}, "one state instead of two");
  remedy.caveats.push_back("wants a learning rate 3 to 10 times smaller and a larger weight decay");
  findings.offer(std::move(remedy));
}

void sgd(const CaseView& s, Findings& findings) {
  if (!applies(s) || names(s.optimizer(), "sgd")) return;
  if (refused_under_lora(s, "sgd", findings)) return;
  findings.offer(make_remedy(s, "sgd", {}, {{"optimizer", "sgd"}}, "no states without momentum"));
}

void in_backward(const CaseView& s, Findings& findings) {
  if (!applies(s) || s.job().optimizer.in_backward.value_or(false)) return;
  if (refused_under_lora(s, "optimizer-in-backward", findings)) return;
  if (s.accumulation() > 1)
    return findings.refuse("optimizer-in-backward",
                           fmt::format("gradients are accumulated over {} steps and must be kept", s.accumulation()));
  Remedy remedy = make_remedy(s, "optimizer-in-backward", {}, {{"optimizer_in_backward", "true"}},
                              "no gradient waits for the others");
  if (s.job().optimizer.max_grad_norm.value_or(0) > 0)
    remedy.caveats.push_back("the norm of all gradients is never known: clipping must go");
  findings.offer(std::move(remedy));
}

void set_to_none(const CaseView& s, Findings& findings) {
  if (!applies(s) || s.job().system != System::pytorch_script || !s.has_job()) return;
  findings.refuse("set-to-none", "zero_grad() frees gradients by default since torch 2.0");
}

constexpr Rule kRules[] = {fused, optimizer_8bit, paged, adafactor, lion, sgd, in_backward, set_to_none};

}  // namespace

std::span<const Rule> optimizer_rules() { return kRules; }

}  // namespace headroom::doctor
