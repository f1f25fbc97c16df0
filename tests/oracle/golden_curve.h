// Losses and gradient norms of PyTorch, step by step, and the tolerances.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "training_run.h"

namespace headroom::test {

// Relative distances.
struct CurveTolerance {
  double loss = 1e-4;
  double grad_norm = 1e-3;
};

// The optimizer's options that a curve's file names.
inline TrainOptions with_optimizer_of(const Json& file, TrainOptions options) {
  options.schedule.learning_rate = file.at("learning_rate").get<double>();
  options.optimizer.weight_decay = file.at("weight_decay").get<double>();
  options.optimizer.adam_beta1 = file.at("adam_beta1").get<double>();
  options.optimizer.adam_beta2 = file.at("adam_beta2").get<double>();
  options.optimizer.adam_epsilon = file.at("adam_epsilon").get<double>();
  options.techniques.max_grad_norm = file.at("max_grad_norm").get<double>();
  return options;
}

// Compares one step with PyTorch's {step, loss, grad_norm}. Returns the loss's relative distance.
inline double expect_step(const Json& row, double found_loss, double found_norm, const CurveTolerance& tolerance = {}) {
  const double loss = row.at("loss").get<double>(), norm = row.at("grad_norm").get<double>();
  EXPECT_NEAR(found_loss, loss, tolerance.loss * loss) << "step " << row.at("step");
  EXPECT_NEAR(found_norm, norm, tolerance.grad_norm * norm) << "step " << row.at("step");
  return std::abs(found_loss / loss - 1);
}

// Takes a step for each of `rows`. Returns the largest relative distance of a loss.
inline double expect_curve(const Json& rows, TrainingRun& run, const CurveTolerance& tolerance = {}) {
  double worst = 0;
  for (const Json& row : rows) {
    const StepOutcome outcome = run.step();
    worst = std::max(worst, expect_step(row, outcome.loss, outcome.gradient_norm, tolerance));
  }
  return worst;
}

}  // namespace headroom::test
