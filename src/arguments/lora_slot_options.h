// Options for serving several LoRA adapters at once, named as in vLLM.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "engine/adapter_slots.h"

namespace headroom {

// Adds --enable-lora, --max-loras, --max-lora-rank, --lora-modules, and --lora-target-modules if the app has none yet.
void add_lora_slot_options(CLI::App& app, LoraSlotOptions& options, std::vector<std::string>& modules);

}  // namespace headroom
