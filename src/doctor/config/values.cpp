#include "doctor/config/values.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace headroom::doctor {
namespace {

struct Spelling {
  std::string_view written, name;
};

std::string last_part(std::string_view text) {
  const size_t dot = text.rfind('.');
  return lower(dot == std::string_view::npos ? text : text.substr(dot + 1));
}

// In lower case, without the module.
constexpr Spelling kOptimizers[] = {
    {"adamw_torch", "adamw"},
    {"adamw_torch_fused", "adamw"},
    {"adamw_torch_xla", "adamw"},
    {"adamw_torch_npu_fused", "adamw"},
    {"adamw_apex_fused", "adamw"},
    {"adamw_hf", "adamw"},
    {"adamw_fused", "adamw"},
    {"adam", "adamw"},
    {"fusedadam", "adamw"},
    {"deepspeedcpuadam", "adamw"},
    {"cpu_adam", "adamw"},
    {"torch_adam", "adamw"},
    {"adamw32bit", "adamw"},
    {"adam32bit", "adamw"},
    {"adamw_bnb_8bit", "adamw_8bit"},
    {"adamw_torch_8bit", "adamw_8bit"},
    {"adamw8bit", "adamw_8bit"},
    {"adam8bit", "adamw_8bit"},
    {"adam_8bit", "adamw_8bit"},
    {"ao_adamw_8bit", "adamw_8bit"},
    {"adamw_torch_4bit", "adamw_4bit"},
    {"ao_adamw_4bit", "adamw_4bit"},
    {"adamw4bit", "adamw_4bit"},
    {"adam4bit", "adamw_4bit"},
    {"adamwfp8", "adamw_fp8"},
    {"adamfp8", "adamw_fp8"},
    {"ao_adamw_fp8", "adamw_fp8"},
    {"paged_adamw_32bit", "paged_adamw"},
    {"pagedadamw", "paged_adamw"},
    {"pagedadamw32bit", "paged_adamw"},
    {"pagedadam", "paged_adamw"},
    {"pagedadam32bit", "paged_adamw"},
    {"pagedadamw8bit", "paged_adamw_8bit"},
    {"pagedadam8bit", "paged_adamw_8bit"},
    {"lion_32bit", "lion"},
    {"lion_pytorch", "lion"},
    {"fusedlion", "lion"},
    {"deepspeedcpulion", "lion"},
    {"lion8bit", "lion_8bit"},
    {"paged_lion_32bit", "paged_lion"},
    {"pagedlion", "paged_lion"},
    {"pagedlion8bit", "paged_lion_8bit"},
    {"sgd8bit", "sgd_8bit"},
    {"rmsprop_bnb", "rmsprop"},
    {"rmsprop_bnb_32bit", "rmsprop"},
    {"rmsprop_bnb_8bit", "rmsprop_8bit"},
    {"paged_ademamix_32bit", "paged_ademamix"},
    {"adagradw", "adagrad"},
    {"deepspeedcpuadagrad", "adagrad"},
    {"fusedlamb", "lamb"},
    {"onebitadam", "onebit_adam"},
    {"zerooneadam", "onebit_adam"},
};

constexpr Spelling kDtypes[] = {
    {"bf16", "bfloat16"},     {"bfloat16", "bfloat16"}, {"fp16", "float16"},    {"half", "float16"},
    {"float16", "float16"},   {"fp32", "float32"},      {"float", "float32"},   {"float32", "float32"},
    {"fp64", "float64"},      {"double", "float64"},    {"float64", "float64"}, {"fp8", "fp8"},
    {"float8_e4m3fn", "fp8"}, {"float8_e5m2", "fp8"},   {"fp8_e4m3", "fp8"},    {"fp8_e5m2", "fp8"},
    {"int8", "int8"},         {"uint8", "uint8"},       {"auto", "auto"},       {"16", "float16"},
    {"32", "float32"},        {"mxfp4", "mxfp4"},       {"nvfp4", "nvfp4"},     {"int4", "int4"},
};

constexpr Spelling kAttention[] = {
    {"flash_attention_2", "flash_attention_2"},
    {"flash_attention_3", "flash_attention_3"},
    {"kernels_community/flash_attn2", "flash_attention_2"},
    {"kernels_community/flash_attn3", "flash_attention_3"},
    {"kernels_community/vllm_flash_attn3", "flash_attention_3"},
    {"sdpa", "sdpa"},
    {"eager", "eager"},
    {"flex_attention", "flex_attention"},
    {"xformers", "xformers"},
    {"sage", "sage_attention"},
    {"fa2", "flash_attention_2"},
    {"fa3", "flash_attention_3"},
    {"paged|sdpa", "sdpa"},
    {"paged|eager", "eager"},
};

// Common in manuals and issues, refused by transformers.
constexpr Spelling kMisspeltAttention[] = {
    {"flash_attention2", "flash_attention_2"},
    {"flash_attn_2", "flash_attention_2"},
    {"flash_attn2", "flash_attention_2"},
    {"flashattention2", "flash_attention_2"},
    {"flashattention_2", "flash_attention_2"},
    {"flash_attention", "flash_attention_2"},
    {"flash_attn", "flash_attention_2"},
    {"flash_2", "flash_attention_2"},
    {"flash_attention3", "flash_attention_3"},
    {"flash_attn_3", "flash_attention_3"},
    {"flash_attn3", "flash_attention_3"},
    {"spda", "sdpa"},
    {"sdp", "sdpa"},
    {"flexattention", "flex_attention"},
};

template <size_t N>
std::optional<std::string> lookup(const Spelling (&table)[N], std::string_view word) {
  for (const Spelling& entry : table)
    if (entry.written == word) return std::string(entry.name);
  return std::nullopt;
}

}  // namespace

