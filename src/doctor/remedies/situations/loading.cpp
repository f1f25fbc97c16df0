// Models and checkpoints that fail to load, or stay where they were loaded.
#include <fmt/format.h>

#include "doctor/remedies/figures.h"
#include "doctor/remedies/situations/conditions.h"
#include "doctor/remedies/situations/situation.h"

namespace headroom::doctor {
namespace {

using enum System;
using enum Sign::In;

// Of a model that nobody trains here, and of no pipeline of images.
Evidence told_loading(const CaseView& view) {
  constexpr std::string_view kOthers =
      "lm studio|lmstudio|kobold|ollama|oobabooga|text-generation-webui|llama.cpp|gguf|fastchat|vllm|sglang|gpt4all";
  if (view.serving() || view.has_job() || speaks_of_diffusion(view) || !view.log_says(kOthers).empty()) return {};
  if (view.training() && view.story().task == ToldTask::training) return {};
  Evidence told = told_at(view, ToldStage::loading);
  if (told.weight > 0) told.weight = 0.85;
  return told;
}
bool loading_on_device(const CaseView& view) {
  return on_device(view) && (view.phase("load") || told_loading(view).weight > 0) &&
         view.job().system != System::llama_server;
}
bool resuming(const CaseView& view) { return on_device(view) && !view.serving(); }

Evidence told_resuming(const CaseView& view) { return told_at(view, ToldStage::resuming); }

// A script that only predicts, on a device full of many small tensors: the weights.
Evidence weights_fill(const CaseView& view) {
  const MessageFigures& f = view.figures();
  if (!view.has_job() || view.job().task != Task::infer || !f.allocated || !f.capacity || !f.requested) return {};
  if (*f.allocated < *f.capacity / 100 * 85 || *f.requested > *f.capacity / 32) return {};
  return {0.78, fmt::format("{} of {} are live, and {} more found no room", figure(*f.allocated), figure(*f.capacity),
                            figure(*f.requested))};
}

// By the frames: weights were read, made, or moved.
Evidence while_loading(const CaseView& view) {
  constexpr std::string_view kCheckpoint = "torch.load(|torch/serialization|load_checkpoint|resum";  // a second copy
  if (view.phase("load") && !view.serving() && !view.has_job())
    return {view.log_says(kCheckpoint).empty() ? 0.85 : 0.74,
            fmt::format("in the frames: {}", view.message()->phase_evidence)};
  return told_loading(view);
}

// Less than half of the device is this process's, and it asked for less than what others have.
Evidence held_in_part(const CaseView& view) {
  const MessageFigures& f = view.figures();
  if (!view.phase("load") || !f.allocated || !f.requested || !f.capacity) return {};
  if (*f.allocated + *f.requested > *f.capacity / 2) return {};
  return {0.89, fmt::format("{} allocated and {} asked of {}", figure(*f.allocated), figure(*f.requested),
                            figure(*f.capacity))};
}

constexpr std::string_view
    kHalfAtTheLoad =
        "16 bits before it goes to the device: from_pretrained(..., torch_dtype=torch.float16), "
        "or model.half() and then .cuda()",
    kHalf =
        "torch_dtype=torch.float16|torch_dtype=torch.bfloat16|dtype=torch.float16|"
        "dtype=torch.bfloat16|.half()",
    kFewerBitsAtTheLoad =
        "weights in 8 or 4 bits: from_pretrained(..., load_in_8bit=True) or load_in_4bit=True, or "
        "a version that is published so",
    kFewerBits = "load_in_4bit=true|load_in_8bit=true|--load-in-4bit|--load-in-8bit";

// A training that loads its base in few bits failed in a step, unless it says otherwise.
bool predicts_or_unknown(const CaseView& view) {
  const bool trains = view.training() && (view.has_job() || view.story().task == ToldTask::training);
  return predicting_on_device(view) && (!trains || view.phase("load"));
}

constexpr Situation kSituations[] = {
    {"checkpoint_on_the_gpu",
     "the checkpoint is read onto the GPU it was saved from, beside the model: a second copy of weights and states",
     resuming,
     {{log, 0.9, "default_restore_location|_cuda_deserialize|restore_location|_rebuild_tensor"},
      {log, 0.84,
       "_load_optimizer_and_scheduler|_load_from_checkpoint|resume_from_checkpoint=true|resuming from|resume "
       "from|load_checkpoint"},
      {either, 0.8, "torch.load(args.resume|torch.load(checkpoint|torch.load(opt.resume|torch.load(resume"},
      {setup, 0.78, "--resume |--resume=|resume=true|resume: true"}},
     {{"map-location", {}, {}, System::unknown, "map_location=\"cpu\"|map_location='cpu'"}, {"micro-batch"}},
     told_resuming},
    {"model_whole_before_its_sharding",
     "DeepSpeed moves the whole model to the device: it was made before ZeRO could divide it",
     training_on_device,
     {{log, 0.86, "self.module.to(self.device)"}},
     {{"lean-load",
       "ZeRO-3, and the model made inside of it: with deepspeed.zero.Init(config_dict_or_path=...): (transformers: "
       "HfDeepSpeedConfig or TrainingArguments before from_pretrained)"},
      {"offload-parameters"},
      {"smaller-model"}}},
    {"quantised_on_the_device",
     "the weights come to the device whole before they are quantised",
     predicts_or_unknown,
     {{either, 0.86,
       ".quantize(4)|.quantize(8)|quantize(4).cuda|quantize(8).cuda|int8量化|int4量化|8bit量化|4bit量化|int8推理|"
       "int4推理|int8 推理|int4 推理"}},
     {{"lean-load", "without device_map: from_pretrained(..., torch_dtype=torch.float16), then .quantize(4).cuda()"},
      {"quantized-model", "a version of the model that is published in 4 or 8 bits"},
      {"half-inference", "from_pretrained(..., torch_dtype=torch.float16)"}}},
    {"speech_by_ctranslate2",
     "CTranslate2 keeps the weights in the type that it is told (a file's own, 16 bits, unless stated), and every "
     "candidate of a beam on the device",
     predicting_on_device,
     {{either, 0.92,
       "ctranslate2|faster-whisper|faster_whisper|whisper-fast|whisperx|cuda failed with error out of memory"}},
     {{"half-inference", "compute_type=\"int8\" (--compute_type int8), or \"int8_float16\": half of 16 bits"},
      {"micro-batch", "one candidate and one piece at a time: beam_size=1, best_of=1 (-bs=1 -bo=1), --batch_size 1"},
      {"smaller-model", "a smaller model: large > medium > small, turbo, or distil-whisper"}}},
    {"who_speaks_when",
     "pyannote cuts a recording into windows of some seconds and takes vectors of many of them at once",
     predicting_on_device,
     {{either, 0.93, "pyannote|speaker-diarization|speaker diarization"}},
     {{"micro-batch",
       "fewer windows at once: pipeline.segmentation_batch_size = 4, pipeline.embedding_batch_size = 4 (32 unless "
       "stated; set as attributes or in its config.yaml)"},
      {"input-size", "the recording in pieces of some minutes, 16 kHz, one channel"},
      {"on-cpu", "on the CPU, in host memory: pipeline.to(torch.device(\"cpu\")): slow"}}},
    {"speech_model",
     "a model for speech: its size decides, then how many pieces of sound it reads at once",
     predicting_on_device,
     {{either, 0.83, "whisper|transcrib|转写|转录|文字起こし|ctranslate2|cuda failed with error out of memory"}},
     {{"smaller-model", "a smaller model: large > medium > small, turbo, or distil-whisper"},
      {"micro-batch", "a smaller batch (--batch_size 4), shorter pieces, a beam of 1"},
      {"half-inference", "16 or 8 bits: fp16=True, compute_type=\"int8_float16\""}}},
    {"weights_fill_the_device",
     "the weights alone fill the device: they must become smaller, or stay on the host in part",
     predicting_on_device,
     {},
     {{"quantized-model", "the model's Int4 or Int8 version, or from_pretrained(..., load_in_4bit=True)"},
      {"half-inference", "from_pretrained(..., torch_dtype=torch.float16)"},
      {"serve-offload", "device_map=\"auto\": what finds no room stays on the host"}},
     weights_fill},
    {"little_of_the_device_while_loading",
     "weights were being loaded, and this process holds a part of the device only: the rest is with other programs, or "
     "an earlier run",
     loading_on_device,
     {},
     {{"end-other-processes", "nvidia-smi: end what else holds the device, or take a free one: CUDA_VISIBLE_DEVICES=1"},
      {"half-inference", kHalfAtTheLoad, {}, System::unknown, kHalf},
      {"quantized-model", kFewerBitsAtTheLoad, {}, System::unknown, kFewerBits}},
     held_in_part},
    {"model_does_not_load",
     "it failed while weights were loaded or moved to the device: nothing of the batch matters yet",
     loading_on_device,
     {{log, 0.82, "from_pretrained|device_map|load_checkpoint_and_dispatch|_load_pretrained_model"},
      {log, 0.8, ".to(device)|.cuda()|.half()|_apply|load_state_dict"}},
     {{"half-inference", kHalfAtTheLoad, {}, System::unknown, kHalf},
      {"quantized-model", kFewerBitsAtTheLoad, {}, System::unknown, kFewerBits},
      {"end-other-processes",
       "nvidia-smi: another program, or an earlier run, may hold the device; or take a free one"},
      {"serve-offload", "device_map=\"auto\": what finds no room stays on the host"},
      {"larger-gpu", "a larger device, where the weights alone fill this one"}},
     while_loading},
};

}  // namespace

std::span<const Situation> loading_situations() { return kSituations; }

}  // namespace headroom::doctor
