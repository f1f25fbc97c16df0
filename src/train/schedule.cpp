#include "train/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "optim/optimizer.h"

namespace headroom {

double learning_rate_at(const ScheduleOptions& options, int64_t step, int64_t total) {
  const double done = static_cast<double>(step - 1), warmup = static_cast<double>(options.warmup_steps);
  if (done < warmup) return options.learning_rate * done / std::max(1.0, warmup);
  const double progress = (done - warmup) / std::max(1.0, static_cast<double>(total) - warmup);
  double factor = 1;
  if (options.lr_scheduler_type == "linear") factor = std::max(0.0, 1 - progress);
  if (options.lr_scheduler_type == "cosine") factor = std::max(0.0, 0.5 * (1 + std::cos(std::numbers::pi * progress)));
  return options.min_lr + (options.learning_rate - options.min_lr) * factor;
}

StepScalars step_scalars(const TrainOptions& options, const OptimizerSettings& settings, double rate, int64_t step,
                         int64_t targets, const LossScaleState& scaling) {
  const Optimizer& optimizer = find_optimizer(settings.optimizer());
  StepScalars scalars(optimizer.scalars());
  scalars.set("learning_rate", rate);
  scalars.set("weight_decay", options.optimizer.weight_decay);
  scalars.set("loss_scale", targets > 0 ? scaling.scale / static_cast<double>(targets) : 0.0);
  scalars.set("unscale", 1 / scaling.scale);
  scalars.set("max_grad_norm", options.techniques.max_grad_norm);
  scalars.set_key(options.seed, static_cast<uint32_t>(step));
  optimizer.fill(settings, step - scaling.skipped, scalars);
  return scalars;
}

}  // namespace headroom
