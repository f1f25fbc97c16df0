// CUDA kernels of sequence_lengths, padding_starts and zero_ids.
#include "ops/cuda/kernel.h"
#include "ops/sequence/cuda_kernels.h"

namespace headroom {
namespace {

std::unique_ptr<CudaKernel> make_lengths(const KernelSpec& spec, const CudaContext&) {
  return cuda_kernel_of([batch = spec.inputs[0].dims[0], seq = spec.inputs[0].dims[1],
                         pad = static_cast<int32_t>(spec.attrs.integer("pad"))](const KernelCall& call,
                                                                                CudaStream stream) {
    cuda::launch_sequence_lengths(call.inputs[0].as<int32_t>(), batch, seq, pad, call.outputs[0].as<int32_t>(), stream);
  });
}

std::unique_ptr<CudaKernel> make_starts(const KernelSpec& spec, const CudaContext&) {
  return cuda_kernel_of([batch = spec.inputs[0].dims[0], seq = spec.inputs[0].dims[1],
                         pad = static_cast<int32_t>(spec.attrs.integer("pad"))](const KernelCall& call,
                                                                                CudaStream stream) {
    cuda::launch_padding_starts(call.inputs[0].as<int32_t>(), batch, seq, pad, call.outputs[0].as<int32_t>(), stream);
  });
}

std::unique_ptr<CudaKernel> make_zeros(const KernelSpec& spec, const CudaContext& context) {
  return cuda_kernel_of(
      [bytes = storage_bytes(spec.outputs[0]), services = context.services](const KernelCall& call, CudaStream stream) {
        services->fill(call.outputs[0].data, 0, bytes, stream);
      });
}

std::unique_ptr<CudaKernel> make_labels(const KernelSpec& spec, const CudaContext& context) {
  return cuda_kernel_of([batch = spec.inputs[0].dims[0], seq = spec.inputs[0].dims[1],
                         multiprocessors = context.multiprocessors](const KernelCall& call, CudaStream stream) {
    cuda::launch_next_labels(call.inputs[0].as<int32_t>(), batch, seq, call.outputs[0].as<int32_t>(), multiprocessors,
                             stream);
  });
}

}  // namespace

void register_sequence_cuda(CudaKernels& kernels) {
  kernels.add("sequence_lengths", one_cuda_kernel<make_lengths>());
  kernels.add("padding_starts", one_cuda_kernel<make_starts>());
  kernels.add("zero_ids", one_cuda_kernel<make_zeros>());
  kernels.add("next_labels", one_cuda_kernel<make_labels>());
}

}  // namespace headroom
