// LoRA adapters between the arena and PEFT's files: adapter_model.safetensors and adapter_config.json.
#pragma once

#include <filesystem>

#include "passes/lora.h"
#include "planner/request.h"
#include "runtime/executor.h"
#include "weights/model_files.h"

namespace headroom {

// Fresh adapters: A is uniform in +-1 / sqrt(in) (as in PEFT), from `seed` and the name by counter, whatever the number
// of threads; B is zero, so the model is unchanged at first. DoRA's magnitudes are the lengths of the weights' rows, by
// the program kStartMagnitudes: the weights have been read.
void init_adapter(Executor& executor, uint64_t seed);

// Writes adapter_model.safetensors (A, B, magnitudes and the modules to save in the plan's dtypes, under PEFT's names)
// and adapter_config.json into `directory`. Throws Error(run) on I/O errors.
void write_adapter(Executor& executor, const ModelFiles& model, const LoraOptions& options,
                   const std::filesystem::path& directory);

// Fills adapters and modules to save, in the plan's dtypes, from a directory that write_adapter() or PEFT wrote. Throws
// Error(usage) when it is missing, Error(format) for missing tensors or other shapes.
void load_adapter(Executor& executor, const LoraOptions& options, const std::filesystem::path& directory);

}  // namespace headroom
