#include "doctor/remedies/situations/conditions.h"

#include <fmt/format.h>

#include <cctype>
#include <cstdlib>

#include "doctor/remedies/log_job.h"
#include "doctor/remedies/program_words.h"

namespace headroom::doctor {
namespace {

bool digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

// The number that ends at `end`; absent when there is none.
std::optional<int64_t> number_before(const std::string& text, size_t end) {
  size_t begin = end;
  while (begin > 0 && digit(text[begin - 1]) && end - begin < 9) --begin;
  if (begin == end) return std::nullopt;
  return std::stoll(text.substr(begin, end - begin));
}

}  // namespace

bool on_device(const CaseView& view) { return view.pool() == Pool::device && !view.foreign_framework(); }
bool on_host(const CaseView& view) { return view.pool() != Pool::device; }
bool host_ran_out(const CaseView& view) { return view.pool() == Pool::host; }
bool training_on_device(const CaseView& view) { return on_device(view) && view.training(); }
bool serving_on_device(const CaseView& view) { return on_device(view) && view.serving(); }
std::string_view llama_cpp_in_python(const CaseView& view) {
  return view.log_says(
      "llama-cpp-python|llama_cpp_python|llama_cpp|import llama_cpp|llamacpp(|llama(model_path|private_gpt|privategpt|"
      "llm_component|langchain|llama_index|llamaindex|localgpt|n_gpu_layers");
}
bool predicting_on_device(const CaseView& view) { return on_device(view) && !view.serving(); }

bool unknown_program(const CaseView& view) {
  return own_program(view.job().system) && (!view.has_job() || !view.shape());
}

bool several_gpus(const CaseView& view) {
  return view.gpus() > 1 || (view.message() && view.message()->device_index.value_or(0) > 0) ||
         !view.log_says("local_rank|[rank1]|rank 1|world_size|torchrun|torch.distributed|deepspeed").empty();
}

bool names_texts(const CaseView& view) {
  constexpr std::string_view kWords =
      "llama|qwen|gemma|llm|phi-3|phi-4|deepseek|mistral|chatglm|baichuan|gpt|bert|t5-|unsloth|tokenizer|max_seq_len|"
      "max_length|input_ids|"
      "sentence-transformers|sentence transformers|sentence_transformers|llasa|orpheus-tts|orpheus tts|cosyvoice|"
      "reward model|with trl|rlhf|longformer|dpo训练|dpo "
      "lora|load_in_8bit|load_in_4bit|max_new_tokens|vicuna|falcon-|falcon 7b|falcon 40b|belle|bloom-|bloomz| dpo\n| "
      "dpo | dpo,| "
      "dpo.|dpoconfig|dpotrainer|sfttrainer|sftconfig|grpo|language model|大模型";
  const std::string log = without_words(view.incident().log_text, "hubert|contentvec");
  constexpr std::string_view kChats =
      "提问|聊天机器人|多轮对话|每次对话|每轮对话|chatbot|chat history|チャットボット|会話履歴";
  const bool named = !view.log_says(kWords).empty() && view.log_says("hubert").empty();
  return named || !any_word(log, kWords).empty() || !any_word(log, kChats).empty();
}

bool speaks_of_texts(const CaseView& view) {
  constexpr std::string_view
      kTuning = "finetun|fine-tun|fine tun|微调|ファインチューニング|ファインチューン|qlora",
      kImages =
          "image|resnet|yolo|conv2d|diffusion|diffusers|video|coco|detector|detection|groundingdino|"
          "segmentation|图|画像|動画";
  return names_texts(view) || (!view.log_says(kTuning).empty() && view.log_says(kImages).empty());
}

bool speaks_of_diffusion(const CaseView& view) {
  constexpr std::string_view kWords =
      "stablediffusion|stable diffusion|stable-diffusion|diffusionpipeline|ldm/modules|ldm\\modules|diffusers|img2img|"
      "txt2img|text-to-image|image-to-image|controlnet|sdxl|animatediff|motion_module|comfyui|euler a|cfg scale|"
      "ksampler|sd1.5|sd "
      "1.5|dreambooth|cogvideo|hunyuanvideo|wan2.|flux.1|flux-dev|ltx-video|automatic1111|auto1111|a1111|tiled "
      "diffusion|tiled vae|multidiffusion|text2image|lowvram|"
      "medvram|fooocus|novram";
  return view.says(kWords);
}

bool speaks_of_images(const CaseView& view) {
  constexpr std::string_view kImages =
      "image|picture|photo|pixel|resolution|video|720p|1080p|crop|conv2d|conv3d|unet|resnet|yolo|segmentation|"
      "detectron|"
      "mmdet|mmseg|paddleseg|cityscapes|segformer|vision|unslothvision|fastvision|automodelforvision|automodelforimage|"
      "process_vision|-vl|llava|"
      "internvl|minicpm-v|vlm$|multimodal|imgsz|img_size|voxel|point "
      "cloud|图像|图片|图文|多模态|分辨率|视频|画像|動画|解像度";
  constexpr std::string_view kOthers =
      "docker image|container image|base image|segmentation fault|pytorch torchvision|torch torchvision|torchvision "
      "torchaudio|torchvision=";
  if (speaks_of_diffusion(view)) return true;
  return !any_word(without_words(without_words(view.incident().log_text, kOthers), kResolved), kImages).empty() ||
         !any_word(view.incident().setup_text, kImages).empty();
}

std::string_view video_word(const CaseView& view) {
  constexpr std::string_view kCards = "video card|video memory|video ram|videocard|video graphics";
  constexpr std::string_view kVideos = "video|mp4|avi$|mkv|fps$|footage|movie|frames of|视频|動画|影片";
  return any_word(without_words(view.incident().log_text, kCards), kVideos);
}

bool images_alone(const CaseView& view) {
  return speaks_of_images(view) && !speaks_of_texts(view) && speech_word(view.incident().log_text).empty();
}

std::optional<int64_t> size_of_the_device(const CaseView& view) {
  return view.figures().capacity ? view.figures().capacity : view.balance().limit;
}

bool asks_beyond_the_device(const CaseView& view) {
  const std::optional<int64_t> requested = view.figures().requested, device = size_of_the_device(view);
  return requested && device && *requested > *device;
}

bool speaks_of_prediction(const CaseView& view) {
  return view.phase("inference") || view.phase("eval") || !view.log_says(kStageOfPrediction).empty() ||
         told_at(view, ToldStage::evaluation).weight > 0;
}

std::string_view beginning(const CaseView& view) { return beginning(view.incident().log_text); }

Evidence told_at(const CaseView& view, ToldStage stage) {
  if (view.pool() != Pool::device) return {};
  for (const std::string_view other :
       {"backward", "optimizer_step", "optimizer_init", "cudagraph_capture", "serve_init"})
    if (view.phase(other)) return {};
  const std::string_view word = view.story().at(stage);
  if (word.empty()) return {};
  return {0.9, fmt::format("`{}`, where the log says that it failed", word)};
}

bool told_beside_the_steps(const CaseView& view) {
  return told_at(view, ToldStage::evaluation).weight > 0 || told_at(view, ToldStage::saving).weight > 0;
}

std::optional<int64_t> steps_done(const CaseView& view) {
  const std::string& text = view.incident().log_text;
  for (size_t at = text.rfind(" ["); at != std::string::npos && at > 0; at = text.rfind(" [", at - 1)) {
    size_t slash = at;
    while (slash > 0 && digit(text[slash - 1])) --slash;
    if (slash == at || slash == 0 || text[slash - 1] != '/') continue;
    if (const std::optional<int64_t> done = number_before(text, slash - 1)) return done;
  }
  return std::nullopt;
}

std::optional<double> number_behind(const std::string& text, std::string_view words, size_t begin) {
  const size_t at = text.find(words, begin);
  if (at == std::string::npos || at + words.size() >= text.size() || !digit(text[at + words.size()]))
    return std::nullopt;
  return std::strtod(text.c_str() + at + words.size(), nullptr);
}

}  // namespace headroom::doctor