std::string canonical_optimizer(std::string_view text) {
  std::string word = last_part(text);
  // The values of OptimizerNames are their names in lower case, except this one.
  if (word == "adamw_bnb") return "adamw_8bit";
  return lookup(kOptimizers, word).value_or(word);
}

std::optional<std::string> canonical_dtype(std::string_view text) { return lookup(kDtypes, last_part(text)); }

std::string canonical_attention(Draft& draft, const Setting& setting) {
  const std::string word = table_key(lower(setting.text));
  if (const auto name = lookup(kAttention, word)) return *name;
  if (const auto name = lookup(kMisspeltAttention, word)) {
    draft.correct(setting.origin, fmt::format("{}: the only spelling that transformers takes, since 4.36", *name),
                  setting.text);
    return *name;
  }
  return setting.text;
}

std::optional<Sharding> fsdp_sharding(std::string_view text) {
  const std::string word = last_part(text);
  if (word == "full_shard" || word == "1") return Sharding::zero3;
  if (word == "shard_grad_op" || word == "2") return Sharding::zero2;
  if (word == "no_shard" || word == "3") return Sharding::ddp;
  if (word == "hybrid_shard" || word == "4" || word == "hybrid_shard_zero2" || word == "_hybrid_shard_zero2" ||
      word == "5")
    return Sharding::hybrid;
  return std::nullopt;
}

std::optional<Sharding> zero_stage(std::string_view text) {
  constexpr std::array kStages = {Sharding::ddp, Sharding::zero1, Sharding::zero2, Sharding::zero3};
  const std::string word = last_part(text);
  if (word.empty() || word.back() < '0' || word.back() > '3') return std::nullopt;
  if (word.size() > 1 && !word.starts_with("zero") && !word.starts_with("stage")) return std::nullopt;
  return kStages[static_cast<size_t>(word.back() - '0')];
}

std::optional<Offload> offload_device(std::string_view text) {
  const std::string word = last_part(text);
  if (word == "none" || word == "false" || word == "null") return Offload::none;
  if (word == "cpu" || word == "true") return Offload::cpu;
  if (word == "nvme") return Offload::nvme;
  return std::nullopt;
}

std::optional<bool> backward_prefetch(Draft& draft, const Setting& setting) {
  const std::string word = last_part(setting.text);
  if (word == "backward_pre" || word == "backward_post" || word == "true") return true;
  if (word == "none" && lower(setting.text).find("backwardprefetch") != std::string::npos) {
    draft.correct(setting.origin,
                  "BackwardPrefetch has no member NONE: Oumi's is BackwardPrefetch.NO_PREFETCH (in YAML NO_PREFETCH), "
                  "Accelerate's NO_PREFETCH, PyTorch's is None",
                  setting.text);
    return false;
  }
  if (word == "no_prefetch" || word == "none" || word == "false") return false;
  return std::nullopt;
}

}  // namespace headroom::doctor
