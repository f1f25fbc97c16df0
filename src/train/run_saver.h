// Saves checkpoints, each step once, and the final model.
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
  // References must outlive it.
  RunSaver(const TrainOptions& options, const ModelFiles& model, Executor& executor, const TrainEvents& events,
           RunLog& log);

  // Saves a checkpoint of the executor's tensors after state.step, unless it is saved already. Throws Error(run) on I/O
  // errors.
  void checkpoint(const RunState& state);
  // Whether the best model so far was kept, if the state has one.
  bool has_best(const RunState& state) const;
  // Restores the weights of the best step, if that is not the last.
  void load_best(const RunState& state);
  // Writes the model, or the adapter, to the output directory. Throws as checkpoint().
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
