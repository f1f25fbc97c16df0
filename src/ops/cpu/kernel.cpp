#include "ops/cpu/kernel.h"

#include "base/error.h"

namespace headroom {

void register_all_cpu_kernels(CpuKernels& kernels);  // generated

void CpuKernels::add(std::string_view op, std::vector<KernelCandidate> candidates) {
  HR_CHECK(!candidates.empty(), "op {} has no kernel", op);
  HR_CHECK(kernels_.emplace(std::string(op), std::move(candidates)).second, "the kernels of {} are registered twice",
           op);
}

const std::vector<KernelCandidate>& CpuKernels::candidates(std::string_view op) const {
  const auto at = kernels_.find(op);
  HR_CHECK(at != kernels_.end(), "op {} has no CPU kernel", op);
  return at->second;
}

const CpuKernels& cpu_kernels() {
  static const CpuKernels kernels = [] {
    CpuKernels all;
    register_all_cpu_kernels(all);
    return all;
  }();
  return kernels;
}

std::unique_ptr<CpuKernel> make_cpu_kernel(const KernelSpec& spec, const DeviceFacts& facts, std::string_view only,
                                           std::string* chosen) {
  std::string refusals;
  for (const KernelCandidate& candidate : cpu_kernels().candidates(spec.op)) {
    if (!only.empty() && candidate.implementation != only) continue;
    KernelOffer offer = candidate.make(spec, facts);
    if (offer.kernel) {
      if (chosen) *chosen = candidate.implementation;
      return std::move(offer.kernel);
    }
    refusals += fmt::format(" {}: {};", candidate.implementation, offer.refusal);
  }
  HR_CHECK(false, "no kernel accepts {}:{}", spec.op, refusals);
  return nullptr;
}

}  // namespace headroom
