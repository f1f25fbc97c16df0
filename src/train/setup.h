// From options and model files to a planning request: shared by `plan`, `train`, `evaluate` and `generate`.
#pragma once

#include <filesystem>

#include "formats/hf_config.h"
#include "models/model_spec.h"
#include "planner/request.h"
#include "train/options.h"

namespace headroom {

// A model as files: its directory (empty for a bare config.json), config and spec.
struct ModelFiles {
  std::filesystem::path directory;
  HfConfig config;
  ModelSpec spec;
};

// Reads config.json of a directory, or a bare config.json. Throws Error(usage) for a missing path (a Hub id gets the
// remedy), Error(format) for what is inside.
ModelFiles open_model(const std::filesystem::path& model);

// Refuses quantised checkpoints by name.
void refuse_quantized(const ModelFiles& model, std::string_view purpose);

// Parts of the process outside the arena that do not depend on the plan (page tables are added by the planner).
// `tokenizer_stays` when the tokenizer is held while the arena is (generation).
ProcessBytes process_parts(const ModelFiles& model, const DeviceFacts& facts, bool tokenizer_stays);

// Books `process` where it lies: beside the arena on the CPU; on the host, and the device's context beside the arena,
// for a device with its own memory. The request has its facts and profile.
void book_process(PlanRequest& request, const ProcessBytes& process);

// The device facts and profile for the options; `threads` 0 = available_threads().
DeviceFacts device_facts(const std::string& device, int threads, Profile& profile,
                         const std::string& requested_profile);

// The request of a training run. Throws Error(usage | format).
PlanRequest training_request(const TrainOptions& options, const ModelFiles& model);

// The sequence length of a run: the option, else min(model, 512). Throws Error(usage) when the model is shorter.
int64_t sequence_length(const TrainOptions& options, const ModelSpec& spec);

}  // namespace headroom
