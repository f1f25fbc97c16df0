#include "ops/cpu/kernel.h"

namespace headroom {

void register_all_cpu_kernels(CpuKernels& kernels);  // generated

const CpuKernels& cpu_kernels() {
  static const CpuKernels kernels = [] {
    CpuKernels all("CPU");
    register_all_cpu_kernels(all);
    return all;
  }();
  return kernels;
}

std::unique_ptr<CpuKernel> make_cpu_kernel(const KernelSpec& spec, const DeviceFacts& facts, std::string_view only,
                                           std::string* chosen) {
  return cpu_kernels().make(spec, facts, only, chosen);
}

}  // namespace headroom
