// The training run: from a request and files to a trained model in the output directory.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "plan/plan.h"
#include "train/evaluation.h"
#include "train/options.h"
#include "train/setup.h"

namespace headroom {

struct StepReport {
  int64_t step = 0;
  int64_t total_steps = 0;
  double loss = 0;
  double grad_norm = 0;
  double learning_rate = 0;
  int64_t tokens = 0;
  double seconds = 0;
  int64_t resident_bytes = 0;      // of the process, after the step
  std::optional<double> accuracy;  // share of targets with the largest logit; of classes and masked tokens
  int64_t samples = 0;             // of models that classify, else 0

  double per_second(int64_t count) const { return seconds > 0 ? static_cast<double>(count) / seconds : 0; }
};

// What the run tells its watcher; all optional. Called on the training thread.
struct TrainEvents {
  std::function<void(const Plan&)> planned;
  std::function<void(const std::string&)> note;  // a line for people
  std::function<void(const StepReport&)> step;
  // `set` is empty for the mean over all sets.
  std::function<void(int64_t step, const std::string& set, const EvaluationResult& result)> evaluated;
  std::function<void(int64_t step, const std::string& directory)> saved;
};

// Set by signal handlers, read between steps.
struct RunControl {
  std::atomic<int> stop_signal{0};    // SIGINT or SIGTERM: save and end
  std::atomic<bool> save_now{false};  // SIGUSR1
};

struct TrainResult {
  Plan plan;  // infeasible: nothing was written
  int64_t steps = 0;
  int stopped_by = 0;  // the signal, or 0
};

// Plans, refuses before anything is written, tokenises, trains, evaluates, saves. Throws Error.
TrainResult train(const TrainOptions& options, const TrainEvents& events, RunControl& control);

}  // namespace headroom
