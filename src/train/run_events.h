// Events of a training run, and requests to it.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "plan/plan.h"
#include "weights/evaluation.h"

namespace headroom {

struct StepReport {
  int64_t step = 0;
  int64_t total_steps = 0;
  double loss = 0;
  double grad_norm = 0;
  double learning_rate = 0;
  int64_t tokens = 0;
  double seconds = 0;
  int64_t resident_bytes = 0;        // of the process, after the step
  std::optional<double> accuracy;    // share of targets with the largest logit; for classes and masked tokens
  std::optional<double> loss_scale;  // of the step's gradients; for fp16
  bool skipped = false;              // by the loss scale: a gradient was not finite, and nothing was updated
  int64_t samples = 0;               // for models that classify, else 0

  double per_second(int64_t count) const { return seconds > 0 ? static_cast<double>(count) / seconds : 0; }
};

// All optional. Called on the training thread.
struct TrainEvents {
  std::function<void(const Plan&)> planned;
  std::function<void(const std::string&)> note;  // a line for people
  std::function<void(const StepReport&)> step;
  // `set` is empty for the mean over all sets.
  std::function<void(int64_t step, const std::string& set, const EvaluationResult& result)> evaluated;
  std::function<void(int64_t step, const std::string& directory)> saved;

  // A note; nothing for an empty one.
  void say(const std::string& text) const {
    if (note && !text.empty()) note(text);
  }
};

// Set by signal handlers or other threads, read between steps.
struct RunControl {
  std::atomic<int> stop_signal{0};    // SIGINT or SIGTERM: save and end
  std::atomic<bool> save_now{false};  // SIGUSR1
};

}  // namespace headroom
