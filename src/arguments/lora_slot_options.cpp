#include "arguments/lora_slot_options.h"

#include "arguments/option.h"

namespace headroom {

void add_lora_slot_options(CLI::App& app, LoraSlotOptions& options, std::vector<std::string>& modules) {
  constexpr const char* kGroup = "Adapters for requests";
  app.add_option("--lora-modules", modules, "LoRA adapters that requests select as their model: NAME=DIR ...")
      ->group(kGroup);
  app.add_flag("--enable-lora", options.enabled, "plan slots for adapters loaded later")->group(kGroup);
  scalar(app, "--max-loras", options.max_loras,
         "slots: adapters loaded at once (default: as many as --lora-modules names, or 1)")
      ->group(kGroup);
  scalar(app, "--max-lora-rank", options.max_rank,
         "largest rank of an adapter (default: that of --lora-modules, or 16)")
      ->group(kGroup);
  if (app.get_option_no_throw("--lora-target-modules")) return;
  app.add_option("--lora-target-modules", options.targets,
                 "modules that have slots: q_proj v_proj ... (default: those of --lora-modules, or all-linear)")
      ->group(kGroup);
}

}  // namespace headroom
