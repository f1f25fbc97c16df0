// kohya's training scripts: each has options of its own, by what it trains and of which model.
#include "doctor/remedies/situations/conditions.h"
#include "doctor/remedies/situations/situation.h"

namespace headroom::doctor {
namespace {

using enum Sign::In;

enum class Model { sd1, sdxl, large };  // large: FLUX, SD3
Model model_of(const CaseView& view) {
  if (view.says("flux_train|sd3_train|flux1|flux.1|flux-dev|networks.lora_flux|sd3.5|fluxgym")) return Model::large;
  return view.says("sdxl_train|sdxl|sd_xl|stable-diffusion-xl|illustrious|pony") ? Model::sdxl : Model::sd1;
}
// Small added matrices, unless the script is one that trains the whole model.
bool trains_all(const CaseView& view) {
  return view.says("train_db.py|fine_tune.py|sdxl_train.py|flux_train.py|sd3_train.py") &&
         !view.says("train_network.py|--network_module|network_module =");
}
bool adapters_of(const CaseView& view, Model model) {
  return on_device(view) && !trains_all(view) && model_of(view) == model;
}
bool all_of(const CaseView& view, Model model) {
  return on_device(view) && trains_all(view) && model_of(view) == model;
}
bool adapters_of_sd1(const CaseView& view) { return adapters_of(view, Model::sd1); }
bool adapters_of_sdxl(const CaseView& view) { return adapters_of(view, Model::sdxl); }
bool adapters_of_large(const CaseView& view) { return adapters_of(view, Model::large); }
bool all_of_sd1(const CaseView& view) { return all_of(view, Model::sd1); }
bool all_of_sdxl(const CaseView& view) { return all_of(view, Model::sdxl); }
bool all_of_large(const CaseView& view) { return all_of(view, Model::large); }

constexpr std::string_view kAdapters =
    "a diffusion model trains: what the UNet keeps for its backward pass, and Adam's states";
constexpr std::string_view kAll =
    "the whole diffusion model trains, not a LoRA: weights, gradients and Adam's states take 16 bytes per parameter";

constexpr Advice kCheckpoints = {"checkpointing",
                                 "--gradient_checkpointing --cache_latents --sdpa (or --xformers)",
                                 {},
                                 System::unknown,
                                 "gradient_checkpointing|--xformers|--sdpa|cache_latents"};
constexpr Advice kCheckpointsAlone = {
    "checkpointing", "--gradient_checkpointing", {}, System::unknown, "gradient_checkpointing"};
constexpr Advice kOneImage = {
    "micro-batch",
    "--train_batch_size 1",
    {},
    System::unknown,
    "train_batch_size=1 |train_batch_size 1 |train_batch_size=1\n|train_batch_size 1\n|train_batch_size = 1\n|"
    "train_batch_size=\"1\""};
constexpr Advice kEightBits = {
    "optimizer-8bit", "--optimizer_type AdamW8bit (or Adafactor)", {}, System::unknown, "8bit|adafactor"};
constexpr Advice kAttention = {
    "flash-attention", "--sdpa (or --xformers), --cache_latents", {}, System::unknown, "--sdpa|--xformers"};
constexpr Advice kSmaller = {"input-size", "--resolution 512"};

constexpr Situation kSituations[] = {
    {"diffusion_training_by_kohya",
     kAdapters,
     adapters_of_sd1,
     {{either, 0.87, kKohyaScripts}},
     {kCheckpoints,
      kCheckpointsAlone,
      kOneImage,
      kEightBits,
      kAttention,
      {"low-vram", "--network_train_unet_only: nothing of the text encoder", {}, System::unknown, "train_unet_only"},
      kSmaller}},
    {"diffusion_training_of_sdxl_by_kohya",
     kAdapters,
     adapters_of_sdxl,
     {{either, 0.87, "sdxl_train_network.py|train_network.py|kohya|sd-scripts|--network_module"}},
     {kCheckpoints,
      kCheckpointsAlone,
      kOneImage,
      kEightBits,
      {"low-vram",
       "--network_train_unet_only --cache_text_encoder_outputs, --fp8_base",
       {},
       System::unknown,
       "cache_text_encoder_outputs"},
      kAttention,
      kSmaller}},
    {"diffusion_training_of_flux_by_kohya",
     kAdapters,
     adapters_of_large,
     {{either, 0.87,
       "flux_train_network.py|sd3_train_network.py|train_network.py|fluxgym|kohya|sd-scripts|--network_module"}},
     {kCheckpoints,
      kCheckpointsAlone,
      {"low-vram",
       "--blocks_to_swap 18 --cache_text_encoder_outputs (and --fp8_base)",
       {},
       System::unknown,
       "blocks_to_swap"},
      kOneImage,
      kEightBits,
      kSmaller}},
    {"diffusion_training_of_all_by_kohya",
     kAll,
     all_of_sd1,
     {{either, 0.88, "train_db.py|fine_tune.py"}},
     {kCheckpoints,
      kCheckpointsAlone,
      kEightBits,
      {"lora",
       "train_network.py --network_module networks.lora instead: a LoRA trains small added matrices, and fits 8 GB"},
      kOneImage,
      {"freeze",
       "the UNet alone: --stop_text_encoder_training -1 (train_db.py), no --train_text_encoder (fine_tune.py)"},
      kSmaller}},
    {"diffusion_training_of_all_of_sdxl_by_kohya",
     kAll,
     all_of_sdxl,
     {{either, 0.88, "sdxl_train.py"}},
     {kCheckpoints,
      kCheckpointsAlone,
      {"adafactor", "--optimizer_type Adafactor --fused_backward_pass", {}, System::unknown, "fused_backward_pass"},
      {"lora", "sdxl_train_network.py --network_module networks.lora instead: small added matrices only"},
      {"half-weights", "--full_bf16 --mixed_precision bf16", {}, System::unknown, "full_bf16"},
      kOneImage,
      kSmaller}},
    {"diffusion_training_of_all_of_flux_by_kohya",
     kAll,
     all_of_large,
     {{either, 0.88, "flux_train.py|sd3_train.py"}},
     {{"low-vram", "--blocks_to_swap 18 --cache_text_encoder_outputs", {}, System::unknown, "blocks_to_swap"},
      {"adafactor", "--optimizer_type Adafactor --fused_backward_pass", {}, System::unknown, "fused_backward_pass"},
      {"lora", "flux_train_network.py --network_module networks.lora_flux instead: small added matrices only"},
      kCheckpointsAlone,
      kOneImage}},
};

}  // namespace

std::span<const Situation> kohya_situations() { return kSituations; }

}  // namespace headroom::doctor
