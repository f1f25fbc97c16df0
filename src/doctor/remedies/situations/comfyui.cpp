// ComfyUI, and programs that run it: nodes and command-line options of its own.
#include <fmt/format.h>

#include "doctor/remedies/situations/conditions.h"
#include "doctor/remedies/situations/situation.h"

namespace headroom::doctor {
namespace {

using enum Sign::In;

bool in_comfyui(const CaseView& view) { return view.pool() == Pool::device && by_comfyui(view); }

// "OOM before VAE decode"; a node's name is VAEDecode.
Evidence decodes_beside_the_model(const CaseView& view) {
  const std::string_view decode =
      view.log_says("vae decod|vaedecode|decode the latent|before the decode|decoding the video");
  return decode.empty() ? Evidence{} : Evidence{0.94, fmt::format("`{}` in the log", decode)};
}
// A file that has few bits already.
Evidence few_bits_in_use(const CaseView& view) {
  const std::string_view bits = view.log_says("fp8|q8_0|q6_k|q5_k|q4_k|gguf|nf4|nunchaku|svdq");
  return bits.empty() ? Evidence{} : Evidence{0.9, fmt::format("`{}` in the log", bits)};
}

constexpr std::string_view kLower =
    "--lowvram (least: --novram) where ComfyUI is started; --reserve-vram 1 leaves room to others";

constexpr Situation kSituations[] = {
    {"decode_beside_the_sampler",
     "the model that sampled is still on the device when the VAE decodes: where another run works, it was moved off "
     "between",
     in_comfyui,
     {},
     {{"low-vram",
       "the models off the device before the decode: a node that unloads them (UnloadAllModels) between sampler and "
       "VAE Decode, or --disable-smart-memory"},
      {"input-size", "VAE Decode (Tiled) with smaller tiles: tile_size 256, temporal_size 16, or fewer frames"},
      {"half-inference", "--bf16-vae or --fp16-vae", {}, System::unknown, "-vae"}},
     decodes_beside_the_model},
    {"few_bits_in_comfyui",
     "the model's file has few bits already: text encoder, VAE and what else is on the device stand beside it",
     in_comfyui,
     {},
     {{"low-vram", kLower, {}, System::unknown, "--lowvram|--novram"},
      {"quantized-model", "a smaller file: GGUF Q5_K_S or Q4_K_S; the text encoder in fp8 (t5xxl_fp8)"},
      {"other-version",
       "ComfyUI, its nodes and its PyTorch updated (git pull, or the portable's update folder): newer ones move more "
       "off by themselves"},
      {"input-size", "a lower resolution, fewer frames, one image at a time"}},
     few_bits_in_use},
    {"models_in_comfyui",
     "ComfyUI keeps what it used last on the device, as far as it sees room: model, text encoder and VAE",
     in_comfyui,
     {{either, 0.84, kComfyUi}},
     {{"low-vram", kLower, {}, System::unknown, "--lowvram|--novram"},
      {"input-size", "a lower resolution and fewer frames, a batch of 1; decode in tiles (VAE Decode (Tiled))"},
      {"quantized-model", "an fp8, NF4 or GGUF model where it is a large one (FLUX, Wan, Qwen-Image)"}}},
};

}  // namespace

bool by_comfyui(const CaseView& view) {
  constexpr std::string_view kOthers = "invokeai|a1111|automatic1111|stable-diffusion-webui|fooocus|swarmui|sd-webui";
  return view.says(kComfyUi) && view.log_says(kOthers).empty();
}

std::span<const Situation> comfyui_situations() { return kSituations; }

}  // namespace headroom::doctor
