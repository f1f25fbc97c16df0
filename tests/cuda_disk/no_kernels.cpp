// Replaces kernels and shim for a CUDA device that only copies, so that ThreadSanitizer can follow it.
#include "base/error.h"
#include "cuda_shim/cuda_shim.h"
#include "ops/cuda/kernel.h"

namespace headroom {

namespace {

LaunchMode& mode() {
  static thread_local LaunchMode of_this_thread = LaunchMode::run;
  return of_this_thread;
}

}  // namespace

LaunchMode launch_mode() { return mode(); }
void set_launch_mode(LaunchMode changed) { mode() = changed; }

std::unique_ptr<CudaKernel> make_cuda_kernel(const KernelSpec& spec, const CudaContext&, std::string_view,
                                             std::string*) {
  HR_CHECK(false, "no kernel is here for {}", spec.op);
  return nullptr;
}

namespace cuda_shim {
void demand_loading(bool) {}
void begin_capture() {}
Captured end_capture() { return {}; }
Captured* capture_under_way() { return nullptr; }
int64_t loaded_kernels() { return 0; }
}  // namespace cuda_shim

}  // namespace headroom
