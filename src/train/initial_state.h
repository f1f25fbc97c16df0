// The initial weights and optimizer states of a run.
#pragma once

#include <cstdint>
#include <span>

#include "models/model_spec.h"
#include "runtime/executor.h"
#include "train/options.h"
#include "train/resume_point.h"
#include "train/run_events.h"

namespace headroom {

// Weights from the model's files, `missing` ones and adapters initialised from the options' seed, or those of the
// adapter that is trained further; states zero; then runs "load". Throws Error as read_weights() and load_adapter().
void fill_fresh(Executor& executor, const ModelFiles& model, const TrainOptions& options,
                std::span<const WeightInfo> missing);

// The same with every weight random and codes zero, for a run that is only measured. Needs no files.
void fill_drawn(Executor& executor, const ModelSpec& spec, uint64_t seed);

// Weights and states of the checkpoint, and in notes the differences from the run that wrote it. `data_key`: of the
// training data. Throws Error(format).
void fill_from_checkpoint(Executor& executor, const ModelFiles& model, const TrainOptions& options,
                          const ResumePoint& from, uint64_t data_key, int64_t total_steps, const TrainEvents& events);

}  // namespace headroom
