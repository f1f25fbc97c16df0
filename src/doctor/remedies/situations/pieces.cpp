// Videos and features: what goes through a network in pieces, without gradients.
#include <fmt/format.h>

#include "doctor/remedies/program_words.h"
#include "doctor/remedies/situations/conditions.h"
#include "doctor/remedies/situations/situation.h"

namespace headroom::doctor {
namespace {

using enum System;
using enum Sign::In;

// Pipelines whose decoder takes a number of frames at once.
constexpr std::string_view kChunked =
    "stable video diffusion|stable-video-diffusion|stablevideodiffusion|stable_video|decode_chunk|svd_xt|svd-xt|"
    "svd model|svd vram|svd requires|svd "
    "on|generative-models|svd_|animatediff|i2vgen|videocrafter|dynamicrafter|modelscope "
    "text|text-to-video-ms|zeroscope";
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
bool video_through_a_network(const CaseView& view) {
  return of_a_video(view) && !speaks_of_diffusion(view) && view.log_says(kChunked).empty();
}
Evidence a_video_goes_through(const CaseView& view) {
  const std::string_view word = video_word(view);
  return word.empty() ? Evidence{} : Evidence{0.9, fmt::format("`{}` in the log", word)};
}

bool video_of_a_pipeline(const CaseView& view) {
  return predicting_on_device(view) && !by_comfyui(view) && view.log_says("train|finetun|fine-tun|lora").empty();
}

// A script that takes features of files by a trained network.
constexpr std::string_view kTakesFeatures =
    "extract feature|extracting feature|extract the feature|get the embedding|get embeddings "
    "of|get_embedding()|embeddings.embed(|transformerdocumentembeddings|transformerwordembeddings|extract "
    "embedding|extracting embedding|extract the "
    "embedding|extract image feature|extract visual feature|extract video feature|extract audio feature|extract "
    "features|feature extraction|features extraction|extract_feature|extracting_|extract_embed|提取特征|特征提取|"
    "特徴抽出|特徴量抽出";
constexpr std::string_view kSounds = "hubert|wav2vec|wavlm|voice|wav$|speech|audio|recording|语音|音频|音声";
bool takes_features(const CaseView& view) {
  constexpr std::string_view kOthers =
      "so-vits|sovits|so_vits|svc$|diff-svc|rvc|contentvec|bert-vits|vits/|f0_predictor|f0$|voice conversion|voice "
      "changer|变声|no_grad|inference_mode|spectrogram|colmap|sift|feature_extraction_|sentence-transformers|"
      "sentence_transformers|model.encode(|tensorflow|keras|epoch|train.py|backward()";
  constexpr std::string_view kTrains = "train$|training|trains|finetun|fine-tun|训练|微调|学習|訓練";
  const std::string log = without_words(view.incident().log_text,
                                        "pre-trained|pretrained|pre-training|trained model|预训练|学習済み|訓練済み");
  return on_device(view) && !view.serving() && !view.has_job() && !view.foreign_framework() &&
         any_word(log, kTrains).empty() && !by_comfyui(view) && view.log_says(kOthers).empty();
}
bool features_of_recordings(const CaseView& view) {
  return takes_features(view) && !any_word(view.incident().log_text, kSounds).empty();
}
bool features_of_others(const CaseView& view) { return takes_features(view) && !features_of_recordings(view); }

constexpr std::string_view kAroundTheNetwork =
    "with torch.no_grad(): around the network (or torch.inference_mode()); features to the host before they are "
    "listed: .cpu()";

constexpr Situation kSituations[] = {
    {"features_of_recordings",
     "features are taken by a trained network: outside of torch.no_grad() every layer keeps its inputs for a backward "
     "pass that never comes, and a long recording takes more than all others",
     features_of_recordings,
     {{log, 0.9, kTakesFeatures}},
     {{"no-grad", kAroundTheNetwork},
      {"sequence-length", "recordings in pieces of 10 to 30 s, their features joined"},
      {"half-inference", "16 bits: model.half(), or torch.autocast around it"},
      {"micro-batch", "one recording at a time: batch_size=1"}}},
    {"features_of_inputs",
     "features are taken by a trained network: outside of torch.no_grad() every layer keeps its inputs for a backward "
     "pass that never comes, and features in a list keep all of it",
     features_of_others,
     {{log, 0.9, kTakesFeatures}},
     {{"no-grad", kAroundTheNetwork},
      {"micro-batch", "fewer inputs at a time: half of the batch"},
      {"input-size", "smaller inputs: a lower resolution, fewer frames of a video at once"},
      {"half-inference", "16 bits: model.half(), or torch.autocast around it"}}},
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
};

}  // namespace

std::span<const Situation> piece_situations() { return kSituations; }

}  // namespace headroom::doctor
