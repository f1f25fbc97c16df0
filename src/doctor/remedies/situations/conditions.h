// When a situation is possible at all, and checks that several situations share.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "doctor/remedies/case_view.h"
#include "doctor/remedies/situations/situation.h"
#include "doctor/remedies/told_stage.h"

namespace headroom::doctor {

bool on_device(const CaseView& view);     // device memory is in question, and advice for PyTorch applies
bool on_host(const CaseView& view);       // host memory is in question
bool host_ran_out(const CaseView& view);  // and not shared memory
bool training_on_device(const CaseView& view);
bool serving_on_device(const CaseView& view);
// The word that shows llama.cpp behind its Python package; empty where none does.
std::string_view llama_cpp_in_python(const CaseView& view);
bool predicting_on_device(const CaseView& view);  // neither training nor a server, as far as is known
// Nothing tells what the program is: no configuration that doctor reads, no frames of a known system.
bool unknown_program(const CaseView& view);
bool several_gpus(const CaseView& view);
// The log is about language models: the inputs are texts, not images.
bool speaks_of_texts(const CaseView& view);
// It names one, or what only texts have; else it only speaks of fine-tuning, and not of images.
bool names_texts(const CaseView& view);
// The log or the configuration shows a pipeline for images or videos.
bool speaks_of_diffusion(const CaseView& view);
// The log or the configuration shows images, volumes or videos; images_alone: and neither texts nor recordings.
bool speaks_of_images(const CaseView& view);
bool images_alone(const CaseView& view);
// The word that shows that the inputs are videos; empty where none does.
std::string_view video_word(const CaseView& view);
// The share of the one device of a server that its weights take; absent where either size is unknown.
std::optional<double> share_of_weights(const CaseView& view);
// How many devices of a server, a power of two, its weights need; absent where either size is unknown.
std::optional<int64_t> devices_for_the_weights(const CaseView& view);
// The device's size, by the message or by the job; absent where neither says it.
std::optional<int64_t> size_of_the_device(const CaseView& view);
// One request is larger than the whole device: nothing that only moves memory about helps.
bool asks_beyond_the_device(const CaseView& view);
// The log says that it failed during prediction, outside training.
bool speaks_of_prediction(const CaseView& view);

// The first part of the log, where people's words stand.
std::string_view beginning(const CaseView& view);
// The log says in words that it failed at this stage, and no frames show another.
Evidence told_at(const CaseView& view, ToldStage stage);
// The log says in words that it failed while evaluating or saving: the training step is not to blame.
bool told_beside_the_steps(const CaseView& view);

// Resolutions that are not sizes of images.
inline constexpr std::string_view kResolved =
    "any resolution|a resolution to|a resolution for|no resolution|resolution to this";
// Training scripts of kohya's sd-scripts.
inline constexpr std::string_view kKohyaScripts =
    "train_network.py|sdxl_train|flux_train|sd3_train|fine_tune.py|train_db.py|kohya|sd-scripts|--network_module";
// Programs that evaluate language models by many tasks, without gradients.
inline constexpr std::string_view kHarnesses =
    "lm_eval|lm-eval|lm evaluation harness|lm-evaluation-harness|lighteval|opencompass|evalplus|evalscope|bigcodebench|"
    "bigcode|livecodebench|swift eval|olmes|helm$|simple-evals|mteb|distilabel|promptfoo|ragas";
// ComfyUI's name, its messages, and programs that run it.
inline constexpr std::string_view kComfyUi =
    "comfyui|in comfy|comfy unloads|unloading all loaded models|prompt executed in|allocation on device|krita-ai|"
    "krita ai|ksampler|samplercustom";
bool by_comfyui(const CaseView& view);
// Words with which people say so.
inline constexpr std::string_view kStageOfPrediction =
    "during validation|during evaluation|when evaluating|while evaluating|during inference|evaluation stage|"
    "validation stage|at evaluation|at validation|while testing|when testing|during testing|trying to test|"
    "to test using|test is error|run inference|running inference|doing inference|for inference|"
    "验证时|评估时|测试时|推理时|验证的时候|评估的时候|测试的时候|推理的时候|验证阶段|评估阶段|测试阶段|推理阶段|"
    "测试报错|测试代码|用test.py|推理报错|trainer.predict|做测试|做推理|预测时|预测的时候|进行测试|进行推理|进行预测|"
    "int8推理|int4推理|验证集上|测试集上|验证过程|评估过程|"
    "検証時|評価時|推論時|検証のとき|評価のとき|推論のとき|検証中|評価中|推論中|バリデーション";

// The number of steps that a progress bar in the log reached ("| 120/4000 [" gives 120).
std::optional<int64_t> steps_done(const CaseView& view);

// The number directly after `words`, searched from `begin`; absent when there is none.
std::optional<double> number_behind(const std::string& text, std::string_view words, size_t begin);

}  // namespace headroom::doctor
