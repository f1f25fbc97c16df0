// What a run saves: checkpoints, each step once, and the final model.
#pragma once

#include <filesystem>

#include "runtime/executor.h"
#include "train/checkpoint.h"
#include "train/options.h"
#include "train/run_events.h"
#include "train/run_log.h"

namespace headroom {

class RunSaver {
 public:
  // What is given by reference outlives it.
  RunSaver(const TrainOptions& options, const ModelFiles& model, Executor& executor, const TrainEvents& events,
           RunLog& log);

  // Checkpoint of the executor's tensors as they are after state.step; nothing where it is saved. Throws Error(run) on
  // I/O errors.
  void checkpoint(const RunState& state);
  // Whether the best model so far, where the state knows one, was kept.
  bool has_best(const RunState& state) const;
  // Fills the weights with those of the best step, where that is not the last.
  void load_best(const RunState& state);
  // The model, or the adapter, into the output directory. Throws as checkpoint().
  void final_model();

 private:
  std::filesystem::path checkpoint_of(int64_t step) const;

  const TrainOptions& options_;
  const ModelFiles& model_;
  Executor& executor_;
  const TrainEvents& events_;
  RunLog& log_;
  int64_t saved_at_ = -1;
};

}  // namespace headroom
