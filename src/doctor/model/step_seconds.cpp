// Time of a step: matrix products at a usual fraction of the device's peak rate, optimizer states at its bandwidth.
#include <algorithm>

#include "doctor/model/settings.h"
#include "doctor/model/train_estimate.h"
#include "doctor/model/weight_memory.h"

namespace headroom::doctor {

double training_step_seconds(const Job& job, const ModelShape& shape, const std::optional<Gpu>& gpu,
                             const Software& software) {
  if (!gpu || gpu->flops_half <= 0) return 0;
  std::vector<std::string> ignored;
  const TrainSettings s = resolve_training(job, shape, gpu, software, ignored);
  const double tokens = s.batch * s.accumulation * s.sequence;
  const double products = 2 * (shape.active_parameters - shape.embedding_parameters / 2) * tokens;
  const double scores =
      4 * tokens * s.sequence * static_cast<double>(shape.heads * shape.head_dim) * static_cast<double>(shape.layers);
  // One forward, a backward twice as long (as long as a forward through frozen weights), and a forward for
  // recomputation.
  const double passes = (s.frozen() ? 2 : 3) + (s.checkpointing == Checkpointing::full ? 1 : 0);
  const bool half = s.compute_width < 4 && gpu->compute_capability != 61;
  const double rate = half ? gpu->flops_half : gpu->flops_single;
  const double efficiency = half ? 0.4 : 0.6;
  const double arithmetic = passes * (products + scores) / (rate * efficiency) / (s.tensor * s.pipeline * s.context);
  const double traffic = trainable_parameters(shape, s) * (2 * s.weight_width + 4 * s.state_width) / gpu->bandwidth;
  return arithmetic + traffic;
}

}  // namespace headroom::doctor
