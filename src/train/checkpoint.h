// Checkpoints: weights and optimizer states by name, and the state of the run; independent of plan, budget and device.
// docs/checkpoint_format.md.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "models/model_spec.h"
#include "runtime/executor.h"
#include "train/loss_scaler.h"
#include "train/options.h"
#include "weights/model_files.h"

namespace headroom {

// state.json.
struct RunState {
  int64_t step = 0;         // optimizer steps done
  int64_t next_sample = 0;  // global sample index of the next step's first sequence
  uint64_t seed = 0;
  std::map<std::string, std::string> techniques;  // Choices::pins, for a resumed run to choose again
  uint64_t data_key = 0;                          // of the token cache
  double best_eval_loss = 0;                      // 0 = none yet
  int64_t best_step = 0;                          // at which it was found; 0 = none yet
  int64_t evals_since_best = 0;
  LossScaleState scaling;  // for fp16
  bool scaled = false;     // whether the run scaled its loss
  std::string options;     // the options that shape the run, a line each: "learning-rate=1e-4"
};

std::string state_json(const RunState& state);
// Throws Error(format).
RunState read_state(const std::filesystem::path& checkpoint);

// The options recorded in a checkpoint.
std::string options_text(const TrainOptions& options);
// Names of the options that differ between two such texts.
std::vector<std::string> changed_options(const std::string& before, const std::string& now);

// Writes O/checkpoint-STEP atomically and removes the oldest beyond --save-total-limit; with --load-best-model-at-end
// the best one is also kept. Throws Error(run) on I/O errors; the older checkpoints then remain.
void save_checkpoint(Executor& executor, const ModelFiles& model, const RunState& state, const TrainOptions& options);

// The newest complete checkpoint of an output directory.
std::optional<std::filesystem::path> newest_checkpoint(const std::filesystem::path& output_dir);

// Fills weights and optimizer states from a checkpoint. Throws Error(format).
// With adapters the base weights come from the model.
void load_checkpoint(Executor& executor, const ModelFiles& model, const LoraOptions& lora,
                     const std::filesystem::path& checkpoint);

// Fills only the weights, without states.
void load_weights_of_checkpoint(Executor& executor, const ModelFiles& model, const LoraOptions& lora,
                                const std::filesystem::path& checkpoint);

}  // namespace headroom
