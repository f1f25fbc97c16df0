// What a stack frame alone shows of the peak: logits of the loss, joined keys and values, an update of all tensors at
// once.
#include <fmt/format.h>

#include <cstdlib>

#include "doctor/remedies/figures.h"
#include "doctor/remedies/situations/conditions.h"
#include "doctor/remedies/situations/situation.h"

namespace headroom::doctor {
namespace {

using enum System;
using enum Sign::In;

// Frames and lines of code of losses over a vocabulary (transformers, TRL, verl, accelerate), and people's words.
constexpr std::string_view kLogits =
    "logits.float()|fixed_cross_entropy|in forcausallmloss|shift_logits|_convert_to_fp32|upcast the logits|"
    "upcasts the full|upcasts the logits|logits oom|full logits tensor|full logits|logits "
    "tensor|selective_log_softmax|get_batch_logps|_get_per_token_logps|logprobs_from_logits|logits in float32|logits "
    "float32|loss computation|logits to float|.float() logits|logits.to(torch.float32)";
bool loss_of_a_text(const CaseView& view) {
  return training_on_device(view) && !images_alone(view) && !view.phase("eval") && view.reinforcement_library().empty();
}
bool loss_of_known_program(const CaseView& view) { return loss_of_a_text(view) && !unknown_program(view); }
bool loss_of_unknown_program(const CaseView& view) { return loss_of_a_text(view) && unknown_program(view); }

struct Logits {
  int64_t rows, length, vocabulary;
  int64_t bytes(int64_t width) const { return rows * length * vocabulary * width; }
};
std::optional<Logits> logits_of(const CaseView& view) {
  const auto rows = view.micro_batch(), length = view.sequence();
  if (!view.has_job() || !view.shape() || view.shape()->guessed || view.shape()->labels > 0) return std::nullopt;
  if (rows.value_or(0) <= 0 || length.value_or(0) <= 0) return std::nullopt;
  return Logits{*rows, *length, view.shape()->vocab};
}
std::string product(const Logits& logits, int64_t width) {
  return fmt::format("{} x {} tokens x {} of the vocabulary x {} bytes = {}", logits.rows, logits.length,
                     logits.vocabulary, width, figure(logits.bytes(width)));
}

// The request is the logits' size, in 32 or 16 bits; a frame of the loss tells as much without one.
Evidence size_of_the_logits(const CaseView& view) {
  const std::optional<Logits> logits = logits_of(view);
  if (!logits) return {};
  const int64_t asked = view.figures().requested.value_or(0);
  for (const int64_t width : {4, 2})
    if (std::llabs(asked - logits->bytes(width)) * 100 < asked)
      return {0.86, "the request: " + product(*logits, width)};
  const std::string_view frame = view.log_says(kLogits);
  return frame.empty() ? Evidence{} : Evidence{0.85, fmt::format("`{}` in the log: {}", frame, product(*logits, 4))};
}

constexpr std::string_view kJoined =
    "torch.cat([self.key_cache|torch.cat([self.value_cache|torch.cat([self.keys|torch.cat([self.values|"
    "torch.cat((self.keys|torch.cat([past_key|torch.cat((past_key|torch.cat([past_value|torch.cat((past_value|"
    "torch.cat((layer_past|transformers/cache_utils.py";
constexpr std::string_view kFramesOfTraining =
    "in training_step|in compute_loss|in train_step|in _inner_training_loop|.backward()|in train$";
bool keys_of_a_training(const CaseView& view) {
  return training_on_device(view) && !view.log_says(kFramesOfTraining).empty();
}
bool keys_of_a_prediction(const CaseView& view) { return predicting_on_device(view) && !keys_of_a_training(view); }

// A plain text, in which the keys of a trainer would not do.
constexpr std::string_view kShorter =
    "shorter texts: max_length=<half> where they are cut (max_seq_length, cutoff_len)";

constexpr Situation kSituations[] = {
    {"logits_of_the_loss",
     "the loss has all logits in 32 bits, batch x length x vocabulary x 4 bytes, and a gradient as large",
     loss_of_known_program,
     {{log, 0.84, kLogits}},
     {{"chunked-loss", {}, {}, torchtune}, {"micro-batch"}, {"liger"}, {"sequence-length"}, {"chunked-loss"}},
     size_of_the_logits},
    {"logits_of_long_rows",
     "logits are as wide as the vocabulary, in 32 bits, with a gradient as large: batch x length x vocabulary x 4 "
     "bytes each; they may be made piece by piece",
     loss_of_unknown_program,
     {{log, 0.84, kLogits}},
     {{"liger", "a loss that never holds all logits: Liger (use_liger_kernel=True), or cut cross-entropy"},
      {"micro-batch"},
      {"sequence-length", kShorter}}},
    {"keys_joined_in_a_prediction",
     "generating joins the keys and values of all tokens again at each one: rows x beams x length, and twice that "
     "while they are joined",
     keys_of_a_prediction,
     {{log, 0.86, kJoined}},
     {{"sequence-length", "a smaller max_new_tokens and shorter prompts: keys and values are as long as both"},
      {"micro-batch", "fewer prompts at a time, num_beams=1, num_return_sequences=1"},
      {"kv-dtype",
       "generate(..., cache_implementation=\"quantized\") or \"offloaded\" (transformers >= 4.42): keys and values in "
       "4 bits, or on the host"}}},
    {"keys_kept_in_a_training",
     "a training needs no keys and values of earlier tokens: kept and joined, they come on top of the activations",
     keys_of_a_training,
     {{log, 0.82, kJoined}},
     {{"checkpointing",
       "model.gradient_checkpointing_enable() and model.config.use_cache = False (gradient_checkpointing=True turns it "
       "off)"},
      {"micro-batch"},
      {"sequence-length", kShorter}}},
    {"update_of_all_tensors_at_once",
     "PyTorch's Adam updates all tensors together (foreach, its default since 2.0), with temporaries of the size of "
     "the whole model",
     training_on_device,
     {{log, 0.85,
       "torch._foreach_sqrt|torch._foreach_addc|torch._foreach_div|torch._foreach_lerp|torch._foreach_pow|"
       "torch._foreach_add(|in _multi_tensor_|foreach optimizer|foreach implementation|foreach=true"}},
     {{"fused-optimizer"}, {"optimizer-8bit"}, {"lora"}}},
    {"norm_of_all_gradients",
     "clipping comes first after the backward pass: all gradients are there, and foreach makes one tensor of each "
     "beside them",
     training_on_device,
     {{log, 0.8, "torch._foreach_norm|in _get_total_norm|in get_total_norm|in clip_grad_norm_|in _clip_grads_with_"}},
     {{"optimizer-8bit"},
      {"fused-optimizer", "torch.nn.utils.clip_grad_norm_(..., foreach=False): one tensor at a time (torch >= 2.0)"},
      {"lora"}}},
};

}  // namespace

std::span<const Situation> frame_situations() { return kSituations; }

}  // namespace headroom::doctor
