// The options of `train` and `plan`, one struct per topic. Members are named like their options; `headroom train
// --help` has their meanings.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "optim/optimizer.h"
#include "train/technique_options.h"

namespace headroom {

struct ModelOptions {
  std::filesystem::path path;      // directory, or a bare config.json for `plan`
  std::string dropout = "config";  // as config.json says, or off
  std::filesystem::path adapter;   // a LoRA adapter to train further; empty: none
};

// The rows and how they become batches.
struct BatchOptions {
  std::vector<std::filesystem::path> train;
  int64_t max_seq_length = 0;  // 0 = min(model, 512)
  int64_t global_batch_size = 8;
  int64_t micro_batch_size = 0;   // 0 = the planner's choice
  double mlm_probability = 0.15;  // for masked models: share of the tokens that are targets
  bool shuffle = true;
};

struct EvaluationOptions {
  std::vector<std::string> data;  // FILE or NAME=FILE (train/run_data.h)
  int64_t eval_steps = 0;         // 0 = at each save
  int64_t eval_max_batches = 0;   // of global-batch-size sequences; 0 = all
  int64_t early_stopping_patience = 0;
  bool load_best_model_at_end = false;
};

struct ScheduleOptions {
  int64_t max_steps = 0;  // 0 = by epochs
  double num_train_epochs = 3;
  double learning_rate = 5e-5;
  std::string lr_scheduler_type = "linear";
  int64_t warmup_steps = 0;
  double min_lr = 0;
};

struct OptimizerOptions {
  std::string optim = "adamw";
  std::string optim_args;  // "k=v,k=v": the optimizer's other settings
  double weight_decay = 0;
  double adam_beta1 = 0.9;
  double adam_beta2 = 0.999;
  double adam_epsilon = 1e-8;
  std::string on_nan = "stop";
};

struct SavingOptions {
  std::filesystem::path output_dir;
  int64_t save_steps = 0;  // 0 = at the end only
  int64_t save_total_limit = 3;
  std::string save_dtype;              // "" = the master precision
  std::string resume_from_checkpoint;  // "", "true", or a directory
};

struct ReportingOptions {
  int64_t logging_steps = 1;
  std::string report_to = "none";  // or tensorboard
};

// Budgets, and their device.
struct MachineOptions {
  int64_t memory = 0;       // bytes
  int64_t host_memory = 0;  // bytes of host memory, with a device that has its own; 0 = keep nothing there
  std::filesystem::path disk_directory;
  int64_t disk_memory = 0;  // bytes of a file in disk_directory; 0 = keep nothing there
  bool force = false;
  std::string device = "cpu";
  int threads = 0;  // 0 = those of a named profile, else the machine's
  std::string profile;
  bool runs_here = false;    // on the CPU: avoid instructions that a named profile has and this machine lacks
  int64_t caller_bytes = 0;  // held by the program around the engine: a part of the budgets
};

struct TrainOptions {
  ModelOptions model;
  BatchOptions data;
  EvaluationOptions evaluation;
  ScheduleOptions schedule;
  OptimizerOptions optimizer;
  SavingOptions saving;
  ReportingOptions reporting;
  MachineOptions machine;
  TechniqueOptions techniques;
  uint64_t seed = 42;  // of shuffling, dropout, masks, and random weights
};

// The dtype of the final model: --save-dtype, by default the master precision.
std::string saved_dtype(const SavingOptions& saving, const TechniqueOptions& techniques);

// The optimizer and its settings. Throws Error(usage) for an unknown name or argument.
OptimizerSettings optimizer_settings(const OptimizerOptions& options);
// The optimizer with the same rule and 8-bit states; empty if there is none. Throws as above.
std::string_view optimizer_in_8_bits(const OptimizerOptions& options);

// Check ranges and words that need no file: of one struct, and of a run. Throw Error(usage) naming option, value and
// remedy.
void check_options(const BatchOptions& options);
void check_options(const MachineOptions& options);
void check_options(const TrainOptions& options);

}  // namespace headroom
