// Attention and loss kernels, compilation (T16, T18, T19).
#include <fmt/format.h>

#include <string_view>

#include "doctor/remedies/rules.h"

namespace headroom::doctor {
namespace {

bool applies(const CaseView& s) { return !s.serving() && s.pool() == Pool::device; }

bool before_ampere(const CaseView& s) {
  return s.gpu() && s.gpu()->compute_capability > 0 && s.gpu()->compute_capability < 80;
}

// A language model whose tokens see what stands before them only. Of a model that is not known nothing is said.
bool causal(const CaseView& s) {
  return s.shape() && !s.shape()->encoder_only && s.shape()->vocab > 0 && s.shape()->labels == 0;
}

void flash_attention(const CaseView& s, Findings& findings) {
  if (!applies(s)) return;
  const std::string attention = s.job().compute.attention.value_or("");
  if (attention.starts_with("flash") && before_ampere(s)) {
    findings.note(
        fmt::format("flash_attention_2 does not run on {} (Ampere or newer): sdpa's memory-efficient kernel "
                    "saves the same bytes there",
                    s.gpu()->name));
    return;
  }
  if (attention == "sdpa" || attention.starts_with("flash") || attention == "flex_attention")
    return findings.refuse("flash-attention", fmt::format("{} is on already and stores no S x S scores", attention));
  if (attention.empty() && s.has_job() && s.job().system != System::pytorch_script && s.job().system != System::neox)
    return findings.refuse("flash-attention", "sdpa, which stores no S x S scores, is the default already");
  Remedy remedy = make_remedy(s, "flash-attention",
                              {{"attn", "sdpa"},
                               {"axolotl", "sdp_attention"},
                               {"factory", "sdpa"},
                               {"causal", causal(s) ? ", is_causal=True" : ""},
                               {"layers", s.shape() ? std::to_string(s.shape()->layers) : "N"}},
                              {{"attention", "sdpa"}}, "eager attention stores heads x S x S scores per layer");
  if (before_ampere(s))
    remedy.caveats.push_back(
        fmt::format("flash_attention_2 is not available on {}: sdpa's memory-efficient kernel is", s.gpu()->name));
  else
    remedy.caveats.push_back("needs no package; flash_attention_2 (Ampere or newer) is a little faster");
  findings.offer(std::move(remedy));
}

void compile(const CaseView& s, Findings& findings) {
  if (!applies(s) || !s.training() || s.job().compute.compile.value_or(false)) return;
  if (!s.has_job()) return;
  Remedy remedy = make_remedy(s, "compile", {}, {{"compile", "true"}}, "fused chains keep fewer intermediate results");
  remedy.caveats.push_back(
      "the first steps compile for minutes, and their peak may be higher; changing shapes "
      "compile again");
  findings.offer(std::move(remedy));
}

// Systems whose loss never holds all logits at once.
bool chunked_by_default(System system) { return system == System::litgpt; }

bool liger_family(const CaseView& s) {
  if (!s.shape() || s.shape()->family.empty()) return true;
  for (const std::string_view family :
       {"llama", "mistral", "mixtral", "gemma", "qwen", "phi3", "olmo", "glm", "granite"})
    if (s.shape()->family.find(family) != std::string::npos) return true;
  return false;
}

constexpr std::string_view kOwnKernels = "Unsloth has kernels and a loss of its own";

void liger(const CaseView& s, Findings& findings) {
  if (!applies(s) || !s.training()) return;
  if (s.job().library == "unsloth") return findings.refuse("liger", std::string(kOwnKernels));
  if (s.job().compute.chunked_loss.value_or(false) || s.job().compute.liger.value_or(false))
    return findings.refuse("liger", "the loss is computed in chunks already");
  if (s.gpu() && s.gpu()->compute_capability > 0 && s.gpu()->compute_capability < 70)
    return findings.refuse("liger", fmt::format("Triton needs compute capability 7.0; {} is older", s.gpu()->name));
  if (!liger_family(s))
    return findings.refuse("liger", fmt::format("liger-kernel has no {} layers", s.shape()->family));
  Remedy remedy = make_remedy(s, "liger", {{"family", s.shape() ? s.shape()->family : "llama"}},
                              {{"chunked_loss", "true"}, {"extras.liger", "true"}},
                              "batch x length x vocabulary logits are never whole");
  findings.offer(std::move(remedy));
}

void chunked_loss(const CaseView& s, Findings& findings) {
  if (!applies(s) || !s.training()) return;
  if (s.job().library == "unsloth") return findings.refuse("chunked-loss", std::string(kOwnKernels));
  if (s.job().compute.chunked_loss.value_or(false) || chunked_by_default(s.job().system) ||
      s.job().compute.liger.value_or(false))
    return findings.refuse("chunked-loss", "the loss is computed in chunks already");
  if (s.job().system == System::trl && s.lora())
    return findings.refuse(
        "chunked-loss",
        "TRL's chunked_nll is documented without PEFT adapters: use_liger_kernel does the same with them");
  Remedy remedy = make_remedy(s, "chunked-loss", {{"chunk", "1024"}}, {{"chunked_loss", "true"}},
                              "batch x length x vocabulary logits are never whole");
  if (s.job().system == System::trl) remedy.caveats.push_back("neither with PEFT adapters nor with Liger");
  if (s.job().system == System::pytorch_script) remedy.effort = "code";
  findings.offer(std::move(remedy));
}

constexpr Rule kRules[] = {flash_attention, compile, liger, chunked_loss};

}  // namespace

std::span<const Rule> kernel_rules() { return kRules; }

}  // namespace headroom::doctor
