// What a device message shows about the machine, and what to try when the program is unknown.
#include <fmt/format.h>

#include <cctype>
#include <cstdlib>
#include <initializer_list>

#include "doctor/remedies/figures.h"
#include "doctor/remedies/log_batch.h"
#include "doctor/remedies/program_words.h"
#include "doctor/remedies/situations/conditions.h"
#include "doctor/remedies/situations/situation.h"
#include "doctor/remedies/told_growth.h"
#include "doctor/remedies/told_stage.h"
#include "doctor/remedies/tried.h"

namespace headroom::doctor {
namespace {

using enum System;
using enum Sign::In;

constexpr int64_t kGiB = int64_t{1} << 30;

// A diffusion model that generates images has its own situations; for one that trains, the batch comes first as usual.
bool makes_images(const CaseView& view) { return speaks_of_diffusion(view) && view.log_says("train").empty(); }
bool unknown_training(const CaseView& view) {
  return training_on_device(view) && unknown_program(view) && view.message() != nullptr && !makes_images(view);
}
bool unknown_prediction(const CaseView& view) {
  return predicting_on_device(view) && !view.training() && unknown_program(view) && view.message() != nullptr &&
         !speaks_of_diffusion(view);
}
bool untried_pieces(const CaseView& view) {
  return on_device(view) && !asks_beyond_the_device(view) &&
         !tried_in_vain(view.incident().log_text, "expandable-segments");
}
bool on_windows(const CaseView& view) { return on_device(view) && !windows_word(view.incident().log_text).empty(); }
bool not_on_windows(const CaseView& view) { return on_device(view) && !on_windows(view); }
bool any_device(const CaseView& view) { return view.pool() == Pool::device; }
bool of_any_framework(const CaseView& view) {
  return view.pool() == Pool::device && view.reinforcement_library().empty();
}
bool of_another_framework(const CaseView& view) { return view.foreign_framework(); }
bool with_tensorflow(const CaseView& view) { return view.foreign_framework() && view.framework() == "tensorflow"; }
bool with_jax(const CaseView& view) { return view.foreign_framework() && view.framework() == "jax"; }
bool any_framework(const CaseView& view) { return !view.has_job(); }
// TensorFlow reads the data of a program of JAX, and takes the device as if it computed there.
bool any_on_device(const CaseView& view) { return view.pool() == Pool::device && !view.has_job(); }
Evidence jax_beside_tensorflow(const CaseView& view) {
  const std::string& log = view.incident().log_text;
  const std::string_view jax = any_word(log, "jax$|jaxlib|jax.|flax"),
                         tensorflow = any_word(log, "tensorflow|tf$|tfds|tf.data");
  if (jax.empty() || tensorflow.empty() || !any_word(log, "torch|maxtext").empty()) return {};
  return {0.93, fmt::format("`{}` and `{}` in the log", jax, tensorflow)};
}
Evidence grows_under_tensorflow(const CaseView& view) {
  const std::string_view told = view.story().growing;
  return told.empty() ? Evidence{} : Evidence{0.87, fmt::format("`{}` in the log", told)};
}
// Beside memory that grows; a list of packages shows nothing.
Evidence metrics_that_grow(const CaseView& view) {
  constexpr std::string_view kPackages =
      "torchmetrics==|torchmetrics: |torchmetrics-|torchmetrics 0|torchmetrics 1|torchmetrics  ";
  constexpr std::string_view kMetrics =
      "torchmetric|metriccollection|pytorch_lightning.metrics|pl.metrics|lightning.metrics";
  const std::string log = without_words(view.incident().log_text, kPackages);
  const std::string_view metric = any_word(log, kMetrics);
  if (metric.empty() || (told_growing(log).empty() && told_after_epochs(log).empty())) return {};
  return {0.93, "memory that grows, and `" + std::string(metric) + "` in the log"};
}
bool disguised(const CaseView& view) {
  return on_device(view) && (view.framework() == "cublas" || view.framework() == "cudnn");
}
bool configured_elsewhere(const CaseView& view) {
  return training_on_device(view) && unknown_program(view) && !view.message();
}
bool own_optimizer(const CaseView& view) { return training_on_device(view) && !several_gpus(view); }

// A frame of the update, or a sentence that says so; a line of code that a post shows is neither.
Evidence in_an_update(const CaseView& view) {
  if (view.phase("optimizer_step") || view.phase("optimizer_init"))
    return {0.84, fmt::format("in the frames: {}", view.message()->phase_evidence)};
  Evidence told;
  each_sentence(beginning(view), [&](std::string_view sentence) {
    const bool update = sentence.find("optimizer.step") != std::string_view::npos;
    if (update && !told_out_of_memory(sentence).empty())
      told = {0.84, "`optimizer.step`, where the log says that it failed"};
    return told.weight > 0;
  });
  return told;
}

// The size directly after one of the words: "7.92gib", "190.31mib".
std::optional<int64_t> size_behind(const std::string& text, std::initializer_list<std::string_view> words) {
  for (const std::string_view word : words) {
    const std::optional<double> number = number_behind(text, word, 0);
    if (!number) continue;
    const size_t unit = text.find_first_not_of("0123456789.", text.find(word) + word.size());
    if (unit == std::string::npos) continue;
    if (text.compare(unit, 3, "gib") == 0) return static_cast<int64_t>(*number * 0x1p30);
    if (text.compare(unit, 3, "mib") == 0) return static_cast<int64_t>(*number * 0x1p20);
  }
  return std::nullopt;
}

// More is allocated than the device has.
Evidence beyond_capacity(const CaseView& view) {
  const MessageFigures& f = view.figures();
  if (!f.allocated || !f.capacity || *f.allocated <= *f.capacity) return {};
  return {0.85, fmt::format("{} allocated on a device of {}", figure(*f.allocated), figure(*f.capacity))};
}

// On a small device even a few small tensors do not fit: weights, gradients and states fill it.
// Where it failed in a forward pass, the layers' results fill it as well, and the batch decides about those.
Evidence small_device(const CaseView& view) {
  const MessageFigures& f = view.figures();
  if (view.phase("forward")) return {};
  if (!f.capacity || *f.capacity > 5 * kGiB / 2 || !f.requested || *f.requested > *f.capacity / 32) return {};
  if (f.free.value_or(0) > *f.capacity / 8) return {};
  return {0.78, fmt::format("{} of {} asked", figure(*f.requested), figure(*f.capacity))};
}

// A device of up to 4 GB, which a current model nearly fills.
Evidence of_4_gb(const CaseView& view) {
  const MessageFigures& f = view.figures();
  if (!f.capacity || *f.capacity > 9 * kGiB / 2 || !(f.requested || f.allocated)) return {};
  return {0.71, fmt::format("a device of {}", figure(*f.capacity))};
}

// A language model on a device of up to 6 GB, where a smaller batch did not help.
Evidence language_model_on_a_small_device(const CaseView& view) {
  const MessageFigures& f = view.figures();
  const int64_t capacity = f.capacity.value_or(0);
  if (capacity <= 0 || capacity > 13 * kGiB / 2 || !speaks_of_texts(view)) return {};
  if (!smaller_batch_failed(view.incident().log_text)) return {};
  return {0.8, fmt::format("a device of {}, and a smaller batch did not help", figure(capacity))};
}

// Most of the device is held by other processes.
Evidence held_by_others(const CaseView& view) {
  const MessageFigures& f = view.figures();
  const int64_t others = f.foreign.value_or(f.unattributed.value_or(0));
  if (!view.reinforcement_library().empty()) return {};  // they may be the job's own server
  if (!f.capacity || others <= *f.capacity / 2) return {};
  return {0.88, fmt::format("{} of {} are not this process's", figure(others), figure(*f.capacity))};
}

// Much more is free than was requested.
Evidence free_but_refused(const CaseView& view) {
  const MessageFigures& f = view.figures();
  if (!f.free || !f.requested || *f.free < 2 * *f.requested || view.message()->process_limit_bytes) return {};
  if (*f.free < kGiB / 4) return {};  // less than a few segments of the allocator
  return {0.82, fmt::format("{} free, {} asked", figure(*f.free), figure(*f.requested))};
}

// Devices of this size are used for language models more often than for images.
constexpr int64_t kLargeDevice = 30 * kGiB;

bool of_a_large_device(const CaseView& view) { return view.figures().capacity.value_or(0) >= kLargeDevice; }

Evidence failed_on_a_large_device(const CaseView& view) {
  if (!of_a_large_device(view)) return {};
  const MessageFigures& f = view.figures();
  if (!f.allocated) return {0.71, fmt::format("a device of {}", figure(*f.capacity))};
  return {0.71, fmt::format("{} of {} are live tensors", figure(*f.allocated), figure(*f.capacity))};
}

Evidence without_figures(const CaseView& view) {
  const MessageFigures& f = view.figures();
  if (f.requested || f.allocated) return {};
  return {0.7, "an error without figures"};
}

Evidence only_that_it_failed(const CaseView& view) {
  const MessageFigures& f = view.figures();
  if (of_a_large_device(view) || !(f.requested || f.allocated)) return {};
  return {0.7, f.allocated ? fmt::format("{} are live tensors", figure(*f.allocated)) : "an error without more"};
}

// The driver's error without PyTorch's figures, on Windows.
Evidence refused_by_windows(const CaseView& view) {
  if (view.foreign_framework() || view.framework() != "cuda") return {};
  const std::string_view windows = windows_word(view.incident().log_text);
  if (windows.empty()) return {};
  return {0.83, fmt::format("the driver's error, and `{}` in the log", windows)};
}

// TensorFlow at start: "Total memory: 7.92GiB", "Free memory: 190.31MiB".
Evidence little_free_at_the_start(const CaseView& view) {
  const std::string& text = view.incident().log_text;
  const std::optional<int64_t> total = size_behind(text, {"total memory: ", "totalmemory: "});
  const std::optional<int64_t> free = size_behind(text, {"free memory: ", "freememory: "});
  if (total && free && *free < *total / 2)
    return {0.92, fmt::format("{} of {} were free at the start", figure(*free), figure(*total))};
  return {};
}

// A table of nvidia-smi with an idle device that is half full: another program runs there.
Evidence idle_and_full(const CaseView& view) {
  if (const Evidence start = little_free_at_the_start(view); start.weight > 0) return start;
  const std::string& text = view.incident().log_text;
  for (size_t at = text.find("mib / "); at != std::string::npos; at = text.find("mib / ", at + 6)) {
    const size_t end = std::min(text.find('\n', at), text.size());
    size_t begin = at;
    while (begin > 0 && std::isdigit(static_cast<unsigned char>(text[begin - 1])) != 0) --begin;
    const double used = std::strtod(text.c_str() + begin, nullptr), all = std::strtod(text.c_str() + at + 6, nullptr);
    const bool idle = text.substr(at, end - at).find(" 0%") != std::string::npos;
    if (idle && all > 0 && used > all / 2)
      return {0.86, fmt::format("{:.0f} of {:.0f} MiB used on an idle device, in the log's nvidia-smi", used, all)};
  }
  return {};
}

// The word that says that it predicts; without one, the situation is not named.
std::string_view prediction_word(const CaseView& view) {
  if (!view.inference_word().empty()) return view.inference_word();
  // "prompts the error" tells of no prompt, and a layer for positions or tokens of no program that makes embeddings.
  const std::string log = without_words(view.incident().log_text,
                                        "prompts the|prompts an|prompts error|prompts out|prompts cuda|prompts that|"
                                        "_embedding|positional embedding|position embedding|nn.embedding|embedding.py|"
                                        "embeddings.py|embedding layer");
  const std::string_view told = view.story().at(ToldStage::prediction);
  if (!told.empty() && log.find(told) != std::string::npos) return view.story().at(ToldStage::prediction);
  if (!view.story().at(ToldStage::evaluation).empty()) return view.story().at(ToldStage::evaluation);
  constexpr std::string_view kWords =
      "inference|infer$|infer.|predict|demo|generat|test.py|eval|detect|推理|预测|测试|生成|识别|部署|推論|予測|"
      "chat|server|embedding|encode|sampl|render|convert|translat|segment|ocr";
  const std::string_view word = any_word(log, kWords);
  return word.empty() ? any_word(view.incident().setup_text, kWords) : word;
}
Evidence only_predicts(const CaseView& view) {
  if (view.phase("inference")) return {0.71, "its frames are of a prediction"};
  const std::string_view word = prediction_word(view);
  return word.empty() ? Evidence{} : Evidence{0.71, fmt::format("`{}` in the log", word)};
}
Evidence of_no_stage(const CaseView& view) {
  if (only_predicts(view).weight > 0) return {};
  return {0.71, "no word says at which of them it failed"};
}

// Nothing beside the failure itself: no figures, and no more than a sentence.
bool says_no_more(const CaseView& view) {
  constexpr size_t kSentence = 100;
  const std::string& log = view.incident().log_text;
  return log.size() < kSentence && any_word(log, "nvidia-smi|gib|mib|gb|reserv|缓存|予約").empty();
}
Evidence without_anything_else(const CaseView& view) { return says_no_more(view) ? without_figures(view) : Evidence{}; }
Evidence with_words_beside(const CaseView& view) { return says_no_more(view) ? Evidence{} : without_figures(view); }

constexpr Situation kSituations[] = {
    {"beyond_the_device",
     "Windows and WSL lend host memory to a full GPU: the job is larger than the device, and crawls before it fails",
     on_device,
     {},
     {{"micro-batch"}, {"input-size"}, {"no-sysmem-fallback"}},
     beyond_capacity},
    {"refused_beside_free_memory",
     "the device has room, and the driver refuses a new segment: addresses in pieces, or Windows' limit of what may be "
     "committed",
     not_on_windows,
     {},
     {{"expandable-segments", "export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True (torch >= 2.1)"},
      {"more-swap", "Windows: a larger paging file; what the GPU takes is committed there too"},
      {"end-other-processes", "nvidia-smi: another program may take the memory in between"}},
     free_but_refused},
    {"refused_beside_free_memory_on_windows",
     "the device has room, and the driver refuses a new segment: Windows' limit of what may be committed, or addresses "
     "in pieces",
     on_windows,
     {},
     {{"more-swap",
       "a larger paging file (System > Advanced > Performance > Virtual memory): what the GPU takes is "
       "committed there too"},
      {"input-size"},
      {"max-split-size", "set PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:512"},
      {"end-other-processes", "nvidia-smi: another program may take the memory in between"}},
     free_but_refused},
    {"fragments_by_the_log",
     "the log speaks of memory in pieces: segments that grow leave none between them",
     untried_pieces,
     {{log, 0.83, "memory fragmentation|fragmented|memory is fragment|due to fragmentation|碎片|断片化"}},
     {{"expandable-segments", "export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True (torch >= 2.1)"},
      {"length-buckets"},
      {"empty-cache"}}},
    {"commit_limit_of_windows",
     "the driver refused, not PyTorch: on Windows what the GPU takes is committed in the paging file too, and that is "
     "full first",
     any_device,
     {},
     {{"more-swap",
       "System > Advanced > Performance > Virtual memory: a larger paging file (32 GB and more) on a drive with room"},
      {"input-size"},
      {"end-other-processes", "Task Manager: end what holds memory or the GPU"}},
     refused_by_windows},
    {"small_device",
     "weights fill a small device by themselves, in training with gradients and Adam's states (16 bytes per "
     "parameter): "
     "a smaller batch does not change them",
     unknown_training,
     {},
     {{"on-cpu"},
      {"smaller-model", "a smaller model, or a larger GPU: 100M parameters take 1.6 GB with Adam before any batch"},
      {"micro-batch"}},
     small_device},
    {"language_model_on_a_small_device",
     "weights, gradients and Adam's states of a model of BERT's size take 2 GB, and its layers keep more: a smaller "
     "batch "
     "does not change the former",
     unknown_training,
     {},
     {{"larger-gpu", "a larger GPU (8 GB and more; a free notebook has 15 GB)"},
      {"smaller-model", "a smaller model of the same kind (distilled, small, tiny): half of the layers"},
      {"sequence-length", "shorter texts: max_seq_length 128 or less"},
      {"freeze", "the embeddings and the first layers frozen: no gradients and no states for them"}},
     language_model_on_a_small_device},
    {"device_of_4_gb",
     "a small device: what fits on 8 GB and more may need another model here",
     unknown_training,
     {},
     {{"micro-batch"},
      {"input-size"},
      {"smaller-model", "a smaller model of the same kind (tiny, base, mobile, distilled), or a larger GPU"}},
     of_4_gb},
    {"device_taken_at_start",
     "another program holds the device, or an earlier run of this one that hangs",
     on_device,
     {{log, 0.86, "_cuda_init|_lazy_init|cudagetdevicecount|busy or unavailable|free memory on device"},
      {log, 0.78, "less than desired gpu memory utilization"}},
     {{"end-other-processes"}, {"gpu-memory-utilization", {}, {}, vllm}},
     held_by_others},
    {"states_at_the_first_step",
     "the optimizer makes its states at the first step: 8 bytes per trained weight with Adam, after one pass went well",
     own_optimizer,
     {{log, 0.84, "exp_avg_sq|_single_tensor_adam|_multi_tensor_adam|_init_group"}},
     {{"optimizer-8bit"}, {"lora"}, {"micro-batch"}, {"smaller-model"}},
     in_an_update},
    {"library_finds_no_room",
     "the framework took the device at its start, and the library has no room left for its handle or workspace",
     of_another_framework,
     {{log, 0.85,
       "cublas_status_alloc_failed|failed to create cublas handle|cudnn_status_alloc_failed|could not create cudnn "
       "handle|cudnn_status_internal_error|failed to get convolution algorithm|determine best cudnn convolution"}},
     {{"grow-on-demand"},
      {"end-other-processes", "nvidia-smi: end the program that holds the device"},
      {"micro-batch"}}},
    {"disguised_error",
     "a CUDA library could not start: the device is full, or an index out of range (labels, vocabulary) broke it "
     "before",
     disguised,
     {{log, 0.76, "cublas_status_alloc_failed|cublas_status_not_initialized|cudnn_status_not_initialized"}},
     {{"micro-batch"},
      {"on-cpu", "run one step on the CPU (device=\"cpu\"): an index out of range names itself there"},
      {"end-other-processes", "nvidia-smi: another program may hold the device"}}},
    {"taken_before_this_program",
     "the device was not empty when the program came: another program, or an earlier run that still holds it",
     of_any_framework,
     {},
     {{"end-other-processes",
       "nvidia-smi, fuser -v /dev/nvidia*: end what still holds the device, or take another GPU"},
      {"grow-on-demand"},
      {"micro-batch"}},
     idle_and_full},
    {"device_grows_under_tensorflow",
     "by the post it grows from call to call: predict() and fit() in a loop make new functions and data sets each "
     "time, "
     "models that are made again stay, and results in lists do",
     with_tensorflow,
     {},
     {{"detach-history",
       "in a loop model(x, training=False) or predict_on_batch(x); results as NumPy arrays (.numpy()), nothing else in "
       "lists"},
      {"empty-cache", "tf.keras.backend.clear_session() and gc.collect() before a model is made again"},
      {"micro-batch"}},
     grows_under_tensorflow},
    {"tensorflow_takes_it_all",
     "TensorFlow asks the driver for nearly the whole device at its start: what others hold is missing then",
     with_tensorflow,
     {{log, 0.84, "from device: cuda_error_out_of_memory"}},
     {{"end-other-processes", "nvidia-smi: another program, or an earlier run of this one, may hold the device"},
      {"grow-on-demand"},
      {"micro-batch"}}},
    {"session_does_not_start",
     "TensorFlow found no room for its session: another program, or an earlier run of this one, holds the device",
     with_tensorflow,
     {{log, 0.86, "failed to create session"}},
     {{"end-other-processes",
       "nvidia-smi: end what holds the device, or take a free one: CUDA_VISIBLE_DEVICES=<its number>"},
      {"grow-on-demand"}}},
    {"full_before_the_batch",
     "the device was full before any batch: a constant of a few bytes found no room",
     with_tensorflow,
     {{log, 0.86, "with shape[] |of shape [] |tensor of shape []|with shape[1] "}},
     {{"end-other-processes", "nvidia-smi: another program, or an earlier run of this one, may hold the device"},
      {"grow-on-demand"},
      {"micro-batch"}}},
    {"tensorflow_on_a_full_device",
     "batch and input size decide; TensorFlow takes nearly the whole device at its start",
     with_tensorflow,
     {{log, 0.72, "oom when allocating|resource exhausted|ran out of memory|out of memory"}},
     {{"micro-batch"},
      {"input-size"},
      {"grow-on-demand"},
      {"end-other-processes", "nvidia-smi: an earlier run may still hold the device; end it by its number"}}},
    {"mask_rcnn_of_keras",
     "Mask R-CNN for Keras takes IMAGES_PER_GPU images at a time, and hundreds of regions of each: its configuration "
     "class holds both",
     with_tensorflow,
     {{log, 0.87, "mrcnn|mask_rcnn|mask-rcnn|mask rcnn|maskrcnn"}},
     {{"micro-batch", "IMAGES_PER_GPU = 1 in the Config class (2 unless stated; GPU_COUNT times it is the batch)"},
      {"input-size", "smaller images: IMAGE_MIN_DIM = 512, IMAGE_MAX_DIM = 512 (multiples of 64)"},
      {"smaller-model",
       "BACKBONE = \"resnet50\", fewer regions: TRAIN_ROIS_PER_IMAGE = 100, to predict DETECTION_MAX_INSTANCES = 50"}}},
    {"object_detection_api",
     "TensorFlow's Object Detection API reads batch and image size from pipeline.config: images keep their size up to "
     "the resizer's bounds",
     with_tensorflow,
     {{log, 0.87,
       "object detection "
       "api|object_detection/|pipeline.config|model_main_tf2|model_main.py|image_resizer|legacy/train.py"}},
     {{"micro-batch", "train_config { batch_size: <half> } in pipeline.config (Faster R-CNN: 1)"},
      {"input-size",
       "a smaller image_resizer: keep_aspect_ratio_resizer { min_dimension: 300 max_dimension: 600 }, or "
       "fixed_shape_resizer 300 x 300"},
      {"smaller-model", "a smaller network of the model zoo (SSD MobileNet)"},
      {"grow-on-demand"}}},
    {"pinned_memory_of_tensorflow",
     "TensorFlow pins host memory for what waits on its way to the device: samples of shuffle and prefetch buffers, "
     "and whole batches",
     any_framework,
     {{log, 0.9, "could not allocate pinned host memory|bytes on host: cuda_error_out_of_memory"}},
     {{"lean-load",
       "fewer samples that wait: a smaller shuffle buffer (buffer_size, capacity, num_samples), prefetch(1), fewer "
       "parallel calls"},
      {"micro-batch", "a smaller batch: half of it"},
      {"host-memory"}}},
    {"jax_beside_tensorflow",
     "TensorFlow only reads the data there, and takes nearly the whole device at its start all the same, before or "
     "beside JAX",
     any_on_device,
     {},
     {{"grow-on-demand",
       "tf.config.set_visible_devices([], \"GPU\") right after the import: TensorFlow stays off the GPU"},
      {"own-allocator", "JAX: XLA_PYTHON_CLIENT_PREALLOCATE=false, or XLA_PYTHON_CLIENT_MEM_FRACTION=0.5"},
      {"end-other-processes", "nvidia-smi: another program, or an earlier run, may hold the device"}},
     jax_beside_tensorflow},
    {"metrics_that_keep_state",
     "a metric object keeps what every batch gave it (counts, or all predictions) until it is reset",
     any_on_device,
     {},
     {{"detach-history",
       "metric.reset() at the end of every epoch, of validation and test too; update(), not a list of its results"},
      {"eval-accumulation",
       "states of lists on the host: Metric(compute_on_cpu=True); predictions detached: metric.update(p.detach(), y)"},
      {"micro-batch"}},
     metrics_that_grow},
    {"jax_preallocates",
     "JAX takes three quarters of the device at its start, whatever it needs",
     with_jax,
     {{log, 0.72, "resource_exhausted|out of memory|failed to allocate"}},
     {{"micro-batch"}, {"grow-on-demand"}, {"checkpointing"}}},
    {"metal_limit",
     "Apple's GPU may take a share of the unified memory only",
     any_device,
     {{log, 0.85, "mps backend out of memory"}},
     {{"own-allocator", "export PYTORCH_MPS_HIGH_WATERMARK_RATIO=0.0 (no limit; the system may swap)"},
      {"micro-batch"},
      {"quantized-model", "a smaller or quantised model; diffusers: pipe.enable_attention_slicing()"}}},
    {"configuration_of_another_program",
     "a program that doctor does not read; in every training batch, length and what the layers keep decide",
     configured_elsewhere,
     {{setup, 0.7, "batch_size|learning_rate|num_epochs|optimizer"}},
     {{"micro-batch", "half of the batch size, twice the accumulation"},
      {"sequence-length", "a shorter sequence or smaller images: half the length"},
      {"checkpointing"}}},
    {"unknown_program_on_a_large_device",
     "batch, length and what every layer keeps decide",
     unknown_training,
     {},
     {{"micro-batch"},
      {"checkpointing"},
      {"input-size", "shorter texts (max_length), smaller images or crops: half the size"}},
     failed_on_a_large_device},
    {"unknown_prediction",
     "a program that only predicts: weights, and what one input takes on its way through the layers",
     unknown_prediction,
     {},
     {{"input-size", "a smaller input: image size, length, a video in chunks of a few frames; fewer at a time"},
      {"no-grad", "with torch.no_grad(): around it (or torch.inference_mode())"},
      {"half-inference",
       "model.half(), or torch_dtype=torch.float16 in from_pretrained()",
       {},
       System::unknown,
       "load_in_8bit|load_in_4bit|8bit|4bit|8-bit|4-bit|int8|int4|float16|fp16|half()|bfloat16|半精度"}},
     only_predicts},
    {"unknown_program_of_no_stage",
     "in training, batch and input size decide what is kept for the backward pass; in prediction, what one pass takes",
     unknown_prediction,
     {},
     {{"input-size"},
      {"micro-batch", "a smaller batch: half of it"},
      {"no-grad", "if it only predicts: with torch.no_grad(): around it, model.half()"}},
     of_no_stage},
    {"failed_without_figures",
     "the error says no more than that: the program's own batch, or another program on the device",
     unknown_training,
     {},
     {{"micro-batch"},
      {"end-other-processes", "nvidia-smi (rocm-smi, npu-smi info): does another program hold the device?"},
      {"input-size"}},
     without_anything_else},
    {"failed_without_its_figures",
     "the message has no figures: the program's own batch is the usual cause, or another program on the device",
     unknown_training,
     {},
     {{"micro-batch"},
      {"end-other-processes", "nvidia-smi (rocm-smi, npu-smi info): does another program hold the device?"},
      {"input-size"}},
     with_words_beside},
    {"unknown_program",
     "in training, batch and input size decide what is kept for the backward pass; in prediction, what one pass takes",
     unknown_training,
     {},
     {{"micro-batch"},
      {"input-size"},
      {"no-grad",
       "if it only predicts: with torch.no_grad(): around it, model.half()",
       {},
       System::unknown,
       "train|训练|学習|epoch|backward|optimizer"}},
     only_that_it_failed},
};

}  // namespace

std::span<const Situation> device_situations() { return kSituations; }

}  // namespace headroom::doctor
