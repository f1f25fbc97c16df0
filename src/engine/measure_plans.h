// Runs the best plans of a training, to compare a step's time on this machine with the prediction.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "train/options.h"
#include "weights/model_files.h"

namespace headroom {

struct MeasuredPlan {
  double predicted_seconds = 0;
  double measured_seconds = 0;                 // of a step: the median of five
  int64_t peak_bytes = 0;                      // the plan's result as --memory
  std::map<std::string, std::string> choices;  // techniques in use, with their settings
  std::string command;                         // plans or runs it; empty: the caller fills it in
};

struct PlanMeasurements {
  std::vector<MeasuredPlan> plans;  // ordered by prediction, the fastest first
  size_t chosen = 0;                // the one measured fastest
};

// Runs the fastest plan in the options' budget and the two next ones that need less, five steps each after one that is
// not counted, on the options' device: weights and tokens are random, sequences have the full length, nothing is
// written. `note` gets a line before each. Throws as plan_training(), Error(does_not_fit) if no plan fits or the budget
// is above the machine, Error(usage) for the null device, Error(run) if the device fails.
PlanMeasurements measure_best_plans(TrainOptions options, const ModelFiles& model,
                                    const std::function<void(const std::string&)>& note = {});

// As `plan --measure --json` writes it.
std::string measurements_json(const PlanMeasurements& measured);
// A line per plan with its techniques below, for people.
std::string measurements_text(const PlanMeasurements& measured);

}  // namespace headroom
