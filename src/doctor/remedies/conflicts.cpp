#include "doctor/remedies/conflicts.h"

#include "doctor/remedies/changes.h"

namespace headroom::doctor {
namespace {

struct Conflict {
  std::string_view a, b;
  std::string_view why;
};
constexpr Conflict kConflicts[] = {
    {"expandable-segments", "max-split-size", "expandable segments are never split by size"},
    {"auto-batch", "shard", "automatic batch finders do not work under FSDP or DeepSpeed"},
    {"auto-batch", "shard-more", "automatic batch finders do not work under FSDP or DeepSpeed"},
    {"auto-batch", "offload-optimizer", "automatic batch finders do not work under DeepSpeed"},
    {"auto-batch", "offload-parameters", "automatic batch finders do not work under FSDP or DeepSpeed"},
    {"auto-batch", "offload-nvme", "automatic batch finders do not work under DeepSpeed"},
    {"auto-batch", "micro-batch", "one sets what the other looks for"},
    {"optimizer-8bit", "offload-optimizer", "DeepSpeed's CPU Adam keeps 32-bit states"},
    {"optimizer-8bit", "offload-parameters", "the offloaded update is a 32-bit one"},
    {"optimizer-8bit", "offload-nvme", "DeepSpeed's CPU Adam keeps 32-bit states"},
    {"paged-optimizer", "offload-optimizer", "both move the states to the host"},
    {"paged-optimizer", "offload-parameters", "both move the states to the host"},
    {"paged-optimizer", "offload-nvme", "both move the states away"},
    {"optimizer-in-backward", "micro-batch", "accumulated gradients must be kept"},
    {"optimizer-in-backward", "shard", "the sharded update runs after the backward pass"},
    {"optimizer-in-backward", "offload-optimizer", "both take the gradients away"},
    {"optimizer-in-backward", "offload-parameters", "both take the gradients away"},
    {"half-weights", "mixed-precision", "16-bit weights need no autocast"},
    {"lora", "qlora", "QLoRA is LoRA on a 4-bit base"},
    {"lora", "freeze", "LoRA freezes the base already"},
    {"qlora", "freeze", "QLoRA freezes the base already"},
    {"qlora", "half-weights", "the base is in 4 bits"},
    {"qlora", "offload-parameters", "4-bit weights cannot be offloaded"},
    {"qlora", "offload-nvme", "4-bit weights cannot be offloaded"},
    {"liger", "chunked-loss", "Liger's loss is chunked"},
    {"liger", "sequence-chunks", "both replace the loss"},
    {"no-grad", "checkpointing", "without gradients nothing is kept"},
    {"adafactor", "offload-optimizer", "DeepSpeed's offload brings its own CPU Adam"},
    {"sgd", "offload-optimizer", "DeepSpeed's offload brings its own CPU Adam"},
    {"adafactor", "offload-nvme", "DeepSpeed's offload brings its own CPU Adam"},
    {"sgd", "offload-nvme", "DeepSpeed's offload brings its own CPU Adam"},
    {"offload-optimizer", "offload-parameters", "the latter moves the states too"},
    {"offload-optimizer", "offload-nvme", "the latter moves the states too"},
    {"offload-parameters", "offload-nvme", "one place only"},
    {"int8-training", "half-weights", "the weights are in 8 bits"},
    {"int8-training", "lora", "LoRA does not train the base"},
    {"smaller-model", "larger-gpu", "either is enough"},
};

// Pairs that exclude each other only under sharding, where bitsandbytes' optimizers do not work with ZeRO.
bool sharding(const Remedy& remedy) { return remedy.name == "shard" || remedy.name == "shard-more"; }
bool bitsandbytes(const Remedy& remedy) { return remedy.name == "optimizer-8bit" || remedy.name == "paged-optimizer"; }
bool by_deepspeed(System system) {
  return system == System::deepspeed || system == System::neox || system == System::axolotl ||
         system == System::llamafactory;
}

bool adapters(const Remedy& remedy) { return remedy.name == "lora" || remedy.name == "qlora"; }

// Pairs that exclude each other in one system.
std::string_view conflict_in(const Remedy& a, const Remedy& b, System system) {
  if (system == System::trl && adapters(a) && b.name == "chunked-loss")
    return "TRL's chunked_nll is documented without PEFT adapters: use_liger_kernel does the same with them";
  if (system == System::litgpt && a.name == "qlora" && sharding(b)) return "LitGPT quantises on one device only";
  if (by_deepspeed(system) && sharding(a) && bitsandbytes(b)) return "8-bit and paged optimizers do not go with ZeRO";
  return {};
}

// With another GPU or model the other remedies are not needed.
bool alone(const Remedy& remedy) { return remedy.name == "larger-gpu" || remedy.name == "smaller-model"; }

}  // namespace

std::string_view conflict_of(const Remedy& a, const Remedy& b, System system) {
  if (a.name == b.name) return "the same remedy";
  if (alone(a) || alone(b)) return "it is enough by itself";
  for (const Conflict& conflict : kConflicts)
    if ((conflict.a == a.name && conflict.b == b.name) || (conflict.a == b.name && conflict.b == a.name))
      return conflict.why;
  for (const std::string_view why : {conflict_in(a, b, system), conflict_in(b, a, system)})
    if (!why.empty()) return why;
  if (clash(a.changes, b.changes)) return "both set the same option";
  return {};
}

}  // namespace headroom::doctor
