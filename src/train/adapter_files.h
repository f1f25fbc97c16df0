// A directory with a LoRA adapter as PEFT or headroom wrote it: adapter_config.json, adapter_model.safetensors.
#pragma once

#include <filesystem>
#include <string>

#include "formats/safetensors.h"
#include "models/model_spec.h"
#include "planner/request.h"

namespace headroom {

struct AdapterFiles {
  SafetensorsFile tensors;
  int64_t rank = 0;
  double alpha = 0;
  bool rank_stabilised = false;
  std::string base;  // base_model_name_or_path, "" when it is not said

  // What B A counts.
  double factor() const;
};

// The prefix of every tensor's name in an adapter's file.
inline constexpr std::string_view kAdapterPrefix = "base_model.model.";

// Reads config and header. Throws Error(usage) for missing files, Error(format) for an adapter that is not LoRA, and by
// name for what this version does not compute: DoRA, trained biases, ranks or alphas per module, embeddings'
// adapters and further initialisations that change the base.
AdapterFiles open_adapter(const std::filesystem::path& directory);

// Whether a model directory is an adapter: it has adapter_config.json and no config.json.
bool is_adapter_directory(const std::filesystem::path& directory);

// The base model's directory of an adapter: its base_model_name_or_path, as it is or beside the adapter. Throws
// Error(usage) when there is none.
std::filesystem::path base_of_adapter(const std::filesystem::path& directory);

// The options that make a graph with exactly the adapter's matrices. Throws Error(format) naming a tensor that belongs
// to no weight of the model, or has another shape than the model's weights ask for.
LoraOptions lora_options(const AdapterFiles& adapter, const ModelSpec& spec);

}  // namespace headroom
