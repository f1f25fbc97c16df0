// Changes to a program's code or around it: the same text for every system.
#include "doctor/remedies/option_tables.h"

namespace headroom::doctor {
namespace {

using enum System;
using enum OptionLine::Form;

constexpr OptionLine kLines[] = {
    {"input-size", pytorch_script, text,
     "smaller inputs: a lower resolution, crop or resize images and volumes (half a side: a quarter, an eighth), "
     "shorter texts"},
    {"find-sample", pytorch_script, text,
     "print the shapes of the batch before each step: look for one far above the rest"},
    {"detach-history", pytorch_script, text, "total += loss.item(); keep outputs with .detach().cpu()"},
    {"map-location", pytorch_script, text,
     "state = torch.load(path, map_location=\"cpu\"); model.load_state_dict(state); del state"},
    {"save-adapter", pytorch_script, text, "model.save_pretrained(folder) of the PEFT model: adapters only"},
    {"plain-init", pytorch_script, text, "zero3_init_flag: false"},
    {"no-offload", pytorch_script, text,
     "\"offload_optimizer\": none, \"offload_param\": none; ZeRO stage 2 where it fits"},
    {"more-swap", pytorch_script, text,
     "sudo fallocate -l 64G /swapfile; sudo mkswap /swapfile; sudo swapon /swapfile"},
    {"low-vram", pytorch_script, text,
     "pipe.enable_model_cpu_offload(); pipe.enable_attention_slicing(); pipe.enable_vae_tiling()"},
    {"no-sysmem-fallback", pytorch_script, text,
     "NVIDIA Control Panel > CUDA - Sysmem Fallback Policy: Prefer No Sysmem Fallback"},
    {"on-cpu", pytorch_script, text, "run on the CPU: device=\"cpu\" (CUDA_VISIBLE_DEVICES=\"\")"},
    {"fewer-images", pytorch_script, text, "fewer or smaller images per request"},
    {"fewer-images", vllm, text, "--limit-mm-per-prompt '{\"image\": 1, \"video\": 0}'"},
};

}  // namespace

std::span<const OptionLine> script_options() { return kLines; }

}  // namespace headroom::doctor
