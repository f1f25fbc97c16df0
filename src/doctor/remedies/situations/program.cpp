// Programs that keep what they no longer need, and layers that are larger than intended.
#include <fmt/format.h>

#include <utility>

#include "doctor/remedies/log_batch.h"
#include "doctor/remedies/model_words.h"
#include "doctor/remedies/situations/conditions.h"
#include "doctor/remedies/situations/situation.h"
#include "doctor/remedies/told_growth.h"
#include "doctor/remedies/tried.h"

namespace headroom::doctor {
namespace {

using enum Sign::In;

Evidence growing(const CaseView& view) {
  if (view.incident().growth.kind != GrowthKind::leak) return {};
  return {0.9, "the memory in the log rises from step to step"};
}

// What a program computes of a batch with a graph behind it, and sums over an epoch to report it.
constexpr std::string_view kMeasured =
    "loss|acc$|acc_|_acc|accuracy|likelihood|nll|metric|error|score|psnr|ssim|iou|dice|reward|perplexity|entropy|"
    "batch|output|logit|pred";
// "e_train += e_batch/len(loader)", "total = total + likelihood / num_batches": a mean over the steps, whatever its
// name.
bool averages_over_steps(std::string_view summed) {
  constexpr std::string_view kSteps =
      "/len(|/ len(|/num_batches|/ num_batches|/n_batches|/ n_batches|/num_steps|/ num_steps|* len(|*len(";
  for (size_t at = 0; at <= kSteps.size();) {
    const size_t end = std::min(kSteps.find('|', at), kSteps.size());
    if (summed.find(kSteps.substr(at, end - at)) != std::string_view::npos) return true;
    at = end + 1;
  }
  return false;
}
// What is added to, and what is added: "total += x", "total = total + x".
std::pair<std::string_view, std::string_view> parts_of_a_sum(std::string_view line) {
  if (const size_t plus = line.find("+="); plus != std::string_view::npos)
    return {line.substr(0, plus), line.substr(plus + 2)};
  const size_t equals = line.find(" = ");
  if (equals == std::string_view::npos) return {};
  std::string_view sum = line.substr(0, equals);
  if (const size_t begin = sum.find_last_of(" \t"); begin != std::string_view::npos) sum.remove_prefix(begin + 1);
  const std::string_view behind = line.substr(equals + 3);
  if (sum.empty() || !behind.starts_with(sum) || !behind.substr(sum.size()).starts_with(" + ")) return {};
  return {sum, behind.substr(sum.size() + 3)};
}
// "train_loss[key] += loss[key]": a sum over steps that takes the loss with its graph. "loss += ..." is one within a
// step.
bool sums_a_loss(std::string_view line) {
  const auto [sum, summed] = parts_of_a_sum(line);
  if (sum.empty()) return false;
  constexpr std::string_view kSums =
      "total|running|epoch|sum|avg|average|mean|train|val|test|meter|acc_|cum|losses|[|tot_";
  constexpr std::string_view kNumbers = ".item|float(|detach|.data|numpy|no_grad|int(";
  const bool over_steps = !any_word(sum, kSums).empty() || sum.find("_loss") != std::string_view::npos ||
                          sum.find("loss_") != std::string_view::npos;
  if (!any_word(summed, kNumbers).empty()) return false;
  if (averages_over_steps(summed)) return !any_word(summed, kMeasured).empty() || !any_word(sum, kMeasured).empty();
  if (summed.find("loss") != std::string_view::npos && sum.find("loss") != std::string_view::npos) return over_steps;
  constexpr std::string_view kOfABatch = "likelihood|nll|metric|accuracy|psnr|ssim|dice|perplexity|entropy|reward";
  return over_steps && !any_word(summed, kOfABatch).empty();
}
Evidence loss_summed_in(const std::string& text, std::string_view where) {
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    if (sums_a_loss(std::string_view(text).substr(at, end - at))) {
      const size_t begin = std::min(text.find_first_not_of(" \t", at), end);
      return {0.81, fmt::format("`{}` in the {}", text.substr(begin, std::min<size_t>(end - begin, 60)), where)};
    }
    at = end + 1;
  }
  return {};
}
Evidence summed_in_code(const CaseView& view) {
  const Evidence logged = loss_summed_in(view.incident().log_text, "log");
  return logged.weight > 0 ? logged : loss_summed_in(view.incident().setup_text, "configuration");
}
Evidence growing_or_summed(const CaseView& view) {
  const Evidence grows = growing(view);
  return grows.weight > 0 ? grows : summed_in_code(view);
}

Evidence summed_on_the_host(const CaseView& view) {
  Evidence summed = summed_in_code(view);
  if (summed.weight > 0) summed.weight = 0.88;
  return summed;
}
bool of_pytorch_on_the_host(const CaseView& view) {
  return host_ran_out(view) && !view.has_job() && view.reinforcement_library().empty() &&
         view.log_says("tensorflow|keras|jax").empty();
}

Evidence growing_by_the_post(const CaseView& view) {
  const std::string_view told = view.story().growing;
  if (told.empty() || view.incident().growth.kind == GrowthKind::leak) return {};
  return {0.76, fmt::format("`{}` in the log", told)};
}

bool unknown_training(const CaseView& view) { return training_on_device(view) && unknown_program(view); }
// "after the first epoch", "after 1 epoch"
bool is_first_epoch(std::string_view told) {
  return !any_word(told, "the first epoch|one epoch|an epoch|after 1 epoch|第一个epoch|第一轮").empty();
}
Evidence after_the_first_epoch(const CaseView& view) {
  const std::string_view told = told_after_epochs(view.incident().log_text);
  if (told.empty() || !is_first_epoch(told)) return {};
  return {0.86, fmt::format("`{}` in the log", told)};
}
Evidence after_epochs(const CaseView& view) {
  const std::string_view told = told_after_epochs(view.incident().log_text);
  if (told.empty() || only_first_steps(told) || is_first_epoch(told)) return {};
  return {0.84, fmt::format("`{}` in the log", told)};
}
Evidence after_first_steps(const CaseView& view) {
  const std::string_view told = told_after_epochs(view.incident().log_text);
  if (told.empty() || !only_first_steps(told) || !view.story().growing.empty()) return {};
  return {0.78, fmt::format("`{}` in the log", told)};
}
// Detectors train on images of many sizes unless told otherwise; toolboxes with own situations are left to those.
Evidence detector_that_grows(const CaseView& view) {
  constexpr std::string_view kDetectors =
      "detr|groundingdino|grounding dino|faster rcnn|faster r-cnn|faster-rcnn|"
      "multi-scale|multiscale|coco$|object detect";
  constexpr std::string_view kOthers = "mmdet|yolo|detectron|caption|segmentation fault";
  const std::string& log = view.incident().log_text;
  const std::string_view word = any_word(log, kDetectors), grows = view.story().growing;
  if (word.empty() || grows.empty() || !any_word(log, kOthers).empty() || speaks_of_prediction(view)) return {};
  return {0.9, fmt::format("`{}` and `{}` in the log", word, grows)};
}
// What the batch does not change.
Evidence fails_with_the_smallest_batch(const CaseView& view) {
  if (view.message() == nullptr) return {};
  if (smallest_batch_failed(view.incident().log_text)) return {0.74, "the smallest batch fails too, by the log"};
  return {};
}
Evidence smaller_inputs_fail_too(const CaseView& view) {
  if (!tried_in_vain(view.incident().log_text, "input-size")) return {};
  Evidence failed = fails_with_the_smallest_batch(view);
  if (failed.weight > 0) failed.weight += 0.005;
  return failed;
}
// It may have run for a while before: frames, a progress bar or words speak of steps.
bool went_some_steps(const CaseView& view) {
  return steps_done(view).has_value() ||
         !view.log_says("iteration|iter |iters|epoch|step |steps|after |轮|迭代|エポック|ステップ").empty();
}
Evidence smallest_batch_after_steps(const CaseView& view) {
  return went_some_steps(view) ? fails_with_the_smallest_batch(view) : Evidence{};
}
Evidence smallest_batch_at_once(const CaseView& view) {
  return went_some_steps(view) ? Evidence{} : fails_with_the_smallest_batch(view);
}

// A device on which weights, gradients and states of a model of BERT's size, or of two, leave little.
constexpr int64_t kSmallDevice = int64_t{25} << 29;  // 12.5 GiB
Evidence smallest_batch_on_a_small_device(const CaseView& view) {
  std::optional<int64_t> device = size_of_the_device(view);
  if (const std::optional<double> told = device_in_words(view.incident().log_text); !device && told)
    device = static_cast<int64_t>(*told);
  if (!device || *device > kSmallDevice || speaks_of_images(view) || view.figures().requested) return {};
  Evidence failed = smallest_batch_at_once(view);
  if (failed.weight > 0) failed = {0.75, failed.shown + ", on a small device"};
  return failed;
}

// A sentence that asks for 16 bits.
Evidence asks_for_sixteen_bits(const CaseView& view) {
  constexpr std::string_view kSixteen =
      "fp16|float16|bf16|mixed precision|mixed-precision|half precision|半精度|混合精度";
  constexpr std::string_view kAsks =
      "no option|not see|n't see|not find|n't find|is there|how can|how do|how to|how should|missing|want to "
      "use|怎么|如何|怎样|どうすれば";
  Evidence asked;
  each_sentence(beginning(view), [&](std::string_view sentence) {
    const std::string_view bits = any_word(sentence, kSixteen);
    if (!bits.empty() && !any_word(sentence, kAsks).empty()) asked = {0.76, fmt::format("the log asks for `{}`", bits)};
    return asked.weight > 0;
  });
  return asked;
}

// A sentence of the post in which 16 bits fail, and one in which 32 go well.
Evidence sixteen_bits_fail(const CaseView& view) {
  constexpr std::string_view kSixteen =
                                 "fp16|float16|bf16|bfloat16|amp$|apex|autocast|mixed precision|mixed-precision|"
                                 "half precision|混合精度|半精度|16ビット|半精度浮動小数点",
                             kThirtyTwo =
                                 "fp32|float32|full precision|single precision|without --fp|without fp16|without amp|"
                                 "without apex|without mixed|without autocast|不用fp16|不开fp16|关闭fp16|不用amp|"
                                 "不开amp|关闭amp|单精度|32ビット",
                             kWell =
                                 "ok$|fine|works|worked|can train|can run|runs|goes well|no problem|no oom|正常|"
                                 "没问题|可以|能跑|問題な|動く|動きま";
  std::string_view fails, goes;
  each_sentence(beginning(view), [&](std::string_view sentence) {
    const bool out = !told_out_of_memory(sentence).empty();
    const std::string_view wide = any_word(sentence, kThirtyTwo);
    if (goes.empty() && !wide.empty() && !any_word(sentence, kWell).empty()) goes = wide;
    const std::string narrow = without_words(sentence, kThirtyTwo);
    if (fails.empty() && out && !any_word(narrow, kSixteen).empty()) fails = any_word(sentence, kSixteen);
    return !fails.empty() && !goes.empty();
  });
  if (fails.empty() || goes.empty()) return {};
  return {0.9, fmt::format("`{}` fails and `{}` goes well, by the post", fails, goes)};
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
     growing_or_summed},
    {"graphs_summed_on_the_host",
     "a sum over steps takes tensors with their graphs, so every step of the epoch stays, in host memory where the "
     "program computes on the CPU",
     of_pytorch_on_the_host,
     {},
     {{"detach-history", "total += value.item() (or .detach()), for metrics as for the loss; lists of .detach().cpu()"},
      {"no-grad", "with torch.no_grad(): around validation and whatever is only reported"},
      {"micro-batch", "a smaller batch_size: half of it"}},
     summed_on_the_host},
    {"growth_by_the_post",
     "by the post memory grows over time. If nvidia-smi shows the same from step to step, something is kept: a loss "
     "summed or listed without .item(), outputs in lists, graphs that are not detached; or longer inputs came",
     unknown_training,
     {},
     {{"detach-history",
       "total += loss.item(); hidden = hidden.detach(); lists of .detach().cpu(); no retain_graph=True"},
      {"other-version",
       "another release of PyTorch or of the library, if nothing is kept: some of them leaked from step to step"},
      {"find-sample",
       "or longer samples came: start with the longest one, leave out or cut what is far longer than the rest"},
      {"measure"}},
     growing_by_the_post},
    {"images_of_changing_size",
     "a detector trains on images of many sizes: the peak rises as larger ones come together, and the allocator's "
     "segments of the smaller ones do not fit them",
     unknown_training,
     {},
     {{"expandable-segments"},
      {"input-size", "a smaller largest side: data_aug_max_size, MAX_SIZE_TRAIN, the last of the scales"},
      {"micro-batch"},
      {"empty-cache", "torch.cuda.empty_cache() between training and evaluation, not in each step"}},
     detector_that_grows},
    {"failed_after_whole_epochs",
     "whole epochs or many steps went well, by the post, which does not say that memory grew meanwhile: a larger input "
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
    {"failed_after_the_first_epoch",
     "the steps of a whole epoch went well, by the post: what comes behind it is the validation, at its own batch and "
     "size, or a save",
     unknown_training,
     {},
     {{"eval-batch",
       "the validation: a batch of 1 there, smaller or fewer scales and crops, with torch.no_grad(): around it"},
      {"detach-history",
       "total += loss.item(); lists of .detach().cpu(); del loss, outputs at the end of a step: nothing kept over "
       "steps"},
      {"half-inference", "the validation in 16 bits: torch.autocast around its forward pass"},
      {"find-sample"}},
     after_the_first_epoch},
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
     smallest_batch_after_steps},
    {"one_input_is_too_large",
     "the smallest batch fails too, by the post: one input alone, with what the layers keep of it, or weights and "
     "states are too large, or something else holds the device",
     unknown_training,
     {},
     {{"input-size"},
      {"mixed-precision",
       "16 bits for the arithmetic: torch.autocast around forward pass and loss (use_amp, --amp, fp16=True)",
       {},
       System::unknown,
       "fp16|bf16| amp|use_amp|apex|autocast|mixed precision|mixed-precision|混合精度"},
      {"end-other-processes", "nvidia-smi: does another program, or an earlier run, hold the device?"},
      {"checkpointing"}},
     smallest_batch_at_once},
    {"smallest_batch_on_a_small_device",
     "the smallest batch fails too, by the post, on a small device: weights, gradients and Adam's states (16 bytes per "
     "parameter) may leave nothing, or one input is too large",
     unknown_training,
     {},
     {{"input-size"},
      {"larger-gpu", "a larger GPU (16 GB and more): 500M parameters take 8 GB with Adam before any row"},
      {"mixed-precision",
       "16 bits for the arithmetic: torch.autocast around forward pass and loss (use_amp, --amp, fp16=True)",
       {},
       System::unknown,
       "fp16|bf16| amp|use_amp|apex|autocast|mixed precision|mixed-precision|混合精度"},
      {"checkpointing"}},
     smallest_batch_on_a_small_device},
    {"smaller_inputs_fail_too",
     "the smallest batch and shorter or smaller inputs fail, by the post: the model itself is what is left",
     unknown_training,
     {},
     {{"smaller-model", "a smaller model: fewer layers, or half of the channels (hidden size)"}},
     smaller_inputs_fail_too},
    {"sixteen_bits_are_asked_for",
     "what the layers keep takes half in 16 bits; weights and states stay in 32",
     unknown_training,
     {},
     {{"mixed-precision",
       "16 bits for the arithmetic: torch.autocast around forward pass and loss, torch.cuda.amp.GradScaler for fp16"}},
     asks_for_sixteen_bits},
    {"sixteen_bits_take_more",
     "mixed precision holds 16-bit copies of the weights beside those in 32 bits: at a small batch it takes more than "
     "it saves, and releases differ in how long they keep the copies",
     unknown_training,
     {},
     {{"other-version",
       "without the 16 bits, as it ran; or another release of PyTorch and of the trainer (autocast of torch.cuda.amp "
       "against apex), and compare both"},
      {"half-weights"},
      {"checkpointing"},
      {"optimizer-8bit"}},
     sixteen_bits_fail},
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
