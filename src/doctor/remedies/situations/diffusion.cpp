// Diffusion models: pipelines that only sample, their user interfaces, and training scripts.
#include <fmt/format.h>

#include <cstdlib>

#include "doctor/remedies/figures.h"
#include "doctor/remedies/situations/conditions.h"
#include "doctor/remedies/situations/situation.h"

namespace headroom::doctor {
namespace {

using enum Sign::In;

constexpr std::string_view kTrainingScripts =
    "train_dreambooth|train_text_to_image|train_controlnet|train_instruct_pix2pix|textual_inversion.py|train_"
    "unconditional|"
    "train_custom_diffusion|train dreambooth|dreambooth training|dreambooth.py|sd_dreambooth|textual inversion|"
    "diffusion-pipe|ai-toolkit|onetrainer|accelerate launch train_lora|dreambooth lora|training dreambooth|with "
    "dreambooth|training sdxl|train sdxl|training flux|train flux|training stable diffusion|train stable diffusion|"
    "fine-tune stable diffusion|fine-tuning stable diffusion|finetune stable diffusion|finetuning stable diffusion|"
    "finetune sdxl|fine-tune sdxl|fine-tuning sdxl|finetuning sdxl";

bool any_pool_device(const CaseView& view) { return view.pool() == Pool::device; }
// A folder in a path names an interface that does not run: the script that trains does.
bool of_an_interface(const CaseView& view) {
  return any_pool_device(view) && !view.says(kKohyaScripts) && !by_comfyui(view);
}
bool going_backward(const CaseView& view) { return view.phase("backward") || view.phase("optimizer"); }
bool trained_by_diffusers(const CaseView& view) { return on_device(view) && !view.says(kKohyaScripts); }
// It is fine-tuned, by any script.
bool tuned(const CaseView& view) {
  const Story& story = view.story();
  const bool told = !story.at(ToldStage::training).empty() || story.task == ToldTask::training;
  const bool trains =
      told && story.at(ToldStage::prediction).empty() && view.message() && view.message()->frames.empty();
  if (speaks_of_diffusion(view) && !speaks_of_texts(view) && trains) return true;
  return speaks_of_diffusion(view) && !speaks_of_texts(view) &&
         !view.log_says("finetun|fine-tun|fine tun|微调|ファインチューニング").empty();
}
// By a trainer other than kohya's scripts, whose own situations know them.
bool trains_a_large_one(const CaseView& view) {
  const Story& story = view.story();
  return trained_by_diffusers(view) && !by_comfyui(view) && !view.says("diffusers") &&
         story.at(ToldStage::prediction).empty() &&
         (story.task == ToldTask::training || !story.at(ToldStage::training).empty());
}
Evidence tuned_by_words(const CaseView& view) {
  if (!tuned(view)) return {};
  return {0.86, "a diffusion model is fine-tuned"};
}
bool sampling(const CaseView& view) {
  // "画像生成GANの学習": a training by its words, and no frames of a pipeline.
  const bool trains = view.story().task == ToldTask::training && !view.phase("inference") && view.message() &&
                      view.message()->frames.empty() && !speaks_of_diffusion(view);
  if (trains) return false;
  return any_pool_device(view) && view.reinforcement_library().empty() && !going_backward(view) &&
         !view.says(kKohyaScripts) && !view.says(kTrainingScripts) && !tuned(view);
}
bool sampling_by_code(const CaseView& view) {
  constexpr std::string_view kOfSounds = "pyannote|diariz|musicgen|speech|whisper|bark$";
  return sampling(view) && view.log_says(kOfSounds).empty() && !by_comfyui(view) &&
         !view.says(
             "comfyui|diffusion webui|diffusion web ui|sd webui|sd-webui|sd web "
             "ui|stable-diffusion-webui|a1111|automatic1111|invokeai|fooocus|swarmui|sdnext|ldm_patched|k_diffusion");
}
bool sampling_elsewhere(const CaseView& view) { return sampling(view) && !by_comfyui(view); }
bool sampling_images(const CaseView& view) { return sampling(view) && speaks_of_diffusion(view); }
Evidence under_torch_1(const CaseView& view) {
  const std::string_view version = view.log_says(
      "pytorch1.|pytorch 1.|torch1.|torch 1.|torch==1.|pytorch==1.|pytorch version: 1.|torch version: 1.");
  if (version.empty()) return {};
  return {0.93, fmt::format("`{}` in the log", version)};
}
// A bare message: a traceback or another program's words would say what the tensor is.
bool nothing_but_a_message(const CaseView& view) {
  constexpr std::string_view kOthers = "file \"|.py|upscal|upsampl|esrgan|segment|detect|yolo|train";
  return on_device(view) && unknown_program(view) && view.log_says(kOthers).empty();
}

// A pipeline loaded without a type is in 32 bits, whatever its files hold.
Evidence loaded_in_32_bits(const CaseView& view) {
  const std::string_view loads = view.setup_says("pipeline.from_pretrained(");
  if (loads.empty() || !view.setup_says("dtype=|variant=|.half()|torch.float16)|quantization_config").empty())
    return {};
  return {0.94, fmt::format("`{}` without torch_dtype", loads)};
}

// A pipeline that was moved to the device is only copied from there: the offload saves nothing.
Evidence moved_before_the_offload(const CaseView& view) {
  const std::string_view moved = view.setup_says(".to(\"cuda\")|.to('cuda')|.to(device)|.cuda()");
  const std::string_view offload = view.setup_says("enable_model_cpu_offload(|enable_sequential_cpu_offload(");
  if (moved.empty() || offload.empty()) return {};
  return {0.95, fmt::format("`{}` beside `{}`", moved, offload)};
}

// A quarter of the device in one request: pixels or attention scores. Moving parts to the host does not change those.
Evidence one_tensor_of_a_pipeline(const CaseView& view) {
  const MessageFigures& f = view.figures();
  if (!f.requested || !f.capacity || *f.requested < *f.capacity / 4 || !speaks_of_diffusion(view)) return {};
  return {*f.requested > *f.capacity * 9 / 10 ? 0.96 : 0.87,
          fmt::format("one request of {} of {}", figure(*f.requested), figure(*f.capacity))};
}

// The scores of Stable Diffusion's widest attention: 8 heads, with and without the prompt, one token per 8 x 8 pixels.
// Sizes whose scores are a power of two are left out, because such requests have many other causes.
Evidence scores_of_an_image(const CaseView& view) {
  constexpr int64_t kHeads = 16, kPrinted = int64_t{6} << 20;
  const std::optional<int64_t>& requested = view.figures().requested;
  if (!requested) return {};
  struct Image {
    int64_t width, height;
  };
  constexpr Image kImages[] = {{576, 576}, {640, 640}, {512, 768},   {704, 704},   {768, 768},  {832, 832},
                               {896, 896}, {960, 960}, {1152, 1152}, {1280, 1280}, {1536, 1536}};
  for (const Image& image : kImages) {
    const int64_t tokens = image.width * image.height / 64;
    for (const int64_t width : {2, 4})
      if (std::abs(kHeads * tokens * tokens * width - *requested) <= kPrinted)
        return {0.8, fmt::format("{} are the attention scores of a {} x {} image in {} bits", figure(*requested),
                                 image.width, image.height, 8 * width)};
  }
  return {};
}

constexpr std::string_view kOffloaded = "enable_model_cpu_offload|enable_sequential_cpu_offload";
// When whole parts are already moved to the host.
constexpr Advice kPiecewise = {"low-vram",
                               "pipe.enable_sequential_cpu_offload() (slower, least memory); pipe.vae.enable_tiling()",
                               {},
                               System::unknown,
                               "enable_sequential_cpu_offload"};

constexpr Situation kSituations[] = {
    {"training_of_a_diffusion_transformer",
     "the transformer alone takes 12 to 34 GB in 16 bits, whole on every device, before what its layers keep",
     trains_a_large_one,
     {{either, 0.86,
       "hidream|hunyuanvideo|hunyuan video|wan2|wan 2|qwen-image|qwen image|flux-dev|flux.1|flux1|flux lora|sd3.5|"
       "cogvideo|ltx-video|lumina|chroma$|diffusion-pipe"}},
     {{"low-vram",
       "blocks that wait on the host: blocks_to_swap = 20 (diffusion-pipe), --blocks_to_swap 20 (musubi-tuner, "
       "sd-scripts), low_vram: true (ai-toolkit)",
       {},
       System::unknown,
       "blocks_to_swap"},
      {"checkpointing", "gradient checkpointing: activation_checkpointing = true, --gradient_checkpointing"},
      {"half-weights",
       "the frozen transformer in 8 bits: transformer_dtype = 'float8', --fp8_base, quantize: true",
       {},
       System::unknown,
       "float8|fp8_base|quantize: true"},
      {"input-size", "a lower resolution, fewer frames: 512 pixels, one frame to 33"}}},
    {"moved_before_the_offload",
     "the parts of the pipeline are moved to the device whole, before the offload could hold them back",
     sampling,
     {},
     {{"low-vram",
       "no .to(\"cuda\") on the pipeline or its parts: pipe.enable_model_cpu_offload() instead of it; least: "
       "pipe.enable_sequential_cpu_offload()"},
      {"input-size", "a lower resolution, fewer frames, one image at a time; pipe.vae.enable_tiling()"},
      {"quantized-model", "the transformer or UNet in 8 or 4 bits: quantization_config=BitsAndBytesConfig(...), GGUF"}},
     moved_before_the_offload},
    {"pipeline_in_32_bits",
     "the pipeline is loaded in 32 bits: its weights and tensors take twice what 16 bits would",
     sampling,
     {},
     {{"half-inference",
       "from_pretrained(..., torch_dtype=torch.bfloat16), with variant=\"bf16\" or \"fp16\" if there is one"},
      {"low-vram",
       "pipe.enable_model_cpu_offload() instead of pipe.to(\"cuda\"); pipe.vae.enable_tiling()",
       {},
       System::unknown,
       kOffloaded},
      {"input-size", "a lower resolution, fewer frames, one image at a time"}},
     loaded_in_32_bits},
    {"first_scripts_of_stable_diffusion",
     "the first scripts of Stable Diffusion keep the model in 32 bits and make three images at a time",
     sampling,
     {{either, 0.86,
       "scripts/txt2img|scripts/img2img|scripts\\txt2img|txt2img.py|img2img.py|--plms|--ddim_steps|--n_samples |"
       "--n_samples=|"
       "ldm/modules|ldm\\modules|load_model_from_config|compvis"}},
     {{"half-inference", "model.half() in load_model_from_config(), before model.cuda()"},
      {"input-size", "a smaller image, and a smaller input image: --H 512 --W 512 --n_samples 1"},
      {"low-vram", "diffusers instead: pipe.enable_model_cpu_offload(), pipe.enable_attention_slicing()"},
      {"flash-attention", "xformers, or attention in slices (optimizedSD)"}}},
    {"diffusion_interface",
     "an interface for diffusion models keeps the whole pipeline on the device",
     of_an_interface,
     {{setup, 0.85, "--medvram|webui.py --lowvram"},
      {setup, 0.8, "webui.py|webui-user|stable-diffusion-webui|comfyui|invokeai|fooocus|sdnext|webui-forge"},
      {log, 0.9, "use lower resolution (max approx"},
      {log, 0.82,
       "stable-diffusion-webui|comfyui|invokeai|fooocus|ldm_patched|modules/"
       "sd_|k_diffusion|webui-user|sd-webui|sd.webui|"
       "pictures on web ui|unloading all loaded models|torch active/reserved|euler a|hires fix|hires. fix|a1111|"
       "diffusion webui|diffusion web ui|sd webui|swarmui|sdnext|automatic1111|novram|sd web ui|lowvram"}},
     {{"low-vram",
       "--lowvram instead of --medvram (ComfyUI: --lowvram), --xformers or --opt-sdp-attention; no "
       "--precision full"},
      {"input-size",
       "a lower resolution (512 x 512) and a batch of 1, then upscale; decode in tiles (VAE Decode (Tiled), Tiled "
       "VAE)"},
      {"quantized-model", "an fp8, NF4 or GGUF model where it is a large one (FLUX, Wan, Qwen-Image)"},
      {"micro-batch"}}},
    {"tiles_of_an_interface",
     "Tiled Diffusion works on several tiles of the latent at once, and Tiled VAE chooses its tiles by the free memory "
     "that it sees",
     of_an_interface,
     {{log, 0.86, "tiled diffusion|tilled diffusion|tiled vae"}},
     {{"input-size",
       "Tiled VAE: encoder tile size 1024, decoder tile size 128 (64 on 6 GB); Tiled Diffusion: latent tile batch size "
       "1"},
      {"low-vram", "--medvram (--lowvram under 6 GB), and --xformers or --opt-sdp-attention"},
      {"half-inference", "Fast Decoder and Fast Encoder on, no --no-half (--no-half-vae doubles the decoder)"}}},
    {"diffusion_training",
     "a diffusion model trains: what the UNet keeps for its backward pass, and Adam's states",
     trained_by_diffusers,
     {{either, 0.87, kTrainingScripts}},
     {{"checkpointing", "--gradient_checkpointing", {}, System::unknown, "--gradient_checkpointing"},
      {"optimizer-8bit", "--use_8bit_adam", {}, System::unknown, "use_8bit_adam|adamw8bit"},
      {"micro-batch",
       "--train_batch_size 1 --gradient_accumulation_steps 4; smaller images: --resolution 512",
       {},
       System::unknown,
       "--train_batch_size=1 |--train_batch_size 1 |--train_batch_size=1\n|--train_batch_size 1\n"},
      {"flash-attention", "--enable_xformers_memory_efficient_attention", {}, System::unknown, "enable_xformers"},
      {"input-size", "--resolution 512", {}, System::unknown, "--resolution=512|--resolution 512"},
      {"lora",
       "the script's LoRA version (train_dreambooth_lora.py): small added matrices only",
       {},
       System::unknown,
       "lora"}},
     tuned_by_words},
    {"vae_decodes_the_whole_image",
     "the VAE decodes (or encodes) the whole image or all frames at once: its convolutions work at full resolution",
     sampling_elsewhere,
     {{log, 0.9,
       "vae.decode|vae.encode|decode_latents|decode_first_stage|encode_first_stage|first_stage_model|autoencoder_kl|"
       "autoencoders/|vaedecode|vaeencode|vae decod|decode_to_pixels|_vae.py|causalvae|causal_conv3d"}},
     {{"low-vram",
       "decode in tiles: pipe.vae.enable_tiling(), pipe.vae.enable_slicing(); ComfyUI: VAE Decode (Tiled); web UI: "
       "Tiled VAE",
       {},
       System::unknown,
       "vae.enable_tiling()|enable_vae_tiling()"},
      {"low-vram",
       "pipe.enable_model_cpu_offload() instead of pipe.to(\"cuda\"): only the VAE is on the device then",
       {},
       System::unknown,
       kOffloaded},
      {"input-size", "a lower resolution, fewer frames, one image at a time"},
      {"half-inference", "the VAE in 16 bits too: vae.to(torch.float16) (SDXL: madebyollin/sdxl-vae-fp16-fix)"}}},
    {"one_tensor_of_a_pipeline",
     "one tensor takes a large part of the device: attention scores or pixels of the whole image, not the weights",
     sampling,
     {},
     {{"input-size", "a smaller image (512 x 512), resize the input image too; one at a time (n_samples 1)"},
      {"flash-attention",
       "pipe.enable_attention_slicing() or xformers (web UI: --xformers or --opt-sdp-attention): the scores are never "
       "whole"},
      {"half-inference",
       "torch_dtype=torch.float16 in from_pretrained(), or model.half() before it goes to the device",
       {},
       System::unknown,
       "torch.float16|torch.bfloat16"},
      {"low-vram", "pipe.vae.enable_tiling(), pipe.enable_model_cpu_offload() (web UI: --medvram)"}},
     one_tensor_of_a_pipeline},
    {"pipeline_under_torch_1",
     "without torch 2 attention keeps its scores whole: of a video they are far larger than the weights",
     sampling_images,
     {},
     {{"flash-attention",
       "torch >= 2 (scaled_dot_product_attention), or pipe.enable_xformers_memory_efficient_attention()"},
      {"low-vram",
       "pipe.enable_model_cpu_offload(), pipe.vae.enable_slicing(); of a video decode_chunk_size=2",
       {},
       System::unknown,
       kOffloaded},
      {"input-size", "a smaller image, fewer frames, one at a time"}},
     under_torch_1},
    {"large_denoiser",
     "the denoiser alone takes 4 to 30 GB in 16 bits, the text encoder beside it up to 10: not all are needed at once",
     sampling_by_code,
     {{either, 0.85,
       "flux.1|flux1|fluxpipeline|flux_|/flux/|\\flux\\|flux-dev|flux-schnell|x-flux|flux.2|hunyuanvideo|"
       "hunyuan_video|"
       "wan2|wan-ai|wanpipeline|cogvideox|mochi|ltx-video|ltxpipeline|stable-diffusion-3|stablediffusion3|sd3-medium|"
       "sd3.5|"
       "qwen-image|qwenimage|hidream|opensora|open-sora|framepack|step-video|skyreels|pyramid-flow|pixart|"
       "sanapipeline"}},
     {{"low-vram",
       "pipe.enable_model_cpu_offload() instead of pipe.to(\"cuda\"), pipe.vae.enable_tiling(); least: "
       "pipe.enable_sequential_cpu_offload()",
       {},
       System::unknown,
       kOffloaded},
      kPiecewise,
      {"quantized-model",
       "the transformer in fp8, NF4 or GGUF: FLUX takes 12 GB in 8 bits, 7 GB in 4",
       {},
       System::unknown,
       "gguf|nf4|load_in_4bit"},
      {"input-size", "a lower resolution, fewer frames, one image at a time"},
      {"half-inference", "from_pretrained(..., torch_dtype=torch.bfloat16)", {}, System::unknown, "float16|bfloat16"}}},
    {"diffusion_pipeline",
     "a diffusion pipeline keeps text encoders, denoiser and VAE on the device at once",
     sampling_by_code,
     {{log, 0.84, "diffusers/|unet_2d_condition|pipeline.from_pretrained(|pipeline_stable_diffusion"},
      {either, 0.82,
       "stablediffusion|diffusionpipeline|autoencoderkl|animatediff|motion_module|controlnet|"
       "latent_diffusion|latent-diffusion"},
      {setup, 0.8, "pipeline.from_pretrained("},
      {either, 0.78, "img2img|txt2img|text2img|text-to-image|image-to-image|inpaint|i2vgen|text2video|image2video"},
      {either, 0.76, "stable diffusion|stable-diffusion|sdxl|diffusers|文生图|文生视频|图生视频|画像生成"}},
     {{"low-vram",
       "pipe.enable_model_cpu_offload() instead of pipe.to(\"cuda\"); pipe.vae.enable_slicing(), "
       "pipe.vae.enable_tiling()",
       {},
       System::unknown,
       kOffloaded},
      kPiecewise,
      {"half-inference",
       "torch_dtype=torch.float16 in from_pretrained(), or model.half() before it goes to the device",
       {},
       System::unknown,
       "torch.float16|torch.bfloat16"},
      {"input-size", "a smaller image (512 x 512) and input image, fewer frames, one at a time (n_samples 1)"},
      {"flash-attention",
       "pipe.enable_attention_slicing() or xformers where torch < 2",
       {},
       System::unknown,
       "enable_attention_slicing|enable_xformers"}}},
    {"attention_scores_of_an_image",
     "the request is as large as the attention scores of Stable Diffusion's UNet over the whole image",
     nothing_but_a_message,
     {},
     {{"flash-attention",
       "pipe.enable_attention_slicing() or xformers (web UI: --xformers or --opt-sdp-attention): the scores are never "
       "whole"},
      {"input-size", "a smaller image: the scores grow with the fourth power of its side"},
      {"low-vram", "pipe.enable_model_cpu_offload() (web UI: --medvram)"}},
     scores_of_an_image},
};

}  // namespace

std::span<const Situation> diffusion_situations() { return kSituations; }

}  // namespace headroom::doctor
