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
  return cuda_kernel_of([shape, x = float_type(spec.inputs[LoraRowsInputs::x].dtype),
                         matrices = float_type(spec.inputs[LoraRowsInputs::a].dtype),
                         y = float_type(spec.inputs[LoraRowsInputs::y].dtype),
                         multiprocessors = context.multiprocessors](const KernelCall& call, CudaStream stream) {
    cuda::LoraRowsArgs args;
    args.x = call.inputs[LoraRowsInputs::x].data;
    args.a = call.inputs[LoraRowsInputs::a].data;
    args.b = call.inputs[LoraRowsInputs::b].data;
    args.scales = call.inputs[LoraRowsInputs::scales].as<float>();
    args.slots = call.inputs[LoraRowsInputs::slots].as<int32_t>();
    args.y = call.inputs[LoraRowsInputs::y].data;
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
