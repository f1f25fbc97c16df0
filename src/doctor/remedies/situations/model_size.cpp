// A model whose weights alone exceed the device: neither the batch nor the context changes that.
#include <fmt/format.h>

#include <algorithm>

#include "doctor/remedies/figures.h"
#include "doctor/remedies/log_batch.h"
#include "doctor/remedies/log_job.h"
#include "doctor/remedies/model_words.h"
#include "doctor/remedies/own_words.h"
#include "doctor/remedies/posted_numbers.h"
#include "doctor/remedies/situations/conditions.h"
#include "doctor/remedies/situations/situation.h"

namespace headroom::doctor {
namespace {

constexpr double kGib = 0x1p30;
constexpr double kOverhead = 1.15;  // of 4 bits: scales, and what stays in 16
constexpr double kShare = 0.95;     // of the device, for weights at most
constexpr double kShareOfTraining = 0.85;

// On one device: the size of a model tells nothing when several devices share the weights.
bool alone(const CaseView& view) {
  constexpr std::string_view kShared = "tensor_parallel|tensor parallel|device_map|pipeline_parallel|pipeline-parallel";
  if (!on_device(view) || view.sharded() || view.gpus() > 1 || !view.reinforcement_library().empty()) return false;
  if (speaks_of_diffusion(view) || !view.log_says(kShared).empty()) return false;
  return !view.story().several_devices && posted_shards(view.incident().log_text) <= 1 &&
         posted_shards(view.incident().setup_text) <= 1;
}
bool names_ollama(const CaseView& view) { return view.says("ollama"); }
bool alone_with_ollama(const CaseView& view) { return alone(view) && names_ollama(view); }
bool alone_without_ollama(const CaseView& view) { return alone(view) && !names_ollama(view); }
// A message alone is assumed to be from a training; here the log or a job must say so.
bool speaks_of_training(const CaseView& view) {
  constexpr std::string_view kAdapters = "lora|finetun|fine-tun";
  return view.training() && (view.has_job() || view.story().task == ToldTask::training ||
                             !any_word(view.incident().log_text, kAdapters).empty());
}
bool trained_alone(const CaseView& view) { return !view.serving() && alone(view) && speaks_of_training(view); }
bool predicting_alone(const CaseView& view) {
  // A layer at a time is on the device where a model is quantised.
  return !view.serving() && alone(view) && !speaks_of_training(view) && view.story().at(ToldStage::quantising).empty();
}
bool predicting_on_several(const CaseView& view) {
  return on_device(view) && !view.serving() && !view.has_job() && view.reinforcement_library().empty() &&
         !speaks_of_diffusion(view) && !speaks_of_training(view) && view.story().task != ToldTask::training &&
         view.log_says("train|finetun|fine-tun|deepspeed|fsdp|微调|训练").empty() &&
         view.story().at(ToldStage::quantising).empty() && view.story().at(ToldStage::converting).empty() &&
         view.story().at(ToldStage::merging).empty() && view.story().several_devices;
}
bool serving_alone(const CaseView& view) {
  const Job& job = view.job();
  return view.serving() && alone(view) && job.system != System::llama_server && job.parallel.tensor.value_or(1) == 1;
}

// Devices that share a server's weights by its options; what the post cannot do, or asks for, is none of them.
int64_t shards_in_use(const CaseView& view) {
  constexpr std::string_view kNot =
      "can't|cannot|can not|don't|do not|without|how|should|could|instead|need to|want|if i|不能|无法|怎么|如何|想|?";
  std::string text = without_replies(view.incident().log_text);
  const std::string read = text;
  each_sentence(beginning(read), [&](std::string_view sentence) {
    each_clause(sentence, [&](std::string_view clause) {
      const size_t at = static_cast<size_t>(clause.data() - read.data());
      if (!any_word(clause, kNot).empty()) text.replace(at, clause.size(), clause.size(), ' ');
      return false;
    });
    return false;
  });
  return std::max({posted_shards(text), posted_shards(view.incident().setup_text),
                   view.job().parallel.tensor.value_or(1) * view.job().parallel.pipeline.value_or(1)});
}
bool serving_on_one_of_several(const CaseView& view) {
  if (!view.serving() || !on_device(view) || view.job().system == System::llama_server) return false;
  if (!view.reinforcement_library().empty() || speaks_of_diffusion(view)) return false;
  return (view.gpus() > 1 || view.story().several_devices) && shards_in_use(view) == 1;
}

std::optional<double> device_bytes(const CaseView& view) {
  if (view.figures().capacity) return static_cast<double>(*view.figures().capacity);
  if (view.gpu()) return static_cast<double>(view.gpu()->memory_bytes);
  if (const std::optional<double> told = device_in_words(view.incident().log_text)) return told;
  const std::optional<Gpu> named = gpu_in_words(view.incident().log_text, serving_on_one_of_several(view));
  return named ? std::optional(static_cast<double>(named->memory_bytes)) : std::nullopt;
}

// The job's model if there is a job, else the one that the text names.
std::optional<ModelWords> model_of(const CaseView& view) {
  if (view.shape() && view.has_job()) {
    ModelWords model{view.shape()->parameters, "the model", 16};
    const std::string kind = view.job().precision.quantization.value_or("none");
    if (kind != "none") model.bits = kind.find('8') == std::string::npos ? 4 : 8;
    return model;
  }
  std::optional<ModelWords> model =
      model_in_words(view.incident().log_text + "\n" + view.incident().setup_text + "\n" + view.job().model);
  // llama.cpp's files, and so Ollama's, have 4 bits unless their name says more.
  const bool files = view.job().system == System::llama_server || (names_ollama(view) && view.log_says("fp16").empty());
  if (model && files && model->bits == 16) model->bits = 4;
  return model;
}

// Weights of `least` to `most` bits that do not fit; of no weight when they would, or when a size is unknown.
Evidence beyond(const CaseView& view, int least, int most, double weight) {
  const std::optional<double> device = device_bytes(view);
  const std::optional<ModelWords> model = model_of(view);
  if (!device || !model || model->bits < least || model->bits > most) return {};
  const double bytes = model->parameters * model->bits / 8 * (model->bits == 4 ? kOverhead : 1.0);
  // A training holds more beside them.
  if (bytes < (view.training() && speaks_of_training(view) ? kShareOfTraining : kShare) * *device) return {};
  return {weight, fmt::format("{}: {:.1f} GiB in {} bits, on {}", model->written, bytes / kGib, model->bits,
                              figure(static_cast<int64_t>(*device)))};
}

Evidence larger_in_16_bits(const CaseView& view) { return beyond(view, 8, 16, 0.85); }
Evidence larger_in_4_bits(const CaseView& view) { return beyond(view, 4, 4, 0.87); }

// Where no size is known, larger than what one device of a server usually has.
Evidence larger_than_one_of_several(const CaseView& view) {
  constexpr double kUsualDevice = 80 * kGib;
  Evidence larger = beyond(view, 4, 16, 0.93);
  const std::optional<ModelWords> model = model_of(view);
  if (larger.weight > 0 || device_bytes(view) || !model) return larger;
  const double bytes = model->parameters * model->bits / 8;
  if (bytes < kShare * kUsualDevice) return {};
  return {0.9, fmt::format("{}: {:.1f} GiB in {} bits, and one device of several", model->written, bytes / kGib,
                           model->bits)};
}

// The weights are a small part of the device, and nothing is said of how far the server came.
Evidence far_smaller(const CaseView& view) {
  constexpr double kSmall = 1.0 / 3;
  const std::optional<double> device = device_bytes(view);
  const std::optional<ModelWords> model = model_of(view);
  const MessageFigures& f = view.figures();
  if (!view.message() || !device || !model || f.allocated || f.requested || !view.log_says("kv cache").empty())
    return {};
  const double bytes = model->parameters * model->bits / 8;
  if (bytes > kSmall * *device) return {};
  return {0.81, fmt::format("{}: {:.1f} GiB of weights on {}", model->written, bytes / kGib,
                            figure(static_cast<int64_t>(*device)))};
}

// Weights and gradients in 16 bits, with Adam's two states and a master copy in 32 bits, far exceed the device, and
// nothing says that less is trained or that it is sharded.
Evidence states_beyond(const CaseView& view) {
  constexpr double kBytes = 16, kFar = 1.5;
  constexpr std::string_view kDivided = "freez|frozen|offload|deepspeed|fsdp|zero-|zero3|zero2";
  constexpr std::string_view kLess = "lora|adapter|peft|freez|frozen|offload|deepspeed|fsdp|zero-|zero3|zero2|bit";
  constexpr std::string_view kAll =
      "full fine|full-fine|full finetun|full parameter|full-parameter|all parameters|all the parameters|full_finetun|"
      "full training|full sft|sft full|full tuning|full ft$|finetuning_type full|finetuning_type: "
      "full|全参|全量|全パラメータ|フルファインチューニング";
  // Adapters are often trained and not named: then it stands behind what helps either way.
  const bool all = !view.log_says(kAll).empty();
  // Where all weights train by the post, adapters are only compared with.
  const std::string_view less = view.log_says(all ? kDivided : kLess);
  if (view.has_job() || several_gpus(view) || !less.empty()) return {};
  const std::optional<double> device = device_bytes(view);
  const std::optional<ModelWords> model = model_of(view);
  if (!device || !model || model->parameters * kBytes < (all ? 1.0 : kFar) * *device) return {};
  const MessageFigures& f = view.figures();
  const bool words = !f.requested && !f.allocated;
  return {all     ? 0.88
          : words ? 0.74
                  : 0.65,
          fmt::format("{}: {:.0f} GiB with Adam, 16 bytes per parameter, on {}", model->written,
                      model->parameters * kBytes / kGib, figure(static_cast<int64_t>(*device)))};
}

// "7b works fine", "13b runs out of memory": by the post the size of the model decides.
Evidence only_the_larger_fails(const CaseView& view) {
  constexpr std::string_view kWell =
      "works|worked|runs fine|trains fine|is fine|goes well|no problem|without problem|can train|can run|正常|没问题|"
      "没有问题|可以跑|能跑|可以训练|動きます|動いた|動く|問題な";
  constexpr std::string_view kFails =
      "fails|failed|failing|crash|oom$|out of memory|cannot|can't|爆显存|显存不足|不行|メモリ不足";
  std::optional<ModelWords> well, fails;
  const std::string own = without_replies(view.incident().log_text);
  each_sentence(beginning(own), [&](std::string_view sentence) {
    std::string rest(sentence);
    each_clause(sentence, [&](std::string_view clause) {
      const bool good = !affirmed_word(clause, kWell).empty();
      if (good && !well) well = model_in_words(std::string(clause));
      if (good) rest = without_words(rest, clause);
      return false;
    });
    if (!fails && !any_word(sentence, kFails).empty()) fails = model_in_words(rest);
    return well && fails;
  });
  if (!well || !fails || fails->parameters <= well->parameters) return {};
  return {0.86, fmt::format("{} goes well and {} fails, by the post", well->written, fails->written)};
}
bool trained_by_words(const CaseView& view) {
  return training_on_device(view) && unknown_program(view) && !view.has_job() && speaks_of_training(view);
}
bool predicting_by_words(const CaseView& view) {
  return on_device(view) && !view.has_job() && !trained_by_words(view) && !speaks_of_diffusion(view);
}

// LoRA on a base whose weights in 16 bits are most of one device.
bool adapters_on_a_base(const CaseView& view) {
  constexpr std::string_view kFewer = "qlora|4bit|8bit|4-bit|8-bit|int4|int8|quantization_bit|awq|gptq";
  // A job of which only words and numbers tell is spelt like one without.
  const bool bare = !view.has_job() || (own_program(view.job().system) && !view.quantized_base());
  return training_on_device(view) && bare && !view.sharded() && !speaks_of_diffusion(view) &&
         !view.log_says("lora|peft|ptuning|p-tuning|pre_seq_len|prefix tuning").empty() &&
         view.log_says(kFewer).empty();
}
// A base that only its number of parameters tells, where the words name none.
std::optional<ModelWords> base_of(const CaseView& view) {
  if (const std::optional<ModelWords> named = model_of(view)) return named;
  if (!view.shape()) return std::nullopt;
  return ModelWords{static_cast<double>(view.shape()->parameters), "the base", 16};
}
Evidence base_fills_the_device(const CaseView& view) {
  constexpr double kMostOfADevice = 0.65, kBesideOneRow = 0.4;
  const std::optional<Gpu> named = gpu_in_words(view.incident().log_text, true);
  std::optional<double> device = device_bytes(view);
  if (!device && named) device = static_cast<double>(named->memory_bytes);
  const std::optional<ModelWords> model = base_of(view);
  if (!device || !model || model->bits != 16) return {};
  const double bytes = model->parameters * 2;
  const bool one_row = smallest_batch_failed(view.incident().log_text);
  if (bytes < (one_row ? kBesideOneRow : kMostOfADevice) * *device) return {};
  return {0.86, fmt::format("{}: {:.1f} GiB in 16 bits, on {}", model->written, bytes / kGib,
                            figure(static_cast<int64_t>(*device)))};
}

constexpr Situation kSituations[] = {
    {"only_the_larger_model_fails",
     "a smaller model fits and this one does not: weights, gradients and states grow with its size, not with the batch",
     trained_by_words,
     {},
     {{"shard",
       "more devices that share it: FSDP full_shard, or ZeRO-3 (\"stage\": 3), with the optimizer offloaded to the "
       "host"},
      {"larger-gpu", "GPUs with more memory, or twice as many: 16 bytes per parameter in all with Adam"},
      {"qlora"},
      {"smaller-model", "the smaller model that fits"}},
     only_the_larger_fails},
    {"only_the_larger_model_does_not_run",
     "a smaller model fits and this one does not: 2 GB per billion parameters in 16 bits, before any context",
     predicting_by_words,
     {},
     {{"quantized-model", "a version in 4 or 8 bits (AWQ, GPTQ, GGUF), or from_pretrained(..., load_in_4bit=True)"},
      {"serve-offload", "device_map=\"auto\": what finds no room goes to other devices, then to the host"},
      {"larger-gpu"},
      {"smaller-model", "the smaller model that fits"}},
     only_the_larger_fails},
    {"model_too_large_for_ollama",
     "even in 4 bits the weights are larger than the device",
     alone_with_ollama,
     {},
     {{"smaller-model", "a smaller tag of the model: 4 bits take 0.6 GB per billion parameters"},
      {"gpu-layers", "fewer layers on the device: PARAMETER num_gpu <layers> (the rest runs on the CPU: slow)"},
      {"larger-gpu"}},
     larger_in_4_bits},
    {"model_too_large_in_4_bits",
     "even in 4 bits the weights are larger than the device",
     alone_without_ollama,
     {},
     {{"smaller-model", "a smaller model: 4 bits take 0.6 GB per billion parameters"},
      {"serve-offload", "a part of it on the CPU: device_map=\"auto\", fewer -ngl (llama.cpp), --cpu-offload-gb"},
      {"larger-gpu"}},
     larger_in_4_bits},
    {"trained_model_too_large",
     "the weights alone are larger than the device: no batch changes that",
     trained_alone,
     {},
     {{"qlora"},
      {"smaller-model", "a smaller model (16 bytes per parameter; LoRA 2, QLoRA 0.6)"},
      {"shard", "several devices: FSDP FULL_SHARD, or ZeRO-3 (\"stage\": 3), with the offload to the host"},
      {"micro-batch"}},
     larger_in_16_bits},
    {"whole_base_on_every_device",
     "adapters or not, every GPU keeps the whole base in 16 bits: little is left for the rows, and more GPUs do not "
     "divide it by themselves",
     adapters_on_a_base,
     {},
     {{"qlora",
       "the base in 4 bits: load_in_4bit=True (LLaMA-Factory: quantization_bit: 4; ChatGLM: --quantization_bit 4)"},
      {"shard", "the base divided: ZeRO-3 (\"stage\": 3), or FSDP FULL_SHARD, on several GPUs"},
      {"sequence-length"},
      {"checkpointing", {}, {}, System::unknown, "gradient_checkpointing=true|gradient_checkpointing: true"}},
     base_fills_the_device},
    {"states_too_large",
     "if all weights train, gradients and states alone are larger than the device: no batch changes that",
     trained_alone,
     {},
     {{"lora"},
      {"qlora"},
      {"offload-parameters",
       "all weights all the same: DeepSpeed ZeRO-3 with offload_optimizer and offload_param on the host (16 bytes per "
       "parameter of its memory)"},
      {"optimizer-8bit"},
      {"smaller-model", "a smaller model (16 bytes per parameter; LoRA 2, QLoRA 0.6)"}},
     states_beyond},
    {"model_too_large",
     "the weights alone are larger than the device: no batch and no length changes that",
     predicting_alone,
     {},
     {{"quantized-model", "a version in 4 or 8 bits (AWQ, GPTQ, GGUF), or from_pretrained(..., load_in_4bit=True)"},
      {"smaller-model", "a smaller model: 2 GB per billion parameters in 16 bits, 0.6 in 4"},
      {"serve-offload", "device_map=\"auto\": what finds no room stays on the host"}},
     larger_in_16_bits},
    {"spread_over_several_devices",
     "the weights alone are larger than one device, and a program uses one unless it is told to spread them",
     predicting_on_several,
     {},
     {{"serve-offload",
       "from_pretrained(..., device_map=\"auto\", torch_dtype=torch.float16): layers over all devices, what finds no "
       "room on the host"},
      {"quantized-model", "a version in 4 or 8 bits (AWQ, GPTQ, GGUF), or from_pretrained(..., load_in_4bit=True)"},
      {"tensor-parallel", "a server that splits the weights: vllm serve MODEL --tensor-parallel-size <devices>"}},
     larger_than_one_of_several},
    {"served_on_one_of_several_devices",
     "the server takes one device unless it is told more, and the weights alone are larger than one: a smaller share "
     "or context changes nothing",
     serving_on_one_of_several,
     {},
     {{"tensor-parallel"},
      {"quantized-model", "a version in 4 or 8 bits: AWQ, GPTQ, FP8"},
      {"smaller-model", "a smaller model: 2 GB per billion parameters in 16 bits, 0.6 in 4"}},
     larger_than_one_of_several},
    {"served_model_far_smaller",
     "the weights alone are a small part of the device: another program may hold the rest, or it is not the device "
     "that was meant",
     serving_alone,
     {},
     {{"end-other-processes",
       "nvidia-smi: end what else holds the device, or take a free one: CUDA_VISIBLE_DEVICES=<number> (is the name "
       "spelt so?)"},
      {"gpu-memory-utilization"}},
     far_smaller},
    {"served_model_too_large",
     "the weights alone are larger than the device: no context and no share changes that",
     serving_alone,
     {},
     {{"quantized-model", "a version in 4 or 8 bits: AWQ, GPTQ, FP8"},
      {"tensor-parallel"},
      {"smaller-model", "a smaller model: 2 GB per billion parameters in 16 bits, 0.6 in 4"}},
     larger_in_16_bits},
};

}  // namespace

std::span<const Situation> model_size_situations() { return kSituations; }

std::optional<int64_t> devices_for_the_weights(const CaseView& view) {
  constexpr double kOfADevice = 0.9, kBeside = 1.05;  // a server's usual share; a little room for the cache
  constexpr int64_t kMost = 64;
  const std::optional<double> device = device_bytes(view);
  const std::optional<ModelWords> model = model_of(view);
  if (!device || !model || *device <= 0) return std::nullopt;
  const double bytes = model->parameters * model->bits / 8 * (model->bits == 4 ? kOverhead : 1.0) * kBeside;
  int64_t devices = 1;
  while (devices < kMost && static_cast<double>(devices) * kOfADevice * *device < bytes) devices *= 2;
  return devices;
}

std::optional<double> share_of_weights(const CaseView& view) {
  if (!serving_alone(view)) return std::nullopt;
  const std::optional<double> device = device_bytes(view);
  const std::optional<ModelWords> model = model_of(view);
  if (!device || !model || *device <= 0) return std::nullopt;
  return model->parameters * model->bits / 8 / *device;
}

}  // namespace headroom::doctor
