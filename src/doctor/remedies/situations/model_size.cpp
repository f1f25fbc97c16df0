// A model whose weights alone are larger than the device: nothing of the batch or the context changes that.
#include <fmt/format.h>

#include "doctor/remedies/figures.h"
#include "doctor/remedies/model_words.h"
#include "doctor/remedies/situations/conditions.h"
#include "doctor/remedies/situations/situation.h"

namespace headroom::doctor {
namespace {

constexpr double kGib = 0x1p30;
constexpr double kOverhead = 1.15;  // of 4 bits: scales, and what stays in 16

// On one device: where several share the weights, the size of one says nothing.
bool alone(const CaseView& view) {
  return on_device(view) && !view.sharded() && view.gpus() <= 1 && view.reinforcement_library().empty() &&
         !speaks_of_diffusion(view) &&
         view.log_says("--tensor-parallel-size|tensor_parallel|--num-shard|device_map").empty();
}
// A message alone is taken for a training's: here the log, or a job, must say so.
bool speaks_of_training(const CaseView& view) {
  constexpr std::string_view kTraining =
      "train|fine-tun|finetun|lora|qlora|epoch|loss|sft|dpo|optimizer|微调|训练|学習|ファインチューニング";
  return view.training() && (view.has_job() || !any_word(view.incident().log_text, kTraining).empty());
}
bool trained_alone(const CaseView& view) { return alone(view) && !view.serving() && speaks_of_training(view); }
bool predicting_alone(const CaseView& view) { return alone(view) && !view.serving() && !speaks_of_training(view); }

std::optional<double> device_bytes(const CaseView& view) {
  if (view.figures().capacity) return static_cast<double>(*view.figures().capacity);
  if (view.gpu()) return static_cast<double>(view.gpu()->memory_bytes);
  return std::nullopt;
}

// The memory model knows better than words: its weights are what the job loads.
std::optional<std::string> beyond_by_the_estimate(const CaseView& view, std::optional<double> device, int least_bits) {
  const int64_t weights = view.term("weights");
  const bool quantised = view.quantized_base();
  if (!device || quantised != (least_bits == 4) || static_cast<double>(weights) < 0.95 * *device) return std::nullopt;
  return fmt::format("{} of weights on a device of {}", figure(weights), figure(static_cast<int64_t>(*device)));
}

// Weights of `bits` each that do not fit; absent where they would, or where size or device is unknown.
std::optional<std::string> beyond(const CaseView& view, int least_bits, int most_bits) {
  const std::optional<double> device = device_bytes(view);
  if (view.incident().estimate) return beyond_by_the_estimate(view, device, least_bits);
  const std::optional<ModelWords> model =
      model_in_words(view.incident().log_text + "\n" + view.incident().setup_text + "\n" + view.job().model);
  if (!device || !model || model->bits < least_bits || model->bits > most_bits) return std::nullopt;
  const double bytes = model->parameters * model->bits / 8 * (model->bits == 4 ? kOverhead : 1.0);
  if (bytes < 0.95 * *device) return std::nullopt;
  return fmt::format("{}: {:.1f} GiB of weights in {} bits, on a device of {}", model->written, bytes / kGib,
                     model->bits, figure(static_cast<int64_t>(*device)));
}

Evidence larger_in_16_bits(const CaseView& view) {
  if (const std::optional<std::string> shown = beyond(view, 8, 16)) return {0.83, *shown};
  return {};
}
Evidence larger_in_4_bits(const CaseView& view) {
  if (const std::optional<std::string> shown = beyond(view, 4, 4)) return {0.87, *shown};
  return {};
}

constexpr Situation kSituations[] = {
    {"model_too_large_in_4_bits",
     "even in 4 bits the weights are larger than the device: another model, a larger device, or a part on the host",
     alone,
     {},
     {{"smaller-model",
       "a smaller model of the same family: at most 1.5 billion parameters per GB of the device in 4 bits"},
      {"serve-offload",
       "a part of the layers on the CPU: device_map=\"auto\", -ngl <fewer> (llama.cpp), --cpu-offload-gb"},
      {"larger-gpu"}},
     larger_in_4_bits},
    {"trained_model_too_large",
     "the weights alone are larger than the device, before gradients and states: a smaller batch does not change them",
     trained_alone,
     {},
     {{"qlora"},
      {"smaller-model", "a smaller model: full training takes 16 bytes per parameter, LoRA 2, QLoRA 0.6"},
      {"shard", "several devices: FSDP FULL_SHARD, or ZeRO-3 (\"stage\": 3), with the offload to the host"},
      {"micro-batch"}},
     larger_in_16_bits},
    {"model_too_large",
     "the weights alone are larger than the device: no batch and no length makes them smaller",
     predicting_alone,
     {},
     {{"quantized-model", "a version in 4 or 8 bits (AWQ, GPTQ, GGUF), or from_pretrained(..., load_in_4bit=True)"},
      {"smaller-model", "a smaller model of the same family: 16 bits take 2 GB per billion parameters, 4 bits 0.6"},
      {"serve-offload", "device_map=\"auto\": what finds no room stays on the host"}},
     larger_in_16_bits},
};

}  // namespace

std::span<const Situation> model_size_situations() { return kSituations; }

}  // namespace headroom::doctor
