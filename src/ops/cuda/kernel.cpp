#include "ops/cuda/kernel.h"

#include "base/error.h"

namespace headroom {
namespace {

thread_local LaunchMode mode_of_thread = LaunchMode::run;

}  // namespace

void register_all_cuda_kernels(CudaKernels& kernels);  // generated

const CudaKernels& cuda_kernels() {
  static const CudaKernels kernels = [] {
    CudaKernels all("CUDA");
    register_all_cuda_kernels(all);
    return all;
  }();
  return kernels;
}

std::unique_ptr<CudaKernel> make_cuda_kernel(const KernelSpec& spec, const CudaContext& context, std::string_view only,
                                             std::string* chosen) {
  return cuda_kernels().make(spec, context, only, chosen);
}

cuda::FloatType float_type(DType dtype) {
  if (dtype == DType::f32) return cuda::FloatType::f32;
  HR_CHECK(dtype == DType::bf16 || dtype == DType::f16, "no CUDA kernel for {}", dtype_name(dtype));
  return dtype == DType::f16 ? cuda::FloatType::f16 : cuda::FloatType::bf16;
}

LaunchMode launch_mode() { return mode_of_thread; }
void set_launch_mode(LaunchMode mode) { mode_of_thread = mode; }

namespace cuda {

[[noreturn]] void throw_cuda(const char* what, const char* words) {
  throw Error(ErrorKind::run, fmt::format("CUDA: {} failed: {}", what, words),
              "see the driver's messages (dmesg), or run with --device cpu");
}

}  // namespace cuda

void cuda::check_grid(const Grid& grid) {
  HR_CHECK(grid.x < int64_t{1} << 31 && grid.y < 65536 && grid.z < 65536 && grid.block >= 1 && grid.block <= 1024,
           "a grid of {} x {} x {} blocks of {} threads", grid.x, grid.y, grid.z, grid.block);
}

}  // namespace headroom
