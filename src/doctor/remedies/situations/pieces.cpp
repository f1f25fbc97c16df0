// Inputs of many parts: videos go through by pieces of a few frames, images of a training on texts by fewer pixels.
#include <fmt/format.h>

#include "doctor/remedies/program_words.h"
#include "doctor/remedies/situations/conditions.h"
#include "doctor/remedies/situations/situation.h"

namespace headroom::doctor {
namespace {

using enum System;
using enum Sign::In;

constexpr std::string_view kCards = "video card|video memory|video ram|videocard|video graphics";
constexpr std::string_view kVideos = "video|mp4|avi$|mkv|footage|movie|frames of|视频|動画|影片";
std::string_view video_word(const CaseView& view) {
  return any_word(without_words(view.incident().log_text, kCards), kVideos);
}
bool of_a_video(const CaseView& view) {
  constexpr std::string_view kOthers =
      "train$|training|trains|epoch|finetun|fine-tun|backward|optimizer|训练|微调|学習|comfy|subtitle|whisper|transcri|"
      "youtube|internvl|llava|-vl|vlm$|minicpm-v|video-llama|multimodal|多模态";
  const std::string log =
      without_words(view.incident().log_text, "pre-trained|pretrained|trained model|预训练|学習済み");
  return predicting_on_device(view) && !view.has_job() && view.reinforcement_library().empty() &&
         any_word(log, kOthers).empty() && !speaks_of_texts(view) && !by_comfyui(view) &&
         speech_word(view.incident().log_text).empty();
}
bool video_through_a_network(const CaseView& view) { return of_a_video(view) && !speaks_of_diffusion(view); }
Evidence a_video_goes_through(const CaseView& view) {
  const std::string_view word = video_word(view);
  return word.empty() ? Evidence{} : Evidence{0.9, fmt::format("`{}` in the log", word)};
}

// Pipelines whose decoder takes a number of frames at once.
bool video_of_a_pipeline(const CaseView& view) {
  return predicting_on_device(view) && !by_comfyui(view) && view.log_says("train|finetun|fine-tun|lora").empty();
}
constexpr std::string_view kChunked =
    "stable video diffusion|stable-video-diffusion|stablevideodiffusion|stable_video|decode_chunk|svd_xt|svd-xt|"
    "svd model|svd_|animatediff|i2vgen|videocrafter|dynamicrafter|modelscope text|text-to-video-ms|zeroscope";

// Images in a training whose rows are texts with images.
constexpr std::string_view kVision =
    "visiondatacollator|fastvisionmodel|vision2seq|imagetexttotext|image_text_to_text|forconditionalgeneration, "
    "autoprocessor|process_vision_info|qwen2vl|qwen2_5_vl|qwen2.5-vl|qwen2-vl|qwen3-vl|qwen-vl|-vl-|llava|internvl|"
    "paligemma|pixtral|idefics|smolvlm|minicpm-v|minicpmv|mllama|llama-3.2-11b-vision|vision-instruct|vlm$|vlms$|"
    "vision-language|vision language|multimodal|多模态|视觉语言";
constexpr std::string_view kBounded =
    "max_pixels=|max_pixels:|--max_pixels|image_max_pixels|image_resolution|max_image_size|image resolution is";
bool trains_on_images_and_texts(const CaseView& view) {
  return training_on_device(view) && view.reinforcement_library().empty() && !speaks_of_diffusion(view) &&
         !told_beside_the_steps(view);
}
std::string_view vision_word(const CaseView& view) {
  const std::string_view logged = view.log_says(kVision);
  return logged.empty() ? view.setup_says(kVision) : logged;
}
// By its collator or classes it trains on images; a model's name alone says less.
Evidence images_in_the_rows(const CaseView& view) {
  constexpr std::string_view kCode =
      "visiondatacollator|fastvisionmodel|vision2seq|imagetexttotext|image_text_to_text|process_vision_info";
  const std::string_view word = vision_word(view);
  if (word.empty()) return {};
  const bool code = !view.log_says(kCode).empty() || !view.setup_says(kCode).empty();
  return {code ? 0.87 : 0.8, fmt::format("`{}` in the post", word)};
}

constexpr Situation kSituations[] = {
    {"video_at_once",
     "all frames of a video, or of a long piece of it, are on the device at once: what the layers make of them grows "
     "with their number, and there is no batch to halve",
     video_through_a_network,
     {},
     {{"input-size",
       "fewer frames at once: the video in pieces (--max-seq-len, --chunk_size, num_frames, clip length, by the "
       "program's name), or cut by ffmpeg; then a lower resolution, or tiles"},
      {"no-grad", "with torch.no_grad(): around it, where it is not yet; frames that are done to the host: .cpu()"},
      {"half-inference", "16 bits: --fp16, --half, model.half()"},
      {"micro-batch", "one clip at a time: batch_size=1"}},
     a_video_goes_through},
    {"video_of_a_pipeline",
     "the decoder makes many frames at once at full size: that peak comes last and grows with their number",
     video_of_a_pipeline,
     {{either, 0.86, kChunked}},
     {{"input-size",
       "frames decoded a few at a time: decode_chunk_size=2 (generative-models: decoding_t=1; pipe.vae."
       "enable_slicing()), then fewer or smaller frames"},
      {"low-vram", "pipe.enable_model_cpu_offload() instead of pipe.to(\"cuda\")"},
      {"half-inference",
       "torch_dtype=torch.float16, variant=\"fp16\" in from_pretrained()",
       {},
       System::unknown,
       "torch.float16|torch.bfloat16"}}},
    {"images_in_rows_of_texts",
     "an image is hundreds to thousands of tokens of a row, by its pixels: the largest ones decide, whatever the texts "
     "are",
     trains_on_images_and_texts,
     {},
     {{"input-size", "smaller images: image_max_pixels: 262144, and video_max_pixels", {}, llamafactory},
      {"input-size",
       "smaller images: max_pixels=512*512 in AutoProcessor.from_pretrained(...), or resized before (unsloth's "
       "collator: resize=512, max_image_size; ms-swift: MAX_PIXELS)",
       {},
       System::unknown,
       kBounded},
      {"input-size", "smaller images than now: half of the pixels (max_pixels, max_image_size)"},
      {"micro-batch"},
      {"sequence-length", "shorter rows: fewer images in each, and a bound on the texts"},
      {"checkpointing"}},
     images_in_the_rows},
};

}  // namespace

std::span<const Situation> piece_situations() { return kSituations; }

}  // namespace headroom::doctor
