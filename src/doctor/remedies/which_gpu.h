// Which GPUs would do: the other question that an estimate answers.
#pragma once

#include <vector>

#include "doctor/remedies/remedy.h"

namespace headroom::doctor {

struct GpuChoice {
  Gpu gpu;
  int64_t count = 1;  // with the job sharded over them where more than one
  int64_t need_bytes = 0;
  bool fits = false;
  std::string note;  // "no bf16 units", "no flash-attention"
};

// Every known GPU for one job: by memory, the smallest first; where one of a kind is too small, the least number up to
// 8 that fits with the job sharded over them. Training jobs only are sharded; servers are split by tensors.
std::vector<GpuChoice> rank_gpus(const Job& job, const ModelShape& shape, const Estimator& estimator);

}  // namespace headroom::doctor
