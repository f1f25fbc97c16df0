// The estimate of training: the terms of each phase of a step. The largest phase is the peak.
#pragma once

#include "doctor/model/estimate.h"
#include "doctor/model/fitted_constants.h"

namespace headroom::doctor {

Estimate estimate_training(const Job& job, const ModelShape& shape, const std::optional<Gpu>& gpu,
                           const Software& software, const FittedConstants& fitted = {});
// The estimate of a server with its own KV cache.
Estimate estimate_serving(const Job& job, const ModelShape& shape, const std::optional<Gpu>& gpu,
                          const Software& software);
// Seconds of an optimizer step on `gpu`; 0 when unknown.
double training_step_seconds(const Job& job, const ModelShape& shape, const std::optional<Gpu>& gpu,
                             const Software& software);

// A sum in double as int64_t, clamped to its range.
int64_t whole_bytes(double bytes);
// Drops empty terms, sorts by size, and scales the terms to sum to likely_bytes.
void finish_terms(Estimate& estimate);

}  // namespace headroom::doctor
