// Merges adapters into their weights: V = W + alpha / r (B A). With DoRA (Liu et al. 2024) each row of V is then scaled
// to the length in the adapter's magnitude.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "engine/work_progress.h"

namespace headroom {

struct MergeOptions {
  std::filesystem::path model;       // the base model's directory
  std::filesystem::path adapter;     // of headroom or PEFT: adapter_config.json, adapter_model.safetensors
  std::filesystem::path output_dir;  // fresh
  std::string save_dtype = "float32";
  int64_t memory = 0;  // bytes that the process may use; 0: no limit
};

// A quantized base is decoded. Writes a model in HF layout, tensor by tensor in pieces of at most 1 MiB: besides one
// adapter pair in fp32 (for experts, B for all of one projection) nothing is held, whatever the model's size. The sum
// is computed in fp32 and rounded once. Throws Error(usage) for missing paths and adapters that are not LoRA,
// Error(format) for files that do not belong together, Error(does_not_fit) if options.memory is below what these files
// need, Error(run) on I/O errors; a partial output is removed. `progress`: in tensors that are written.
void merge_adapter(const MergeOptions& options, const WorkProgress& progress = {});

}  // namespace headroom
