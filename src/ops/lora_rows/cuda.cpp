// CUDA kernel of lora_rows.
#include "base/error.h"
#include "ops/cuda/kernel.h"
#include "ops/lora_rows/cuda_kernels.h"
#include "ops/lora_rows/shape.h"

namespace headroom {
namespace {

std::unique_ptr<CudaKernel> make_lora_rows(const KernelSpec& spec, const CudaContext& context) {
  const LoraRowsShape shape = lora_rows_shape(spec.call());
  HR_CHECK(lora_rows_scratch(shape) <= spec.scratch_bytes, "lora_rows needs {} bytes of scratch, {} are booked",
           lora_rows_scratch(shape), spec.scratch_bytes);
  return cuda_kernel_of([shape, x = float_type(spec.inputs[0].dtype), matrices = float_type(spec.inputs[1].dtype),
                         y = float_type(spec.inputs[5].dtype),
                         multiprocessors = context.multiprocessors](const KernelCall& call, CudaStream stream) {
    cuda::LoraRowsArgs args;
    args.x = call.inputs[0].data;
    args.a = call.inputs[1].data;
    args.b = call.inputs[2].data;
    args.scales = call.inputs[3].as<float>();
    args.slots = call.inputs[4].as<int32_t>();
    args.y = call.inputs[5].data;
    args.result = call.outputs[0].data;
    args.narrow = reinterpret_cast<float*>(call.scratch.data());
    args.rows = shape.rows;
    args.slot_count = shape.slots;
    args.rank = shape.rank;
    args.ins = shape.ins;
    args.outs = shape.outs;
    cuda::launch_lora_rows(x, matrices, y, args, multiprocessors, stream);
  });
}

}  // namespace

void register_lora_rows_cuda(CudaKernels& kernels) { kernels.add("lora_rows", one_cuda_kernel<make_lora_rows>()); }

}  // namespace headroom
