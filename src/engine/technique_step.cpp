#include "engine/technique_step.h"

#include <fmt/format.h>

#include "passes/precisions.h"
#include "planner/pipeline.h"

namespace headroom {
namespace {

constexpr TechniqueStep kSteps[] = {{"fused-optimizer", "on"},
                                    {"recompute", "on"},
                                    {"offload-optimizer", "on"},
                                    {"offload-gradients", "on"},
                                    {"offload-activations", "on"},
                                    {"offload-parameters", "on"},
                                    {"micro-batch", "1"},
                                    {"chunked-loss", "256"},
                                    {"sequence-chunks", "4"},
                                    {"bf16-mixed", "on"},
                                    {"bf16-true", "on"},
                                    {"compress-activations", "int8"},
                                    {"optim", "8-bit"},
                                    {"lora", "16"},
                                    {"quantize-training", "int8"},
                                    {"qat", "int8-int4"},
                                    {"quantize-weights", "nf4"}};

}  // namespace

std::span<const TechniqueStep> technique_steps() { return kSteps; }

TechniqueKind TechniqueStep::kind() const {
  return is_optimizer() ? TechniqueKind::lossy : find_technique(name)->info->kind;
}

namespace {

// Null for a technique that is not a precision.
const Precision* precision_named(std::string_view technique) {
  for (const Precision& precision : kPrecisions)
    if (precision.technique->name == technique) return &precision;
  return nullptr;
}

}  // namespace

bool TechniqueStep::is_precision() const { return precision_named(name) != nullptr; }

bool TechniqueStep::is_optimizer() const { return name == "optim"; }

bool TechniqueStep::says_more(const TrainOptions& options) const {
  if (name == "lora") return options.techniques.lora.rank == 0;
  if (is_precision()) return options.techniques.precision == "32-true";
  if (is_optimizer()) return !optimizer_in_8_bits(options.optimizer).empty();
  if (name == "quantize-weights")  // for a base with adapters
    return options.techniques.lora.rank > 0 && !options.techniques.pins.contains(std::string(name));
  return name != "micro-batch" || options.data.global_batch_size > 1;
}

std::pair<std::string, std::string> TechniqueStep::option(const TrainOptions& before) const {
  if (name == "lora") return {"lora-r", std::string(setting)};
  if (is_precision()) return {"precision", std::string(precision_named(name)->word)};
  if (is_optimizer()) return {"optim", std::string(optimizer_in_8_bits(before.optimizer))};
  if (name == "micro-batch") return {"micro-batch-size", std::string(setting)};
  return {"technique", fmt::format("{}={}", name, setting)};
}

void TechniqueStep::take(TrainOptions& options) const {
  const std::string value(setting);
  if (name == "lora")
    options.techniques.lora.rank = std::stoll(value);
  else if (is_precision())
    options.techniques.precision = precision_named(name)->word;
  else if (is_optimizer())
    options.optimizer.optim = optimizer_in_8_bits(options.optimizer);
  else if (name == "micro-batch")
    options.data.micro_batch_size = std::stoll(value);
  else
    options.techniques.pins[std::string(name)] = value;
}

}  // namespace headroom
