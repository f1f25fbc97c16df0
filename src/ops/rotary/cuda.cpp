// CUDA kernels of rotary and rope_table.
#include <cstring>

#include "ops/cuda/kernel.h"
#include "ops/rotary/cuda_kernels.h"
#include "ops/rotary/cuda_scratch.h"
#include "ops/rotary/frequencies.h"
#include "ops/rotary/operands.h"

namespace headroom {
namespace {

std::unique_ptr<CudaKernel> make_rotary(const KernelSpec& spec, const CudaContext& context) {
  const ConcreteType &x = spec.inputs[RotaryInputs::x], &table = spec.inputs[RotaryInputs::table];
  cuda::RotaryArgs args;
  args.table_rows = table.dims[0];
  args.rows = x.dims[0] * x.dims[1];
  args.seq = x.dims[1];
  args.heads = spec.attrs.integer("heads");
  args.head_dim = x.dims[2] / args.heads;
  args.turned = table.dims[1];
  args.sign = spec.attrs.integer("inverse") != 0 ? -1.0f : 1.0f;
  const bool offset = spec.attrs.integer("offset") != 0, segments = spec.attrs.integer("segments") != 0;
  if (offset) args.offset_step = spec.inputs[RotaryInputs::shift].dims[0] > 1 ? 1 : 0;
  return cuda_kernel_of([args, offset, segments, type = float_type(x.dtype), multiprocessors = context.multiprocessors](
                            const KernelCall& call, CudaStream stream) {
    cuda::RotaryArgs a = args;
    a.x = call.inputs[RotaryInputs::x].data;
    a.table = call.inputs[RotaryInputs::table].as<float>();
    a.y = call.outputs[0].data;
    if (offset) a.offset = call.inputs[RotaryInputs::shift].as<int32_t>();
    if (segments) a.starts = call.inputs[RotaryInputs::shift].as<int32_t>();
    cuda::launch_rotary(type, a, multiprocessors, stream);
  });
}

// The host computes the frequencies, so that the table equals the CPU's except for the last bits of sine and cosine.
std::unique_ptr<CudaKernel> make_table(const KernelSpec& spec, const CudaContext& context) {
  const std::vector<float> frequencies = inverse_frequencies(spec.attrs);
  const auto half = static_cast<int64_t>(frequencies.size());
  HR_CHECK(spec.scratch_bytes >= rope_table_cuda_scratch(2 * half), "rope_table: {} bytes of scratch",
           spec.scratch_bytes);
  const std::span<std::byte> pinned = context.services->pinned(half * 4);
  std::memcpy(pinned.data(), frequencies.data(), static_cast<size_t>(half * 4));
  return cuda_kernel_of([half, pinned, services = context.services,
                         amplitude = static_cast<float>(spec.attrs.real("amplitude", 1)),
                         positions = spec.outputs[0].dims[0],
                         multiprocessors = context.multiprocessors](const KernelCall& call, CudaStream stream) {
    services->copy(call.scratch.data(), pinned.data(), half * 4, stream);
    cuda::launch_rope_table(reinterpret_cast<const float*>(call.scratch.data()), half, amplitude, positions,
                            call.outputs[0].as<float>(), multiprocessors, stream);
  });
}

}  // namespace

void register_rotary_cuda(CudaKernels& kernels) {
  kernels.add("rotary", one_cuda_kernel<make_rotary>());
  kernels.add("rope_table", one_cuda_kernel<make_table>());
}

}  // namespace headroom
