// Training fewer weights, and weights with fewer bits (T20 to T25).
#include <fmt/format.h>

#include "doctor/remedies/figures.h"
#include "doctor/remedies/rules.h"

namespace headroom::doctor {
namespace {

constexpr int64_t kRank = 16;

bool applies(const CaseView& s) { return s.training() && s.pool() == Pool::device; }

bool from_scratch(const CaseView& s) { return s.job().objective == "pretrain" || s.job().load.from_scratch; }

// torchtune's builder of the model with another prefix: torchtune.models.llama3_1.qlora_llama3_1_8b.
std::string builder(const CaseView& s, std::string_view prefix) {
  for (const KeyNote& note : s.job().keys.understood) {
    if (note.origin.key != "model._component_") continue;
    const size_t dot = note.value.rfind('.');
    std::string name = note.value.substr(dot == std::string::npos ? 0 : dot + 1);
    for (const std::string_view old : {"qlora_", "lora_"})
      if (name.starts_with(old)) name = name.substr(old.size());
    return fmt::format("{}{}{}", dot == std::string::npos ? "" : note.value.substr(0, dot + 1), prefix, name);
  }
  return fmt::format("torchtune.models.FAMILY.{}MODEL", prefix);
}

Values adapter_values(const CaseView& s, bool bf16) {
  return {{"rank", std::to_string(s.lora() ? s.job().lora->rank : kRank)},
          {"alpha", std::to_string(2 * kRank)},
          {"model", s.job().model.empty() ? "MODEL" : s.job().model},
          {"placement", s.gpus() > 1 ? "distributed" : "single_device"},
          {"lora_builder", builder(s, "lora_")},
          {"qlora_builder", builder(s, "qlora_")},
          {"dtype", bf16 ? "bfloat16" : "float16"},
          {"litgpt", bf16 ? "bf16" : "16"}};
}

void lora(const CaseView& s, Findings& findings) {
  if (!applies(s)) return;
  if (s.lora()) return findings.refuse("lora", "adapters are trained already");
  if (from_scratch(s)) return findings.refuse("lora", "pretraining from scratch trains all weights");
  if (!s.has_job() && !s.log_says("lora|peft|p-tuning|ptuning").empty())
    return findings.refuse("lora", "adapters are trained already, by the log");
  Remedy remedy = make_remedy(s, "lora", adapter_values(s, true), {{"lora", std::to_string(kRank)}},
                              "gradients and states only for the added matrices");
  remedy.caveats.push_back("wants a learning rate about 10 times larger than full fine-tuning");
  findings.offer(std::move(remedy));
}

void qlora(const CaseView& s, Findings& findings) {
  if (!applies(s)) return;
  if (s.quantized_base()) return findings.refuse("qlora", "the base is quantised already");
  if (from_scratch(s)) return findings.refuse("qlora", "pretraining from scratch trains all weights");
  if (s.gpu() && s.gpu()->compute_capability == 0 && s.gpu()->name != "CPU") {
    findings.refuse("qlora",
                    fmt::format("bitsandbytes' 4-bit kernels need a CUDA device; {} is not one", s.gpu()->name));
    return;
  }
  const bool bf16 = !s.gpu() || s.gpu()->bf16;
  Changes changes{{"quantization", "nf4"}};
  if (!s.lora()) changes.insert(changes.begin(), {"lora", std::to_string(kRank)});
  if (s.job().system == System::litgpt) {
    changes.insert(changes.end(), {{"weight_dtype", bf16 ? "bfloat16" : "float16"}, {"autocast", "none"}});
    if (s.gpus() > 1) return findings.refuse("qlora", "LitGPT quantises on one device only: --devices 1 would do");
  }
  Remedy remedy = make_remedy(s, "qlora", adapter_values(s, bf16), std::move(changes),
                              "the frozen weights take 0.56 bytes each instead of 2 or 4");
  if (s.lora()) {
    remedy.effect = "the frozen base in 4 bits; the adapters learn to make up for it";
    remedy.extra_cost = -5;
  }
  if (s.sharded()) remedy.caveats.push_back("sharded: bnb_4bit_quant_storage must be the compute dtype");
  findings.offer(std::move(remedy));
}

// "model.layers.16.", "model.layers.17.", ... starting at `first`, at most three written out.
std::string listed(const std::string& stack, int64_t first, int64_t end) {
  std::string list;
  for (int64_t i = first; i < std::min(end, first + 3); ++i)
    list += fmt::format("{}\"{}.{}\"", i > first ? ", " : "", stack, i);
  if (end > first + 3) list += fmt::format(", ..., \"{}.{}\"", stack, end - 1);
  return list;
}

void freeze(const CaseView& s, Findings& findings) {
  if (!applies(s) || s.lora() || from_scratch(s) || !s.job().frozen.empty()) return;
  const int64_t layers = s.shape() ? s.shape()->layers : 0, frozen = layers / 2;
  const std::string stack = layer_stack(s);
  Remedy remedy = make_remedy(s, "freeze",
                              {{"layers", frozen > 0 ? listed(stack, 0, frozen) : "\"" + stack + ".0\", ..."},
                               {"unfrozen", frozen > 0 ? listed(stack, frozen, layers) : "\"" + stack + ".N\", ..."},
                               {"stack", stack},
                               {"frozen", frozen > 0 ? std::to_string(frozen) : "k"},
                               {"trainable", layers > 0 ? std::to_string(layers - frozen) : "2"}},
                              {}, "no gradients, states and saved activations for the first half of the layers");
  if (s.incident().estimate && frozen > 0) {
    remedy.saves_bytes = (s.term("gradients") + s.term("optimizer states") + s.term("master weights") +
                          (s.checkpointing() ? 0 : s.term("activations"))) /
                         2;
    const Balance& balance = s.balance();
    remedy.likely_alone = !s.likely_after({}) && balance.need && balance.limit &&
                          fits(*balance.need - *remedy.saves_bytes, *balance.limit);
  }
  remedy.caveats.push_back("the embeddings must be frozen too, or activations are kept all the way down to them");
  if (s.fsdp()) remedy.caveats.push_back("FSDP needs use_orig_params=True to mix frozen and trained weights");
  findings.offer(std::move(remedy));
}

void int8_training(const CaseView& s, Findings& findings) {
  if (!applies(s) || !s.has_job() || s.lora() || s.quantized_base() || s.job().system != System::pytorch_script) return;
  Remedy remedy = make_remedy(s, "int8-training", {}, {}, "weights take 1 byte; updates are rounded stochastically");
  remedy.caveats.push_back("torchao's int8 mixed-precision training is another thing: faster, and saves nothing");
  if (s.term("weights") > 0) remedy.saves_bytes = s.term("weights") / 4 * (s.half_weights() ? 2 : 3);
  findings.offer(std::move(remedy));
}

void no_qat(const CaseView& s, Findings& findings) {
  if (!applies(s) || !s.job().precision.fake_quantised.value_or(false)) return;
  findings.offer(make_remedy(s, "no-qat", {}, {{"extras.qat", "false"}},
                             "quantisation-aware training takes more memory, not less: it keeps rounded copies "
                             "beside the weights; its gain comes at inference"));
}

// Quantising a trained model is for inference.
void quantized_model(const CaseView& s, Findings& findings) {
  if (s.pool() != Pool::device) return;
  if (s.training() && !s.has_job()) return;  // the training is only assumed: its situation decides
  if (s.training())
    return findings.refuse("quantized-model", "post-training quantisation shrinks inference, not training");
  if (s.quantized_base()) return findings.refuse("quantized-model", "the weights are quantised already");
  if (!s.has_job() && !s.log_says("-awq|-gptq|awq_marlin|gptq_marlin|-int4|w4a16|bnb-4bit").empty())
    return findings.refuse("quantized-model", "the weights are quantised already, by the log");
  Remedy remedy =
      make_remedy(s, "quantized-model", {}, {{"quantization", s.job().system == System::vllm ? "awq" : "nf4"}},
                  "weights of 4 bits take a quarter of 16-bit ones");
  // A server uses the memory that is saved for its cache.
  if (remedy.saves_bytes && *remedy.saves_bytes <= 0) remedy.saves_bytes.reset();
  remedy.caveats.push_back("take a published quantised version, and compare answers on your own prompts");
  findings.offer(std::move(remedy));
}

constexpr Rule kRules[] = {lora, qlora, freeze, int8_training, no_qat, quantized_model};

}  // namespace

std::span<const Rule> adapter_rules() { return kRules; }

std::string layer_stack(const CaseView& s) {
  const std::string family = s.shape() ? s.shape()->family : "";
  if (family == "bert" || family == "roberta" || family == "electra") return family + ".encoder.layer";
  if (family == "xlm-roberta") return "roberta.encoder.layer";
  if (family == "distilbert") return "distilbert.transformer.layer";
  if (family == "t5" || family == "mt5") return "encoder.block";
  if (family == "gpt_neox") return "gpt_neox.layers";
  if (family == "opt" || family == "bart") return "model.decoder.layers";
  for (const std::string_view old : {"gpt2", "gptj", "gpt_neo", "bloom", "falcon", "gpt_bigcode"})
    if (family == old) return "transformer.h";
  return "model.layers";
}

}  // namespace headroom::doctor
