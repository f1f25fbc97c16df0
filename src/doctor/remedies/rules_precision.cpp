// Fewer bits per number (T04, T05). V100, T4 and older GPUs have no bf16 units; GTX 10xx and older compute float16 no
// faster than float32.
#include <fmt/format.h>

#include "doctor/remedies/figures.h"
#include "doctor/remedies/rules.h"
#include "doctor/remedies/told_stage.h"

namespace headroom::doctor {
namespace {

bool applies(const CaseView& s) { return s.training() && s.pool() == Pool::device; }

// Whether 16-bit products are faster than 32-bit ones.
bool half_is_faster(const std::optional<Gpu>& gpu) {
  return !gpu || gpu->compute_capability == 0 || gpu->compute_capability >= 70 || gpu->compute_capability == 60;
}

// Of a device that is known by its size alone the log may have the name.
bool has_bf16(const CaseView& s) {
  if (s.gpu()) return s.gpu()->bf16;
  constexpr std::string_view kBefore =
      "v100|t4$|p100|p40|rtx 20|rtx20|2080|2070|2060|titan v|titan rtx|titan x|gtx|1080|quadro rtx";
  return any_word(s.incident().log_text, kBefore).empty();
}

Values dtype_values(bool bf16) {
  return {{"short", bf16 ? "bf16" : "fp16"},
          {"upper", bf16 ? "BF16" : "FP16"},
          {"litgpt", bf16 ? "bf16" : "16"},
          {"dtype", bf16 ? "bfloat16" : "float16"},
          {"scaler", bf16 ? "" : " with a GradScaler"}};
}

void describe_device(const CaseView& s, bool bf16, Remedy& remedy) {
  if (!s.gpu()) {
    if (bf16) remedy.needs = "Ampere or newer for bf16 (V100, T4: fp16)";
    return;
  }
  if (!bf16) remedy.caveats.push_back(fmt::format("{} has no bf16 units: fp16, with loss scaling", s.gpu()->name));
  if (!half_is_faster(s.gpu())) {
    remedy.slowdown = 1.05;
    remedy.caveats.push_back(fmt::format("{} has no fast fp16 units: saves bytes, gives no speed", s.gpu()->name));
  }
}

// DeepSpeed's engine converts the module itself.
bool deepspeed(const CaseView& s) { return s.job().system == System::deepspeed || s.zero(); }

void mixed_precision(const CaseView& s, Findings& findings) {
  if (!applies(s)) return;
  if (s.mixed())
    return findings.refuse("mixed-precision",
                           s.job().precision.autocast ? "it is on already" : "it is on by default here");
  if (s.half_weights()) return findings.refuse("mixed-precision", "the weights are in 16 bits already");
  const bool bf16 = has_bf16(s);
  Remedy remedy = make_remedy(s, "mixed-precision", dtype_values(bf16), {{"autocast", bf16 ? "bfloat16" : "float16"}},
                              "saved activations in 16 bits");
  describe_device(s, bf16, remedy);
  if (deepspeed(s)) {
    remedy.why = "weights, gradients and activations in 16 bits";
    remedy.effect = "the module in 16 bits, 32-bit copies of the weights with the optimizer";
  } else
    remedy.caveats.push_back("weights, gradients and optimizer states stay in 32 bits, so it saves activations only");
  if (remedy.saves_bytes && *remedy.saves_bytes <= 0)
    return findings.refuse("mixed-precision",
                           fmt::format("would take {} more: 16-bit copies of the weights outweigh what the "
                                       "activations of so small a batch save",
                                       figure(-*remedy.saves_bytes)));
  findings.offer(std::move(remedy));
}

void half_weights(const CaseView& s, Findings& findings) {
  if (!applies(s)) return;
  if (s.half_weights() || s.quantized_base())
    return findings.refuse("half-weights", "the weights are in 16 bits or fewer");
  const bool bf16 = has_bf16(s);
  const std::string dtype = bf16 ? "bfloat16" : "float16";
  if (deepspeed(s))
    return findings.refuse("half-weights", spell("half-weights", System::deepspeed, Style::json, {}).text);
  Remedy remedy = make_remedy(s, "half-weights", dtype_values(bf16), {{"weight_dtype", dtype}, {"autocast", "none"}},
                              "weights, gradients and states halve");
  describe_device(s, bf16, remedy);
  if (s.mixed() && half_is_faster(s.gpu())) remedy.slowdown = 0.95;
  if (s.lora()) {
    remedy.effect = "the frozen base in 16 bits, as it is usually published; adapters may stay in 32";
  } else if (bf16) {
    remedy.caveats.push_back(
        "bf16 keeps 8 bits of a number: small updates round away; watch the loss, or round "
        "stochastically (torchao)");
  } else {
    remedy.caveats.push_back(
        "16-true often ends in NaN: fp16 stops at 65504 and loss scaling does not work with "
        "fp16 gradients; bf16-true on a newer GPU does not");
    remedy.extra_cost = 6;
  }
  findings.offer(std::move(remedy));
}

constexpr Rule kRules[] = {mixed_precision, half_weights};

}  // namespace

std::span<const Rule> precision_rules() { return kRules; }

}  // namespace headroom::doctor
