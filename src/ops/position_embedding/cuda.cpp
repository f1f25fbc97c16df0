// CUDA kernels of position_embedding and position_embedding_grad.
#include <algorithm>

#include "ops/cuda/kernel.h"
#include "ops/position_embedding/cuda_kernels.h"
#include "ops/position_embedding/operands.h"

namespace headroom {
namespace {

std::unique_ptr<CudaKernel> make_forward(const KernelSpec& spec, const CudaContext& context) {
  const ConcreteType &x = spec.inputs[PositionInputs::x], &table = spec.inputs[PositionInputs::table];
  cuda::PositionArgs args;
  args.tokens = x.dims[0] * x.dims[1];
  args.seq = x.dims[1];
  args.width = x.dims[2];
  args.table_rows = table.dims[0];
  args.first = spec.attrs.integer("first");
  const bool shifted = spec.inputs.size() > PositionInputs::shift,
             segments = shifted && spec.inputs[PositionInputs::shift].dims.size() == 2;
  if (shifted && !segments) args.offset_step = spec.inputs[PositionInputs::shift].dims[0] > 1 ? 1 : 0;
  return cuda_kernel_of([args, shifted, segments, type = float_type(x.dtype), table_type = float_type(table.dtype),
                         multiprocessors = context.multiprocessors](const KernelCall& call, CudaStream stream) {
    cuda::PositionArgs a = args;
    a.x = call.inputs[PositionInputs::x].data;
    a.table = call.inputs[PositionInputs::table].data;
    a.y = call.outputs[0].data;
    if (segments)
      a.starts = call.inputs[PositionInputs::shift].as<int32_t>();
    else if (shifted)
      a.offset = call.inputs[PositionInputs::shift].as<int32_t>();
    cuda::launch_position_embedding(type, table_type, a, multiprocessors, stream);
  });
}

std::unique_ptr<CudaKernel> make_grad(const KernelSpec& spec, const CudaContext& context) {
  const ConcreteType &dy = spec.inputs[PositionGradInputs::dy], &acc = spec.inputs[PositionGradInputs::accumulator];
  const int64_t first = spec.attrs.integer("first");
  cuda::PositionGradArgs args;
  args.batch = dy.dims[0];
  args.seq = dy.dims[1];
  args.width = dy.dims[2];
  args.positions = std::max<int64_t>(0, acc.dims[0] - first);
  return cuda_kernel_of([args, first, segments = spec.inputs.size() > PositionGradInputs::starts,
                         type = float_type(dy.dtype), carried = spec.attrs.text("accumulate", "always") == "carried",
                         bytes = storage_bytes(acc), services = context.services,
                         multiprocessors = context.multiprocessors](const KernelCall& call, CudaStream stream) {
    cuda::PositionGradArgs a = args;
    a.dy = call.inputs[PositionGradInputs::dy].data;
    a.acc = call.outputs[0].as<float>() + first * a.width;
    a.starts = segments ? call.inputs[PositionGradInputs::starts].as<int32_t>() : nullptr;
    if (carried && call.trip == 0) services->fill(call.outputs[0].data, 0, bytes, stream);
    cuda::launch_position_embedding_grad(type, a, segments, multiprocessors, stream);
  });
}

}  // namespace

void register_position_embedding_cuda(CudaKernels& kernels) {
  kernels.add("position_embedding", one_cuda_kernel<make_forward>());
  kernels.add("position_embedding_grad", one_cuda_kernel<make_grad>());
}

}  // namespace headroom
