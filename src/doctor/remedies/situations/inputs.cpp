// Inputs that are too large, or one that is far larger than the others.
#include <fmt/format.h>

#include "doctor/remedies/figures.h"
#include "doctor/remedies/program_words.h"
#include "doctor/remedies/situations/conditions.h"
#include "doctor/remedies/situations/situation.h"
#include "doctor/remedies/told_growth.h"
#include "doctor/remedies/tried.h"

namespace headroom::doctor {
namespace {

using enum Sign::In;

// One request of twice the device and more, in a program that has attention: scores of all pixels or frames with all.
Evidence scores_beyond_the_device(const CaseView& view) {
  constexpr std::string_view kAttends = "attention|attn|transformer|diffus|latent|video|frames|视频|注意力|動画|拡散";
  constexpr std::string_view kOfPeople = "your attention|pay attention|any attention|attention:";
  const MessageFigures& f = view.figures();
  if (!f.requested || !f.capacity || *f.requested < 2 * *f.capacity || speaks_of_texts(view)) return {};
  if (!speech_word(view.incident().log_text).empty() && !speaks_of_images(view)) return {};
  const std::string_view word = any_word(without_words(view.incident().log_text, kOfPeople), kAttends);
  if (word.empty()) return {};
  return {0.955, fmt::format("one request of {} on a device of {}, and `{}` in the log", figure(*f.requested),
                             figure(*f.capacity), word)};
}

// One request of a whole device or more.
Evidence beyond_the_device(const CaseView& view) {
  const MessageFigures& f = view.figures();
  const std::optional<int64_t> device = size_of_the_device(view);
  if (!f.requested || !device || *f.requested <= *device * 9 / 10 || *device <= 0) return {};
  if (scores_beyond_the_device(view).weight > 0) return {};
  return {0.95, fmt::format("one request of {} on a device of {}", figure(*f.requested), figure(*device))};
}

// One request of a quarter of the device or more: a single tensor, not many.
Evidence one_large_request(const CaseView& view) {
  const MessageFigures& f = view.figures();
  if (!f.requested || !f.capacity || *f.requested < *f.capacity / 4) return {};
  return {0.76, fmt::format("one request of {} of {}", figure(*f.requested), figure(*f.capacity))};
}

// It ran well for a while: then a batch had longer or larger samples, or something grows.
Evidence after_some_steps(const CaseView& view) {
  const std::optional<int64_t> steps = steps_done(view);
  if (!steps || *steps < 3) return {};
  return {0.76, fmt::format("{} steps went well", *steps)};
}

// The same of a trainer whose loop is its own: nothing of the user's code can keep anything there.
Evidence after_some_time(const CaseView& view) {
  if (const Evidence steps = after_some_steps(view); steps.weight > 0) return steps;
  const std::string& log = view.incident().log_text;
  std::string_view told = view.story().growing;
  if (told.empty()) told = told_after_epochs(log);
  if (told.empty()) told = any_word(beginning(view), "几个小时|一段时间|a few hours|some hours|several hours|数時間");
  return told.empty() ? Evidence{} : Evidence{0.8, fmt::format("`{}` in the log", told)};
}

bool unknown_program_on_device(const CaseView& view) {
  return training_on_device(view) && unknown_program(view) && view.reinforcement_library().empty();
}
// Whatever is known of its task.
bool language_model_on_device(const CaseView& view) {
  return on_device(view) && !view.serving() && unknown_program(view) && view.reinforcement_library().empty();
}
bool language_training(const CaseView& view) { return training_on_device(view) && !unknown_program(view); }
bool training_on_packs(const CaseView& view) {
  return language_training(view) && view.job().batch.packing.value_or(false);
}
bool training_on_rows(const CaseView& view) { return language_training(view) && !training_on_packs(view); }
bool training_on_texts(const CaseView& view) { return language_training(view) && !images_alone(view); }

// A post that speaks of how large its images, videos or point clouds are.
bool of_sized_inputs(const CaseView& view) {
  return on_device(view) && !view.serving() && view.reinforcement_library().empty() && images_alone(view) &&
         !speaks_of_diffusion(view) && view.message() && !told_beside_the_steps(view);
}
Evidence size_is_told(const CaseView& view) {
  constexpr std::string_view kSizes =
      "resolution|720p|1080p|1440p|2160p|480p| 2k$| 4k$| 8k$|1920x|1920*|2048x|2048*|1024x|1024*|4096x|image "
      "size|image "
      "sizes|size of the image|image is large|images are large|input is large|input is really large|large image|big "
      "image|high-res|huge image|larger image|input size|number of frames|"
      "number of points|分辨率|大图|尺寸|图片很大|帧数|解像度|画像サイズ";
  Evidence told;
  each_sentence(beginning(view), [&](std::string_view sentence) {
    const bool code = sentence.find("file \"") != std::string_view::npos;
    const std::string_view size = code ? std::string_view() : affirmed_word(without_words(sentence, kResolved), kSizes);
    if (!size.empty()) told = {0.74, fmt::format("`{}` in the post", size)};
    return told.weight > 0;
  });
  return told;
}

// Code or frames of torchvision; that it is installed, as it is beside PyTorch everywhere, says nothing of the inputs.
Evidence uses_torchvision(const CaseView& view) {
  const std::string_view used = view.log_says(
      "torchvision/|torchvision\\|torchvision.models|torchvision.transforms|torchvision.datasets|"
      "torchvision.ops|torchvision.utils|import torchvision|from torchvision");
  return used.empty() ? Evidence{} : Evidence{0.77, fmt::format("`{}` in the log", used)};
}

// A network that upscales images and is not itself being trained.
bool enlarging(const CaseView& view) {
  return predicting_on_device(view) && view.log_says("training|train.py|batch size|batch_size|loss").empty();
}
// The stage of a prediction has situations of its own.
constexpr std::string_view kTraining =
    "train|finetun|fine-tun|fine tun|lora|batch|bert|dpo|sft|微调|训练|学習|訓練|ファインチューニング";
bool trains_texts(const CaseView& view) {
  return view.training() && view.story().task != ToldTask::prediction && !view.log_says(kTraining).empty();
}

Evidence texts_in_the_log(const CaseView& view) {
  if (!speaks_of_texts(view) || speaks_of_diffusion(view) || told_beside_the_steps(view)) return {};
  if (view.training() && speaks_of_prediction(view)) return {};
  return {0.76, names_texts(view) ? "the log speaks of a language model" : "the log speaks of fine-tuning"};
}
Evidence texts_in_a_training(const CaseView& view) { return trains_texts(view) ? texts_in_the_log(view) : Evidence{}; }
Evidence texts_without_a_training(const CaseView& view) {
  return trains_texts(view) ? Evidence{} : texts_in_the_log(view);
}
// A training, and a sentence that asks for weights in 4 or 8 bits.
Evidence asked_for_bits(const CaseView& view) {
  constexpr std::string_view kBits =
      "int4|int8|4bit|4-bit|8bit|8-bit|量化|quantiz|quantis|qlora|量子化|load_in_4|load_in_8";
  constexpr std::string_view kAsks =
      "吗|怎么|如何|能不能|能否|可以|是否|有没有|支持|how|can i|can we|could|possible|is there|any "
      "way|should|できますか|"
      "できる|可能|方法|?|？";
  // How the base is loaded by now is not asked for.
  constexpr std::string_view kByNow =
      "qlora example|qlora_example|qlora.yml|qlora.yaml|using qlora|with qlora|用qlora|qlora微调|qlora 4bit|4bit微调|"
      "4bit 微调|8bit微调|load_in_4bit=true|load_in_4bit: true|quantization_bit: 4|quantization_bit 4";
  if (!trains_texts(view) || !view.log_says(kByNow).empty()) return {};
  Evidence asked;
  each_sentence(beginning(view), [&](std::string_view sentence) {
    const std::string_view bits = any_word(sentence, kBits);
    if (!bits.empty() && !any_word(sentence, kAsks).empty()) asked = {0.82, fmt::format("the log asks for `{}`", bits)};
    return asked.weight > 0;
  });
  return asked;
}
bool not_of_a_pipeline(const CaseView& view) {
  return predicting_on_device(view) && !speaks_of_diffusion(view) && speech_word(view.incident().log_text).empty();
}
// Families that bring every image to one size.
constexpr std::string_view kOfOneSize = "glm-4v|glm4v|cogvlm|paligemma|llava-1.5|llava-v1.5";
// The model of the post; one that "works fine" is only compared with.
Evidence model_of_one_size(const CaseView& view) {
  constexpr std::string_view kWorks = "works|worked|is fine|runs fine|no problem|没问题|正常|問題な";
  constexpr double kNamed = 0.84;
  if (const std::string_view word = view.setup_says(kOfOneSize); !word.empty())
    return {kNamed, fmt::format("`{}` in the configuration", word)};
  if (view.log_says(kOfOneSize).empty()) return {};
  std::string_view word;
  each_sentence(view.incident().log_text, [&](std::string_view sentence) {
    const bool compared = !affirmed_word(sentence, kWorks).empty() && told_out_of_memory(sentence).empty();
    if (!compared) word = any_word(sentence, kOfOneSize);
    return !word.empty();
  });
  return word.empty() ? Evidence{} : Evidence{kNamed, fmt::format("`{}` in the log", word)};
}
bool of_one_size(const CaseView& view) { return model_of_one_size(view).weight > 0; }
bool training_on_pixels(const CaseView& view) { return training_on_device(view) && !of_one_size(view); }
bool predicting_only(const CaseView& view) {
  return predicting_on_device(view) && !view.training() && !of_one_size(view);
}

// A program that reads its settings from a file of TOML: torchtitan, cosmos-rl and others.
Evidence reads_a_recipe(const CaseView& view) {
  const std::string log =
      without_words(view.incident().log_text, "pyproject.toml|cargo.toml|poetry.toml|config.toml for");
  return log.find(".toml") == std::string::npos ? Evidence{}
                                                : Evidence{0.83, "a recipe in a file of TOML, by the post"};
}
bool trains_by_a_recipe(const CaseView& view) {
  return unknown_program_on_device(view) && !view.has_job() && !speaks_of_diffusion(view) &&
         view.story().task != ToldTask::prediction;
}

constexpr std::string_view kVisionLanguage =
    "qwen2-vl|qwen2.5-vl|qwen2_vl|qwen2_5_vl|qwen2vl|qwen2.5vl|qwen3-vl|qwen3_vl|internvl|minicpm-v|llava|"
    "idefics|smolvlm|max_pixels|pixel_values|image_grid_thw|b-vl |b-vl-|b-vl微|b-vl时|b-vl训|-vl-7b|"
    "-vl-3b|-vl-2b|-vl-72b|多模态|multimodal|image token|图像token|图像的token|vision language|vision-language|vlm|"
    "visiondatacollator|fastvisionmodel|vision2seq|imagetexttotext|process_vision_info|paligemma|pixtral|mllama|"
    "llama-3.2-11b-vision|vision-instruct|マルチモーダル";
constexpr std::string_view kFewerPixels =
    "smaller images: max_pixels of the processor (Qwen-VL: max_pixels=602112; ms-swift: MAX_PIXELS=602112; "
    "LLaMA-Factory: image_max_pixels; unsloth's collator: resize), fewer tiles (InternVL, LLaVA)";
Evidence video_of_tokens(const CaseView& view) {
  const std::string_view model = view.log_says(kVisionLanguage), video = video_word(view);
  return model.empty() || video.empty() ? Evidence{} : Evidence{0.87, fmt::format("`{}` in the log", video)};
}
// The limit was set and did not help.
Evidence limit_in_vain(const CaseView& view) {
  const std::string_view limit = view.log_says("max_pixels|max pixels|image_max_pixels|min_pixels");
  if (limit.empty() || !tried_in_vain(view.incident().log_text, "input-size")) return {};
  return {0.9, fmt::format("`{}` in the post, without effect", limit)};
}
constexpr std::string_view kSwift = "swift sft|swift pt |swift rlhf|swift/cli/sft.py|swift/cli/rlhf.py|swift/llm/train",
                           kOneRowOfSwift = "--per_device_train_batch_size 1 |--per_device_train_batch_size 1\n";
bool cut_by_swift(const CaseView& view) { return view.says("--max_length "); }
bool swift_without_a_cut(const CaseView& view) { return training_on_device(view) && !cut_by_swift(view); }
bool swift_with_a_cut(const CaseView& view) { return training_on_device(view) && cut_by_swift(view); }

constexpr std::string_view kWhoHoldsIt = "nvidia-smi: another program, or an earlier run, may hold the device";

// A matrix of all vectors with all others.
bool not_in_a_trainer(const CaseView& view) {
  return unknown_program(view) && !view.serving() && !speaks_of_diffusion(view);
}
Evidence all_with_all(const CaseView& view) {
  const std::string_view pairs = view.log_says(
      "cdist|pairwise|similarity matrix|distance matrix|gram matrix|kernel matrix|affinity matrix|cosine_similarity|"
      "euclidean_distances|corrcoef|距离矩阵|相似度矩阵|距離行列|類似度行列");
  if (pairs.empty()) return {};
  const bool large = one_large_request(view).weight > 0 || beyond_the_device(view).weight > 0 ||
                     view.figures().requested.value_or(0) > (int64_t{4} << 30);
  return {large ? 0.965 : 0.8, fmt::format("`{}` in the log", pairs)};
}

constexpr Situation kSituations[] = {
    {"all_vectors_with_all_others",
     "a matrix of all vectors with all others grows with the square of their number",
     not_in_a_trainer,
     {},
     {{"input-size",
       "a block of rows at a time: for part in x.split(1024): cdist(part, x), reduced at once (topk, min, sum), "
       "results "
       "to the host"},
      {"lean-load",
       "no matrix at all: faiss (nearest neighbours), KeOps (sums over pairs), scikit-learn's chunked functions"},
      {"half-inference", "16 bits for the matrix: .half()"}},
     all_with_all},
    {"limit_of_pixels_without_effect",
     "a limit of the pixels that changes nothing does not reach the processor, or is above what the images have",
     on_device,
     {},
     {{"find-sample",
       "print(inputs[\"image_grid_thw\"]), or pixel_values.shape, of the largest image: does the limit reach the "
       "processor?"},
      {"lean-load", "the image files resized beforehand (a longer side of 1024 pixels): then no setting matters"},
      {"micro-batch"},
      {"checkpointing"}},
     limit_in_vain},
    {"request_beyond_the_device",
     "no batch of one fits either: one input, or what is computed from it, is larger than the device",
     not_of_a_pipeline,
     {},
     {{"input-size",
       "crop, tile or resize the input image (such as to 512 x 512), or cut the sequence: input size decides"},
      {"find-sample"},
      {"flash-attention"}},
     beyond_the_device},
    {"attention_beyond_the_device",
     "one request is many times the device: usually the scores of all pixels, frames or tokens with all others, which "
     "grow with the square of the input",
     predicting_on_device,
     {},
     {{"input-size",
       "a smaller image or crop, fewer frames at a time, tiles: half of it takes a quarter of the scores"},
      {"flash-attention",
       "attention that never holds all scores: xformers (memory_efficient_attention), or "
       "F.scaled_dot_product_attention of torch >= 2 (attn_implementation=\"sdpa\"), FlashAttention"},
      {"micro-batch", "fewer images, frames or prompts at a time"}},
     scores_beyond_the_device},
    {"one_large_tensor",
     "one tensor is wanted that takes a large part of the device: whole inputs, attention scores, or outputs joined "
     "over an evaluation",
     unknown_program_on_device,
     {},
     {{"input-size"},
      {"micro-batch"},
      {"eval-accumulation",
       "if it only predicts: torch.no_grad(), model.half(), .cpu() on kept outputs (Trainer: "
       "preprocess_logits_for_metrics or eval_accumulation_steps=1)"}},
     one_large_request},
    {"one_large_tensor_of_a_row",
     "one tensor takes a large part of the device: logits, scores or gradients of whole rows, so their length decides",
     training_on_rows,
     {},
     {{"sequence-length"}, {"micro-batch"}, {"chunked-loss"}},
     one_large_request},
    {"one_large_tensor_of_a_pack",
     "one tensor takes a large part of the device: logits, scores or gradients of whole packs, so their length decides",
     training_on_packs,
     {},
     {{"shorter-pack", "sample_packing: false, or a shorter sequence_len", {}, System::axolotl},
      {"shorter-pack"},
      {"sequence-length"},
      {"micro-batch"},
      {"chunked-loss"}},
     one_large_request},
    {"asked_for_fewer_bits",
     "the base in 4 bits is frozen and takes a quarter; small added matrices train",
     unknown_program_on_device,
     {},
     {{"qlora",
       "LoRA on a base in 4 bits: load_in_4bit=True (bitsandbytes); LLaMA-Factory: quantization_bit: 4; ChatGLM: "
       "--quantization_bit 4"},
      {"micro-batch"},
      {"checkpointing", {}, {}, System::unknown, "--gradient_checkpointing"},
      {"sequence-length", "shorter texts: max_length=<half> where they are cut (max_seq_length, cutoff_len)"}},
     asked_for_bits},
    {"language_model_of_an_unknown_program",
     "a language model trains: batch, length and what every layer keeps, beside weights, gradients and states",
     unknown_program_on_device,
     {},
     {{"micro-batch"},
      {"checkpointing", {}, {}, System::unknown, "--gradient_checkpointing"},
      {"sequence-length", "shorter texts: max_length=<half> where they are cut (max_seq_length, cutoff_len)"},
      {"lora"}},
     texts_in_a_training},
    {"training_by_a_recipe",
     "the recipe decides: rows at once on each device, their length, and over how many devices weights and states are "
     "divided",
     trains_by_a_recipe,
     {},
     {{"micro-batch",
       "a smaller batch in the recipe, half of it (local_batch_size, train_batch_per_replica, mini_batch)"},
      {"checkpointing", "activation checkpointing in the recipe (torchtitan: [activation_checkpoint] mode = \"full\")"},
      {"shard",
       "weights and states divided over all devices: a data-parallel shard degree (dp_shard_size, FSDP) of their "
       "number"},
      {"sequence-length", "a smaller maximal length in the recipe (seq_len, max_length)"}},
     reads_a_recipe},
    {"language_model_without_a_word_of_training",
     "a language model: weights, and what length and batch add; in training gradients and states too",
     language_model_on_device,
     {},
     {{"sequence-length",
       "a shorter context: fewer tokens in the prompt, a smaller max_new_tokens; in training max_length=<half>"},
      {"quantized-model",
       "only to predict: a 4-bit version (AWQ, GPTQ, GGUF), or load_in_4bit=True",
       {},
       System::unknown,
       "int4|awq|gptq|gguf|4bit|4-bit|q4_"},
      {"micro-batch", "fewer prompts or rows at a time: a batch size (max_batch_size) of 1"}},
     texts_without_a_training},
    {"training_by_swift",
     "ms-swift 3 cuts no sample where --max_length is absent: the longest decides",
     swift_without_a_cut,
     {{either, 0.88, kSwift}},
     {{"sequence-length", "--max_length 2048"},
      {"micro-batch",
       "--per_device_train_batch_size 1, --gradient_accumulation_steps as many times more",
       {},
       System::unknown,
       kOneRowOfSwift},
      {"shard", "--deepspeed zero3 (several devices)", {}, System::unknown, "--deepspeed zero3|zero3_offload"},
      {"qlora", "--quant_method bnb --quant_bits 4", {}, System::unknown, "--quant_bits"}}},
    {"training_by_swift_with_a_cut",
     "length, batch and the pixels of a sample decide, beside weights and what is trained of them",
     swift_with_a_cut,
     {{either, 0.88, kSwift}},
     {{"sequence-length", "--max_length <half>"},
      {"micro-batch",
       "--per_device_train_batch_size 1, --gradient_accumulation_steps as many times more",
       {},
       System::unknown,
       kOneRowOfSwift},
      {"shard", "--deepspeed zero3 (several devices)", {}, System::unknown, "--deepspeed zero3|zero3_offload"},
      {"qlora", "--quant_method bnb --quant_bits 4", {}, System::unknown, "--quant_bits"}}},
    {"image_enlarged_at_once",
     "the whole image is enlarged at once: every layer works at full resolution",
     enlarging,
     {{either, 0.86,
       "esrgan|upscal|scale_by|hires fix|hires. fix|swinir|super-resolution|superresolution|super_resolution|super "
       "resolution|gfpgan|stablesr|超分|sr scale|diffbir|supir$|seesr|codeformer|restoreformer|bsrgan|upscayl|waifu2x|"
       "超解像"}},
     {{"input-size", "in tiles: --tile 400 (Real-ESRGAN), Tiled VAE, a smaller tile size; or a smaller image"},
      {"half-inference", "16 bits: model.half() (Real-ESRGAN: without --fp32)"},
      {"no-grad", "with torch.no_grad(): around it"}}},
    {"images_of_one_size",
     "weights in 16 bits, and as many tokens for every image: this model brings each to one size, whatever its pixels",
     on_device,
     {},
     {{"quantized-model", "weights in 4 or 8 bits (transformers: load_in_4bit=True; xinference: --quantization 4-bit)"},
      {"input-size", "fewer images at a time, one in a request; a shorter history"},
      {"half-inference", "16 bits in from_pretrained: torch_dtype=torch.bfloat16", {}, System::unknown, "xinference"}},
     model_of_one_size},
    {"pixels_of_a_vision_language_model",
     "every image becomes as many tokens as it has pixels for: a large photograph is thousands of them",
     training_on_pixels,
     {{either, 0.84, kVisionLanguage}},
     {{"input-size", kFewerPixels}, {"micro-batch"}, {"checkpointing"}, {"shard"}}},
    {"frames_of_a_vision_language_model",
     "every frame of a video becomes as many tokens as it has pixels for: their number decides",
     predicting_on_device,
     {},
     {{"fewer-images",
       "fewer frames: \"nframes\" or \"max_frames\" of the video (qwen-vl-utils), num_frames or max_frames of the "
       "processor, a lower fps"},
      {"input-size", kFewerPixels}},
     video_of_tokens},
    {"pixels_in_a_prompt",
     "every image becomes as many tokens as it has pixels for: a large photograph is thousands of them",
     predicting_only,
     {{either, 0.84, kVisionLanguage}},
     {{"input-size", kFewerPixels},
      {"half-inference",
       "from_pretrained(..., torch_dtype=torch.bfloat16, attn_implementation=\"flash_attention_2\")",
       {},
       System::unknown,
       "lmdeploy|api_server|ollama|llama.cpp|gguf"},
      {"quantized-model", "the model's AWQ or Int4 version (transformers: load_in_4bit=True)"},
      {"other-version", "transformers >= 4.46: older ones compute the logits of every token of the prompt"}}},
    {"large_images",
     "convolutions over images or volumes: memory grows with height x width (x depth)",
     unknown_program_on_device,
     {{log, 0.77,
       "conv2d|conv3d|conv_transpose|unet|resnet|vgg|deeplab|segmentation|efficientnet|densenet|yolo|mask_rcnn|"
       "faster_rcnn|upsample|interpolate|max_pool|batch_norm|mmdet|mmseg|detectron|nnunet|voxel"}},
     {{"micro-batch"}, {"input-size"}, {"end-other-processes", kWhoHoldsIt}, {"no-grad"}},
     uses_torchvision},
    {"size_of_the_inputs",
     "what the layers keep grows with the area of an image, the frames of a video, the points of a cloud, and with how "
     "many go through at once",
     of_sized_inputs,
     {},
     {{"input-size"}, {"micro-batch"}},
     size_is_told},
    {"longer_batch_later",
     "a batch with longer or larger samples came: the peak is that of the longest",
     training_on_texts,
     {},
     {{"sequence-length"}, {"micro-batch"}, {"length-buckets"}, {"find-sample"}},
     after_some_time},
    {"larger_batch_later",
     "a batch with larger samples came, or something grows from step to step",
     unknown_program_on_device,
     {},
     {{"micro-batch"}, {"input-size"}, {"detach-history"}, {"find-sample"}},
     after_some_steps},
};

}  // namespace

std::span<const Situation> input_situations() { return kSituations; }

}  // namespace headroom::doctor
