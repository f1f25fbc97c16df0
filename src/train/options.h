// The options of `train` and `plan`, as cli.md names them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "planner/request.h"

namespace headroom {

struct TrainOptions {
  std::filesystem::path model;  // directory, or a bare config.json for `plan`
  std::vector<std::filesystem::path> data;
  std::vector<std::string> eval_data;  // FILE or NAME=FILE (train/run_data.h)
  std::filesystem::path output_dir;
  int64_t eval_steps = 0;        // 0 = at each save
  int64_t eval_max_batches = 0;  // of global-batch-size sequences; 0 = all
  int64_t global_batch_size = 8;
  int64_t micro_batch_size = 0;  // 0 = the planner's choice
  int64_t max_seq_length = 0;    // 0 = min(model, 512)
  int64_t max_steps = 0;         // 0 = by epochs
  double num_train_epochs = 3;
  double learning_rate = 5e-5;
  std::string lr_scheduler_type = "linear";
  int64_t warmup_steps = 0;
  double min_lr = 0;
  double weight_decay = 0;
  std::string optim = "adamw";
  double adam_beta1 = 0.9;
  double adam_beta2 = 0.999;
  double adam_epsilon = 1e-8;
  std::string optim_args;  // "k=v,k=v": what else the optimizer has
  double max_grad_norm = 1.0;
  LoraOptions lora;
  std::vector<std::string> freeze;  // patterns of weights that are not trained
  std::string precision = "32-true";
  std::string matmul_precision = "highest";
  std::string dropout = "config";  // as config.json says, or off
  uint64_t seed = 42;
  bool shuffle = true;
  bool packing = false;            // several rows in a sequence
  bool group_by_length = false;    // batches of rows of similar length
  std::vector<std::string> allow;  // kinds or techniques that the planner may take unasked
  double mlm_probability = 0.15;   // of masked models: share of the tokens that are targets
  int64_t logging_steps = 1;
  int64_t save_steps = 0;  // 0 = at the end only
  int64_t save_total_limit = 3;
  std::string save_dtype;              // "" = the master precision
  std::string resume_from_checkpoint;  // "", "true", or a directory
  int64_t early_stopping_patience = 0;
  bool load_best_model_at_end = false;
  std::string on_nan = "stop";
  std::string report_to = "none";  // or tensorboard
  int64_t memory = 0;              // bytes
  int64_t host_memory = 0;         // bytes of the host's memory beside a device; 0 = keep nothing there
  std::filesystem::path disk_directory;
  int64_t disk_memory = 0;  // bytes of a file in disk_directory; 0 = keep nothing there
  std::string device = "cpu";
  int threads = 0;  // 0 = those of a named profile, else the machine's
  std::string profile;
  bool runs_here = false;  // on the CPU: what a named profile describes and this machine lacks is left out
  std::map<std::string, std::string> techniques;
  std::string arithmetic = "free";
  bool force = false;
  int64_t caller_bytes = 0;  // held by the program around the engine: a part of what the budgets hold
};

// The dtype that a run keeps its weights in: "float32" or "bfloat16".
std::string master_dtype(const TrainOptions& options);
// The dtype of the final model: --save-dtype, by default the master precision.
std::string saved_dtype(const TrainOptions& options);

// The optimizer and its settings. Throws Error(usage) for a name or an argument that there is not.
OptimizerSettings optimizer_settings(const TrainOptions& options);

// Checks ranges and words that need no file. Throws Error(usage) naming option, value and remedy.
void check_options(const TrainOptions& options);

}  // namespace headroom
