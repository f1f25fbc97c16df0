#include "doctor/model/device_overheads.h"

#include <algorithm>

namespace headroom::doctor {
namespace {

constexpr double kMi = 1048576.0;

}  // namespace

double context_bytes(const std::optional<Gpu>& gpu, const Software& software) {
  if (gpu && gpu->name == "CPU") return 0;
  // Eager module loading puts every kernel of the libraries on the device: 1343 MiB on a V100 (transformers' ladder).
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

AllocatorSlack allocator_slack(double lasting, double passing, const TrainSettings& s) {
  if (s.cpu) {
    // Thread pools, oneDNN primitives, code pages touched for the first time; the C library's heap.
    const double fixed = 60 * kMi;
    return {0.3 * fixed, fixed + 0.03 * passing, 2.5 * fixed + 0.15 * passing + 0.02 * lasting};
  }
  // Blocks of S x S scores are split for smaller tensors and cannot be joined again.
  const double fragmented = s.attention == AttentionKernel::eager ? 0.20 : 0.03;
  return {2 * kMi, 20 * kMi + fragmented * passing, 40 * kMi + (fragmented + 0.15) * passing + 0.03 * lasting};
}

}  // namespace headroom::doctor
