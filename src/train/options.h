// The options of `train` and `plan`, one struct per topic. Members are named like their options; `headroom train
// --help` has their meanings.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "optim/optimizer.h"
#include "options/batch_options.h"
#include "options/machine_options.h"
#include "options/technique_options.h"

namespace headroom {

struct ModelOptions {
  std::filesystem::path path;      // directory, or a bare config.json for `plan`
  std::string dropout = "config";  // as config.json says, or off
  std::filesystem::path adapter;   // a LoRA adapter to train further; empty: none
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

// Checks ranges and words that need no file. Throws Error(usage) naming option, value and remedy.
void check_options(const TrainOptions& options);

}  // namespace headroom
