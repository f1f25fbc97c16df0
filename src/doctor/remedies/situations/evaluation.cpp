// Evaluation and prediction that keep what only training needs, or keep all outputs.
#include <fmt/format.h>

#include "doctor/remedies/log_job.h"
#include "doctor/remedies/situations/conditions.h"
#include "doctor/remedies/situations/situation.h"
#include "doctor/remedies/told_growth.h"

namespace headroom::doctor {
namespace {

using enum System;
using enum Sign::In;

// Trainers of libraries evaluate without gradients; the user's own script may not.
constexpr std::string_view kLibraries =
    "ultralytics|yolo|mmdet|mmseg|detectron2|nnunet|lightning|pl_module|trainingarguments|trainer.evaluate|"
    "per_device_";
bool own_loop(System system) { return own_program(system) || system == System::accelerate; }
// transformers' own scripts, which use its Trainer.
constexpr std::string_view kExamples =
    "examples/seq2seq|seq2seq examples|examples/pytorch|finetune_trainer.py|run_clm.py|run_mlm.py|run_glue.py|"
    "run_summarization.py|run_translation.py|run_qa.py|run_ner.py|run_seq2seq.py|run_language_modeling.py|"
    "run_speech_recognition";
// A Trainer's evaluation has a batch of its own.
bool names_a_trainer(const CaseView& view) {
  return !view.log_says(
                  "with trainer| trainer |hf "
                  "trainer|trainingarguments|trainer.evaluate|trainer.train|trainer.predict|per_device_|"
                  "seq2seqtrainer|hf trainer|llama-factory|llamafactory|llama factory|axolotl|unsloth|"
                  "ms-swift|"
                  "huggingface trainer|hugging face trainer|huggingface的trainer|transformers的trainer|"
                  "compute_metrics|predict_with_generate")
              .empty() ||
         !view.log_says(kExamples).empty();
}
bool with_a_trainer(const CaseView& view) {
  return training_on_device(view) && (!own_loop(view.job().system) || names_a_trainer(view));
}
// Where the evaluation fills the host's memory, the batch does not matter: what is kept does.
bool trainer_on_the_host(const CaseView& view) { return view.pool() == Pool::host && names_a_trainer(view); }
Evidence evaluation_on_the_host(const CaseView& view) {
  const std::string_view word = view.story().at(ToldStage::evaluation);
  if (word.empty()) return {};
  return {0.9, "`" + std::string(word) + "`, where the log says that it failed"};
}
// Its validation keeps nothing for a backward pass; options as it spells them.
constexpr std::string_view kOpenNmt = "opennmt|onmt/|onmt_";
bool by_opennmt(const CaseView& view) { return training_on_device(view) && !view.log_says(kOpenNmt).empty(); }
Evidence evaluation_of_opennmt(const CaseView& view) {
  Evidence told = told_at(view, ToldStage::evaluation);
  if (view.phase("eval")) told = {0.9, "it failed in the validation"};
  if (told.weight > 0) told.weight = 0.95;
  return told;
}
// Whole programs that compute without gradients by themselves, some of them without PyTorch.
constexpr std::string_view kWithoutGradients =
    "ctranslate2|faster-whisper|faster_whisper|whisper-fast|cuda failed with error|comfyui|in comfy|webui|web "
    "ui|automatic1111|a1111|invokeai|fooocus|sdnext|sd.next|swarmui|lowvram|medvram|novram|llama.cpp|ollama|koboldcpp";
// Functions and scripts of it.
constexpr std::string_view kFunctions =
    "in validate|in evaluate|in validation|in eval_|in val_|in test_|validate(|evaluate(";
constexpr std::string_view kScripts =
    "/test.py|/eval.py|/evaluate.py|/inference.py|/infer.py|/demo.py|/predict.py|/sample.py|"
    "\"test.py|\"eval.py|\"evaluate.py|\"inference.py|\"infer.py|\"demo.py|\"predict.py|\"detect.py";
// "trying to test your model ... soon after starting training": by the sentence that failed it trains.
bool only_speaks_of_tests(const CaseView& view) {
  return !view.log_says("trying to test|to test using|want to test").empty() &&
         view.story().task == ToldTask::training && view.story().at(ToldStage::evaluation).empty() &&
         view.log_says(kFunctions).empty() && view.log_says(kScripts).empty();
}
bool own_evaluation(const CaseView& view) {
  if (!view.log_says(kOpenNmt).empty() || !view.log_says(kWithoutGradients).empty()) return false;
  if (view.says(kHarnesses)) return false;
  if (only_speaks_of_tests(view)) return false;
  if (!view.log_says(kLibraries).empty() && view.message() && view.message()->frames.empty()) return false;
  if (!on_device(view) || view.serving() || with_a_trainer(view)) return false;
  return own_loop(view.job().system) &&
         (view.phase("eval") || view.phase("inference") || view.phase("forward") || view.phase("unknown"));
}

bool by_a_library(const CaseView& view) {
  return on_device(view) && !view.serving() && !with_a_trainer(view) && !view.log_says(kLibraries).empty();
}
constexpr std::string_view kYolo = "ultralytics|yolo", kMmdet = "mmdet|mmseg|openmmlab";
bool by_yolo(const CaseView& view) {
  return by_a_library(view) && !view.log_says(kYolo).empty() && view.log_says(kMmdet).empty();
}
bool by_mmdet(const CaseView& view) { return by_a_library(view) && !view.log_says(kMmdet).empty(); }
bool by_another_library(const CaseView& view) { return by_a_library(view) && !by_yolo(view) && !by_mmdet(view); }
Evidence told_evaluation(const CaseView& view) { return told_at(view, ToldStage::evaluation); }
// A stage that it was in; a script or a notebook is only a file.
Evidence in_the_stage(const CaseView& view) {
  if (const Evidence told = told_evaluation(view); told.weight > 0) return told;
  constexpr std::string_view kFiles = "inference script|inference notebook|inference code|inference config";
  constexpr std::string_view kIn = "in generate|in predict|in inference|in infer|in encode|in embed|in extract";
  const std::string_view word = any_word(without_words(view.incident().log_text, kFiles), kIn);
  return word.empty() ? Evidence{} : Evidence{0.8, fmt::format("`{}` in the log", word)};
}
// What grows there is what is kept of each batch, not what a pass takes.
Evidence grows_in_the_evaluation(const CaseView& view) {
  if (told_evaluation(view).weight == 0 && !view.phase("eval")) return {};
  const std::string_view grows = view.story().growing;
  if (grows.empty()) return {};
  return {0.94, fmt::format("`{}` in the log, of the evaluation", grows)};
}
Evidence told_evaluation_of_a_trainer(const CaseView& view) {
  Evidence told = told_evaluation(view);
  if (told.weight > 0) told.weight += 0.01;
  return told;
}

// A script that calls a model outside of a pipeline, and detaches what comes out: gradients are on.
bool called_by_hand(const CaseView& view) {
  constexpr std::string_view kOff = "no_grad|inference_mode|set_grad_enabled|optimizer|backward()|trainer|.generate(";
  return on_device(view) && !view.training() && !view.serving() && !view.says(kOff);
}
// The evaluation harness of language models; options as it spells them.
constexpr std::string_view kHarness = "lm_eval|lm-eval|lm evaluation harness|lm-evaluation-harness";
// Over vLLM it passes the settings of that.
bool by_the_harness(const CaseView& view) {
  const bool engine = view.says("vllm");
  return view.pool() == Pool::device && !view.foreign_framework() && !engine;
}
bool generating(const CaseView& view) { return predicting_on_device(view) && !view.log_says("transformers/").empty(); }

constexpr Situation kSituations[] = {
    {"logits_of_the_evaluation_kept",
     "the Trainer keeps the logits of the whole evaluation set on the GPU until its end: it grows with every batch",
     training_on_device,
     {{log, 0.92,
       "nested_concat|nested_gather|nested_truncate|preds_host|logits_host|pad_across_processes|pad_and_concatenate"},
      {log, 0.85, "evaluation_loop|prediction_step|prediction_loop|evaluation_strategy=|eval_strategy="},
      {log, 0.78, "***** running evaluation|***** running prediction"}},
     {{"eval-accumulation",
       "preprocess_logits_for_metrics=lambda logits, labels: logits.argmax(-1) in Trainer(...); or "
       "eval_accumulation_steps=1, prediction_loss_only=True"},
      {"eval-batch", "per_device_eval_batch_size=1"}}},
    {"logits_of_the_evaluation_in_host_memory",
     "the Trainer keeps the logits of the whole evaluation set until its end, rows x length x vocabulary in 32 bits: "
     "in "
     "host memory here",
     trainer_on_the_host,
     {},
     {{"eval-accumulation",
       "preprocess_logits_for_metrics=lambda logits, labels: logits.argmax(-1) in Trainer(...); without metrics "
       "prediction_loss_only=True"},
      {"find-sample", "fewer rows to evaluate: eval_dataset=data.select(range(1000)), shorter ones"},
      {"host-memory"}},
     evaluation_on_the_host},
    {"batch_of_the_evaluation",
     "evaluation has a batch of its own, 8 rows a device unless somebody says less, and keeps logits of the whole "
     "vocabulary for each",
     with_a_trainer,
     {{log, 0.8, "crashing on eval|oom on eval|oom during eval|oom at eval|oom in eval"}},
     {{"eval-batch", "eval_batch_size: 1", {}, axolotl},
      {"eval-batch", "per_device_eval_batch_size=1 (8 unless stated, whatever the training's is)"},
      {"eval-accumulation",
       "eval_accumulation_steps=1, prediction_loss_only=True; with compute_metrics: preprocess_logits_for_metrics"},
      {"sequence-length", "shorter rows to evaluate: cut them as in training"}},
     told_evaluation_of_a_trainer},
    {"outputs_of_the_evaluation_kept",
     "memory that grows in an evaluation is what is kept of every batch until its end: outputs for a metric, on the "
     "device",
     training_on_device,
     {},
     {{"eval-accumulation",
       "outputs to the host or reduced at once: .argmax(-1).cpu() in your own loop; Trainer: "
       "preprocess_logits_for_metrics, or eval_accumulation_steps=1"},
      {"no-grad", "with torch.no_grad(): around the evaluation (the Trainer does so)"},
      {"eval-batch", "a smaller batch and fewer rows to evaluate: per_device_eval_batch_size=1"}},
     grows_in_the_evaluation},
    {"evaluation_by_yolo",
     "the validation has a batch of its own, twice the training's, and keeps what a metric collects",
     by_yolo,
     {},
     {{"eval-batch", "half of batch= (the validation takes twice of it)"},
      {"input-size", "a smaller imgsz (--img): half, a multiple of 32"},
      {"eval-accumulation", "val=False: the training alone, and validate apart with a small batch"}},
     told_evaluation},
    {"evaluation_by_mmdet",
     "the validation has a batch of its own, whole images, and keeps what a metric collects",
     by_mmdet,
     {},
     {{"eval-batch", "val_dataloader.batch_size=1 (2.x: data.val_dataloader.samples_per_gpu=1)"},
      {"input-size", "smaller images in the test pipeline: half of img_scale (Resize: scale)"},
      {"eval-accumulation", "masks and scores to the host, batch by batch: .cpu()"}},
     told_evaluation},
    {"evaluation_of_a_toolbox",
     "the validation has a batch of its own, and keeps what a metric collects",
     by_another_library,
     {},
     {{"eval-batch", "a smaller batch for the validation: the one of its loader (Lightning: val_dataloader())"},
      {"input-size"},
      {"eval-accumulation", "what the metric collects to the host: .detach().cpu(); or validate apart"}},
     told_evaluation},
    {"called_without_no_grad",
     "a model that is called directly keeps every layer's inputs for a backward pass, whatever comes of its output",
     called_by_hand,
     {{either, 0.9,
       ".detach().cpu().numpy()|= vae(|vae.decode(|vae.encode(|= unet(|= model(**inputs)|= model(**encoded"}},
     {{"no-grad", "with torch.no_grad(): around the call (or torch.inference_mode())"},
      {"half-inference"},
      {"input-size"}}},
    {"evaluation_by_a_harness",
     "the harness takes as many rows at once as fitted when it looked, and keeps room for nothing else: gathering the "
     "results of all processes, or longer rows, find none",
     by_the_harness,
     {{either, 0.93, kHarness}},
     {{"eval-batch",
       "--batch_size 4: a number, smaller than what auto finds (or --batch_size auto --max_batch_size 8)"},
      {"half-inference", "dtype=bfloat16 in --model_args", {}, System::unknown, "dtype=bfloat16|dtype=float16"},
      {"sequence-length", "max_length=2048 in --model_args: longer rows are cut on their left"},
      {"serve-offload", "parallelize=True in --model_args, without accelerate launch: layers over all devices"}}},
    {"generation",
     "generating keeps weights, and keys and values of every token of every row: both by type, the latter by length",
     generating,
     {{log, 0.78, "in generate|in _sample|greedy_search|beam_search|generation/utils.py|max_new_tokens"}},
     {{"half-inference", "from_pretrained(..., torch_dtype=torch.float16), or load_in_8bit=True / load_in_4bit=True"},
      {"micro-batch", "fewer prompts at a time, num_beams=1"},
      {"input-size", "shorter prompts, a smaller max_new_tokens"}}},
    {"gradients_kept_in_evaluation",
     "outside of torch.no_grad() every layer keeps its inputs for a backward pass that never comes; model.eval() does "
     "not change that",
     own_evaluation,
     {{log, 0.78, kStageOfPrediction}, {log, 0.88, kFunctions}, {log, 0.84, kScripts}},
     {{"no-grad", "with torch.no_grad(): around evaluation and prediction (or torch.inference_mode())"},
      {"input-size"},
      {"eval-batch", "a smaller batch for evaluation: DataLoader(..., batch_size=1)"},
      {"eval-accumulation", "outputs.append(logits.argmax(-1).cpu()) instead of keeping logits on the GPU"}},
     in_the_stage},
    {"validation_of_opennmt",
     "the validation has a batch of its own, 32 sentences unless told otherwise, and the longest of them decides",
     by_opennmt,
     {},
     {{"eval-batch", "-valid_batch_size 8 (32 unless stated, whatever -batch_size is); 1 if that does not fit"},
      {"find-sample", "long sentences left out of the validation set: -src_seq_length does so in training alone"}},
     evaluation_of_opennmt},
};

}  // namespace

std::span<const Situation> evaluation_situations() { return kSituations; }

}  // namespace headroom::doctor
