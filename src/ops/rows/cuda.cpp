// CUDA kernels of take_rows and put_rows.
#include "ops/cuda/kernel.h"
#include "ops/rows/cuda_kernels.h"
#include "ops/rows/row_span.h"

namespace headroom {
namespace {

template <bool kPut>
std::unique_ptr<CudaKernel> make_copy(const KernelSpec& spec, const CudaContext& context) {
  const RowSpan part = row_span(kPut ? spec.outputs[0] : spec.inputs[0], spec.attrs);
  int unit = 16;
  while (part.stride % unit != 0 || part.begin % unit != 0 || part.bytes % unit != 0) unit /= 2;
  return cuda_kernel_of([part, unit, multiprocessors = context.multiprocessors](const KernelCall& call,
                                                                                CudaStream stream) {
    if (part.bytes == 0) return;
    const TensorView &whole = kPut ? call.outputs[0] : call.inputs[0], &rows = kPut ? call.inputs[0] : call.outputs[0];
    cuda::launch_rows({whole.data, rows.data, part.sequences, part.stride / unit, part.begin / unit, part.bytes / unit},
                      unit, kPut, multiprocessors, stream);
  });
}

}  // namespace

void register_rows_cuda(CudaKernels& kernels) {
  kernels.add("take_rows", one_cuda_kernel<make_copy<false>>());
  kernels.add("put_rows", one_cuda_kernel<make_copy<true>>());
}

}  // namespace headroom
