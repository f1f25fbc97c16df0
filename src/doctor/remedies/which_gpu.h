// Which GPUs would be enough for a job.
#pragma once

#include <vector>

#include "doctor/remedies/remedy.h"

namespace headroom::doctor {

struct GpuChoice {
  Gpu gpu;
  int64_t count = 1;  // if more than one, the job is sharded over them
  int64_t need_bytes = 0;
  bool fits = false;
  std::string note;  // "no bf16 units", "no flash-attention"
};

// All known GPUs for one job, the smallest memory first. If one of a kind is too small, the least number up to 8 that
// fits with the job sharded over them. Only training jobs are sharded; servers use tensor parallelism.
std::vector<GpuChoice> rank_gpus(const Job& job, const ModelShape& shape, const Estimator& estimator);

}  // namespace headroom::doctor
