// Training: the phases of a step, each with its terms; the largest is the peak.
#pragma once

#include "doctor/model/estimate.h"
#include "doctor/model/fitted_constants.h"

namespace headroom::doctor {

Estimate estimate_training(const Job& job, const ModelShape& shape, const std::optional<Gpu>& gpu,
                           const Software& software, const FittedConstants& fitted = {});
// Serving with a KV cache of the server's own.
Estimate estimate_serving(const Job& job, const ModelShape& shape, const std::optional<Gpu>& gpu,
                          const Software& software);
// Seconds of one optimizer step on `gpu`, 0 when it cannot be told.
double training_step_seconds(const Job& job, const ModelShape& shape, const std::optional<Gpu>& gpu,
                             const Software& software);

// An int64_t from a sum in double, clamped to what fits.
int64_t whole_bytes(double bytes);
// Drops empty terms, sorts by size, and makes the terms sum to likely_bytes.
void finish_terms(Estimate& estimate);

}  // namespace headroom::doctor
