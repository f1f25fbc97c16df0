// Programs that keep what they no longer need, and layers that are larger than intended.
#include <fmt/format.h>

#include "doctor/remedies/log_batch.h"
#include "doctor/remedies/situations/conditions.h"
#include "doctor/remedies/situations/situation.h"
#include "doctor/remedies/told_growth.h"

namespace headroom::doctor {
namespace {

using enum Sign::In;

Evidence growing(const CaseView& view) {
  if (view.incident().growth.kind != GrowthKind::leak) return {};
  return {0.9, "the memory in the log rises from step to step"};
}

Evidence growing_by_the_post(const CaseView& view) {
  const std::string_view told = told_growing(view.incident().log_text);
  if (told.empty() || view.incident().growth.kind == GrowthKind::leak) return {};
  return {0.76, fmt::format("`{}` in the log", told)};
}

bool unknown_training(const CaseView& view) { return training_on_device(view) && unknown_program(view); }
Evidence after_epochs(const CaseView& view) {
  const std::string_view told = told_after_epochs(view.incident().log_text);
  if (told.empty() || only_first_steps(told)) return {};
  return {0.84, fmt::format("`{}` in the log", told)};
}
Evidence after_first_steps(const CaseView& view) {
  const std::string_view told = told_after_epochs(view.incident().log_text);
  if (told.empty() || !only_first_steps(told)) return {};
  return {0.78, fmt::format("`{}` in the log", told)};
}
// What the batch does not change.
Evidence fails_with_the_smallest_batch(const CaseView& view) {
  if (view.message() == nullptr) return {};
  if (smallest_batch_failed(view.incident().log_text)) return {0.74, "the smallest batch fails too, by the log"};
  return {};
}

constexpr Situation kSituations[] = {
    {"history_kept",
     "the graphs of past steps are kept: a loss summed or listed without .item(), a state that is not detached, or "
     "retain_graph=True",
     training_on_device,
     {{log, 0.86, "retain_graph=true|retain_graph"},
      {log, 0.82,
       "total_loss += loss|running_loss += loss|epoch_loss += loss|loss_sum += loss|losses.append(loss)|"
       "outputs.append(|.append(output|.append(loss|.update(loss,"},
      {setup, 0.8,
       "retain_graph=true|total_loss += loss\n|running_loss += loss\n|epoch_loss += loss\n|losses.append(loss)"}},
     {{"detach-history",
       "total += loss.item(); hidden = hidden.detach(); lists of .detach().cpu(); no retain_graph=True"},
      {"find-sample",
       "or longer samples came: start with the longest one, leave out or cut what is far longer than the rest"},
      {"measure"}},
     growing},
    {"growth_by_the_post",
     "by the post memory grows over time. If nvidia-smi shows the same from step to step, something is kept: a loss "
     "summed or listed without .item(), outputs in lists, graphs that are not detached; or longer inputs came",
     training_on_device,
     {},
     {{"detach-history",
       "total += loss.item(); hidden = hidden.detach(); lists of .detach().cpu(); no retain_graph=True"},
      {"find-sample",
       "or longer samples came: start with the longest one, leave out or cut what is far longer than the rest"},
      {"measure"}},
     growing_by_the_post},
    {"failed_after_whole_epochs",
     "whole epochs or many steps went well, by the post, which does not say that memory grew meanwhile: a larger batch "
     "came, the validation between the epochs wants more than a step, or something is kept from step to step",
     unknown_training,
     {},
     {{"detach-history",
       "total += loss.item(); lists of .detach().cpu(); del loss, outputs at the end of a step: nothing kept over "
       "steps"},
      {"micro-batch", "a smaller batch, and a bound on inputs of random size (crops, points, multi-scale, lengths)"},
      {"eval-batch", "if it fails in the validation: a smaller batch there, with torch.no_grad(): around it"},
      {"find-sample"}},
     after_epochs},
    {"failed_after_first_steps",
     "the first steps went well: the memory is just short, and a larger input or batch came",
     unknown_training,
     {},
     {{"micro-batch"},
      {"input-size"},
      {"detach-history", "if it grows with each step: total += loss.item(), nothing on the GPU in lists"},
      {"find-sample"}},
     after_first_steps},
    {"not_the_batch",
     "a smaller batch does not help: something else holds the device, is kept from step to step, or one input alone is "
     "too large",
     unknown_training,
     {},
     {{"input-size"},
      {"detach-history", "total += loss.item(); lists of .detach().cpu(): no graph is kept from step to step"},
      {"end-other-processes", "nvidia-smi: does another program, or an earlier run, hold the device?"}},
     fails_with_the_smallest_batch},
    {"compiled",
     "a compiled step keeps other intermediate results, and its tuning tries kernels with memory of their own",
     training_on_device,
     {{log, 0.8,
       "torch.compile makes|with torch.compile|torch.compile(mode|--torch_compile|compile mode|max-autotune"}},
     {{"eager", "without torch.compile, or mode=\"default\" instead of max-autotune or reduce-overhead"},
      {"micro-batch"},
      {"checkpointing"}}},
    {"layer_larger_than_meant",
     "a layer of the model itself finds no room when it is made: its sizes are larger than meant",
     training_on_device,
     {{log, 0.82, "in reset_parameters|init.kaiming_uniform_|torch.empty((out_features|torch.empty((num_embeddings"}},
     {{"smaller-model",
       "print the layer's sizes: nn.Linear after flatten wants a pooling layer before it, nn.Embedding the true "
       "vocabulary"},
      {"input-size"}}},
    {"attention_over_all_pixels",
     "attention over all pixels or tokens at once: its scores grow with the square of the input",
     predicting_on_device,
     {{log, 0.8, "torch.bmm(|einsum('b i d, b j d|baddbmm|query @ key|q @ k|torch.matmul(query|softmax(dim=-1)"}},
     {{"flash-attention", "F.scaled_dot_product_attention, or xformers.ops.memory_efficient_attention"},
      {"input-size"},
      {"micro-batch"}}},
};

}  // namespace

std::span<const Situation> program_situations() { return kSituations; }

}  // namespace headroom::doctor
