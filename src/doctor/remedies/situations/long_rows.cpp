// Rows of many tokens: the scores of their attention, and masks of packs, are what is too large.
#include <fmt/format.h>

#include "doctor/remedies/posted_numbers.h"
#include "doctor/remedies/situations/conditions.h"
#include "doctor/remedies/situations/situation.h"

namespace headroom::doctor {
namespace {

using enum System;
using enum Sign::In;

constexpr std::string_view kFlash =
    "flash_attn|flash attn|flash-attn|flashattention|flash attention|flash-attention|"
    "flash_attention|fa2$|sdpa|xformers";
constexpr std::string_view kLengths =
    "cutoff_len|cutoff_length|max_seq_length|max_seq_len|seq_length|seq_len|sequence_length|sequence_len|max_length|"
    "max_len|model_max_length|block_size|context_length|截断长度|最大长度|序列长度|上下文长度";

bool trains_texts(const CaseView& view) {
  return training_on_device(view) && !view.has_job() && view.reinforcement_library().empty() &&
         !view.foreign_framework() && !speaks_of_diffusion(view) && !images_alone(view) && !told_beside_the_steps(view);
}
bool without_flash(const CaseView& view) {
  // These never hold all scores.
  constexpr std::string_view kNever = "unsloth|torchtune|litgpt|lit-gpt|lit_gpt|megatron";
  return trains_texts(view) && view.log_says(kNever).empty() && !view.says(kFlash);
}

// The length that the post gives its rows, where scores of all tokens with all others are gigabytes.
constexpr int64_t kLong = 4096;
std::optional<int64_t> long_rows(const CaseView& view) {
  const std::optional<int64_t> length = posted_value(view.incident().log_text, kLengths);
  return length && *length >= kLong ? length : std::nullopt;
}
bool large_request(const CaseView& view) {
  const MessageFigures& f = view.figures();
  return f.requested && f.capacity && *f.requested >= *f.capacity / 4;
}
// One request of a large part of the device, in a training on texts: scores or logits of whole rows.
Evidence scores_of_long_rows(const CaseView& view) {
  const std::optional<int64_t> length = long_rows(view);
  const bool texts = speaks_of_texts(view) || view.job().system == llamafactory || view.job().system == axolotl;
  if (large_request(view) && texts)
    return {0.87, fmt::format("one request of {:.1f} GiB in a training on texts",
                              static_cast<double>(*view.figures().requested) / 0x1p30)};
  if (!length) return {};
  return {view.job().system == llamafactory || view.job().system == axolotl ? 0.86 : 0.79,
          fmt::format("rows of {} tokens, and no word of FlashAttention, in the post", *length)};
}

// An amount beyond the device in the post's words ("more than 300 GB"), or by the message's figures.
bool far_beyond_the_device(const CaseView& view) {
  constexpr double kFar = 1.5;
  const std::optional<int64_t> device = size_of_the_device(view);
  if (!device || *device <= 0) return false;
  if (view.figures().requested) return *view.figures().requested >= *device;
  const std::string& log = view.incident().log_text;
  for (size_t at = log.find_first_of("0123456789"); at < log.size(); at = log.find_first_of("0123456789", at)) {
    const size_t end = std::min(log.find_first_not_of("0123456789.", at), log.size());
    const double number = std::strtod(log.substr(at, std::min<size_t>(end - at, 12)).c_str(), nullptr);
    const size_t unit = std::min(log.find_first_not_of(' ', end), log.size());
    if (log.compare(unit, 2, "gb") == 0 || log.compare(unit, 3, "gib") == 0)
      if (number * 0x1p30 >= kFar * static_cast<double>(*device)) return true;
    at = end;
  }
  return false;
}
constexpr std::string_view kPacks =
    "sample_packing|sample packing|packing=true|packing: true|--packing|neat_packing|packed=true|packed dataset|"
    "packed sequence|multipack";
Evidence packs_beyond_the_device(const CaseView& view) {
  const std::string_view packs = view.log_says(kPacks);
  const bool by_default = view.job().system == axolotl;  // its examples pack
  if (packs.empty() && !by_default) return {};
  if (!far_beyond_the_device(view))
    return packs.empty() ? Evidence{} : Evidence{0.8, fmt::format("`{}` in the log", packs)};
  return {0.9, packs.empty() ? "axolotl, whose examples pack rows, and an amount beyond the device"
                             : fmt::format("`{}` and an amount beyond the device in the log", packs)};
}

constexpr std::string_view kNoScores =
    "attention that never holds all scores: attn_implementation=\"flash_attention_2\", or \"sdpa\" (older "
    "transformers and remote code take the slow one unless told)";

constexpr Situation kSituations[] = {
    {"packs_beyond_the_device",
     "rows joined to packs need FlashAttention, which keeps them apart without a mask: else a mask and the scores of "
     "whole packs are made",
     trains_texts,
     {},
     {{"shorter-pack",
       "sample_packing: false, or flash_attention: true beside it, and a shorter sequence_len",
       {},
       axolotl},
      {"shorter-pack", "packing: false (neat_packing: false), or flash_attn: fa2 beside it", {}, llamafactory},
      {"shorter-pack", "no packing (packing=False), or attn_implementation=\"flash_attention_2\" beside it"},
      {"sequence-length", "sequence_len: <half>", {}, axolotl},
      {"sequence-length"},
      {"micro-batch", "micro_batch_size: 1, gradient_accumulation_steps as many times more", {}, axolotl},
      {"micro-batch"}},
     packs_beyond_the_device},
    {"scores_of_long_rows",
     "without FlashAttention the scores of all tokens with all others are held: four times as much for rows twice as "
     "long",
     without_flash,
     {},
     {{"flash-attention", "flash_attn: fa2 (--flash_attn fa2; releases before 0.7: --flash_attn)", {}, llamafactory},
      {"flash-attention", "flash_attention: true (attn_implementation: flash_attention_2)", {}, axolotl},
      {"flash-attention", kNoScores},
      {"sequence-length", "cutoff_len: <half>: longer rows are cut", {}, llamafactory},
      {"sequence-length", "sequence_len: <half>: packs are as long", {}, axolotl},
      {"sequence-length", "shorter rows: half of the length at which they are cut"},
      {"liger", "enable_liger_kernel: true: the loss without all logits", {}, llamafactory},
      {"micro-batch"}},
     scores_of_long_rows},
};

}  // namespace

std::span<const Situation> long_row_situations() { return kSituations; }

}  // namespace headroom::doctor
