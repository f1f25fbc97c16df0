#include "doctor/model/device_overheads.h"

#include <algorithm>

namespace headroom::doctor {
namespace {

constexpr double kMi = 1048576.0;

}  // namespace

double context_bytes(const std::optional<Gpu>& gpu, const Software& software) {
  if (gpu && gpu->name == "CPU") return 0;
  // Eager module loading puts every kernel of the libraries on the device: 1343 MiB on a V100, by transformers' manual.
  if (software.torch.major == 1) return 1343 * kMi;
  if (!gpu) return 500 * kMi;
  if (gpu->compute_capability == 0) return 700 * kMi;
  if (gpu->compute_capability >= 90) return 560 * kMi;
  if (gpu->compute_capability == 80) return 460 * kMi;
  if (gpu->compute_capability > 80) return 400 * kMi;
  return 320 * kMi;
}

double workspace_bytes(const std::optional<Gpu>& gpu) {
  if (gpu && gpu->name == "CPU") return 0;
  return (gpu && gpu->compute_capability >= 90 ? 32 : 8.125) * kMi;
}

AllocatorSlack allocator_slack(const AllocatorLoad& load, const TrainSettings& s) {
  if (s.cpu) {
    const double held = s.fitted.heap_gradients * load.gradients + s.fitted.heap_activations * load.activations +
                        (load.score_piece < 32 * kMi ? s.fitted.heap_scores * load.scores : 0);
    const double fixed = 30 * kMi;  // thread pools, primitives, code that is used for the first time
    return {0.3 * held, fixed + held, 3 * fixed + 1.8 * held + 0.1 * load.passing};
  }
  const double fragmented =
      s.attention == AttentionKernel::eager ? s.fitted.eager_fragmentation : s.fitted.fragmentation;
  return {2 * kMi, 20 * kMi + fragmented * load.passing,
          40 * kMi + (fragmented + 0.15) * load.passing + 0.03 * load.lasting};
}

}  // namespace headroom::doctor
