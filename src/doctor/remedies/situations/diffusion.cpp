// Diffusion models: pipelines that only sample, their interfaces, and the scripts that train them.
#include <fmt/format.h>

#include <cstdlib>

#include "doctor/remedies/figures.h"
#include "doctor/remedies/situations/conditions.h"
#include "doctor/remedies/situations/situation.h"

namespace headroom::doctor {
namespace {

using enum Sign::In;

constexpr std::string_view kKohyaScripts =
    "train_network.py|sdxl_train|flux_train|sd3_train|fine_tune.py|train_db.py|kohya|sd-scripts|--network_module";
constexpr std::string_view kTrainingScripts =
    "train_dreambooth|train_text_to_image|train_controlnet|train_instruct_pix2pix|textual_inversion.py|train_"
    "unconditional|"
    "train_custom_diffusion|dreambooth|diffusion-pipe|ai-toolkit|onetrainer|accelerate launch train_lora";

bool says(const CaseView& view, std::string_view words) {
  return !view.log_says(words).empty() || !view.setup_says(words).empty();
}

bool any_pool_device(const CaseView& view) { return view.pool() == Pool::device; }
bool trained_by_kohya(const CaseView& view) { return on_device(view) && says(view, kKohyaScripts); }
bool trained_by_diffusers(const CaseView& view) { return on_device(view) && !says(view, kKohyaScripts); }
bool sampling(const CaseView& view) {
  return any_pool_device(view) && !says(view, kKohyaScripts) && !says(view, kTrainingScripts);
}
bool unknown_on_device(const CaseView& view) { return on_device(view) && unknown_program(view); }

// The scores of Stable Diffusion's widest attention: 8 heads, with and without the prompt, over one token for every 8 x
// 8 pixels. Sizes whose scores are a power of two are left out: such requests have many other reasons.
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

constexpr Situation kSituations[] = {
    {"diffusion_interface",
     "an interface for diffusion models keeps the whole pipeline on the device",
     any_pool_device,
     {{setup, 0.85, "--medvram|webui.py --lowvram"},
      {setup, 0.8, "webui.py|webui-user|stable-diffusion-webui|comfyui|invokeai"},
      {log, 0.9, "use lower resolution (max approx"},
      {log, 0.82, "stable-diffusion-webui|comfyui|invokeai|modules/sd_|ldm/modules|k_diffusion|webui-user"}},
     {{"low-vram",
       "--lowvram instead of --medvram (ComfyUI: --lowvram), --xformers or --opt-sdp-attention; no "
       "--precision full"},
      {"input-size", "a lower resolution (512 x 512), then upscale in tiles; a batch of 1"},
      {"micro-batch"}}},
    {"diffusion_training",
     "a diffusion model trains: what the UNet keeps for its backward pass, and Adam's states",
     trained_by_diffusers,
     {{either, 0.87, kTrainingScripts}},
     {{"checkpointing", "--gradient_checkpointing", {}, System::unknown, "--gradient_checkpointing"},
      {"optimizer-8bit", "--use_8bit_adam", {}, System::unknown, "use_8bit_adam|adamw8bit"},
      {"micro-batch",
       "--train_batch_size 1 --gradient_accumulation_steps 4",
       {},
       System::unknown,
       "--train_batch_size=1 |--train_batch_size 1 |--train_batch_size=1\n|--train_batch_size 1\n"},
      {"flash-attention", "--enable_xformers_memory_efficient_attention", {}, System::unknown, "enable_xformers"},
      {"input-size", "--resolution 512", {}, System::unknown, "--resolution=512|--resolution 512"},
      {"lora",
       "the script's LoRA version (train_dreambooth_lora.py): small added matrices only",
       {},
       System::unknown,
       "lora"}}},
    {"diffusion_training_by_kohya",
     "a diffusion model trains: what the UNet keeps for its backward pass, and Adam's states",
     trained_by_kohya,
     {{either, 0.87, kKohyaScripts}},
     {{"checkpointing", "--gradient_checkpointing", {}, System::unknown, "gradient_checkpointing"},
      {"micro-batch",
       "--train_batch_size 1",
       {},
       System::unknown,
       "train_batch_size=1 |train_batch_size 1 |train_batch_size=1\n|train_batch_size 1\n|train_batch_size = 1\n"},
      {"optimizer-8bit", "--optimizer_type AdamW8bit (or Adafactor)", {}, System::unknown, "8bit|adafactor"},
      {"flash-attention",
       "--sdpa (or --xformers), --cache_latents --cache_text_encoder_outputs",
       {},
       System::unknown,
       "--sdpa|--xformers"},
      {"low-vram", "--network_train_unet_only --full_bf16, --fused_backward_pass (SDXL), --blocks_to_swap 18 (FLUX)"},
      {"input-size", "--resolution 512,512"}}},
    {"diffusion_pipeline",
     "a diffusion pipeline keeps text encoders, denoiser and VAE on the device at once",
     sampling,
     {{log, 0.84, "diffusers/|unet_2d_condition|autoencoder_kl|pipeline.from_pretrained(|pipeline_stable_diffusion"},
      {either, 0.82, "stablediffusion|diffusionpipeline|fluxpipeline|autoencoderkl|animatediff|cogvideox|controlnet"},
      {setup, 0.8, "pipeline.from_pretrained("},
      {either, 0.76, "stable diffusion|stable-diffusion|sdxl|flux.1|diffusers|文生图|画像生成"}},
     {{"low-vram",
       "pipe.enable_model_cpu_offload() instead of pipe.to(\"cuda\"); pipe.vae.enable_slicing(), "
       "pipe.vae.enable_tiling()",
       {},
       System::unknown,
       "enable_model_cpu_offload|enable_sequential_cpu_offload"},
      {"low-vram",
       "pipe.enable_sequential_cpu_offload() (slower, least memory); pipe.vae.enable_tiling()",
       {},
       System::unknown,
       "enable_sequential_cpu_offload"},
      {"half-inference",
       "from_pretrained(..., torch_dtype=torch.float16)",
       {},
       System::unknown,
       "torch.float16|torch.bfloat16"},
      {"input-size", "a lower resolution, fewer frames, one image at a time"},
      {"flash-attention", "pipe.enable_attention_slicing() where torch < 2 and xformers is absent"}}},
    {"attention_scores_of_an_image",
     "the request is as large as the attention scores of Stable Diffusion's UNet over the whole image",
     unknown_on_device,
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
