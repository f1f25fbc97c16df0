// CUDA kernels of embedding and embedding_grad.
#include "ops/cuda/kernel.h"
#include "ops/embedding/cuda_kernels.h"
#include "ops/embedding/cuda_scratch.h"
#include "ops/embedding/operands.h"

namespace headroom {
namespace {

std::unique_ptr<CudaKernel> make_embedding(const KernelSpec& spec, const CudaContext& context) {
  HR_CHECK(spec.inputs[EmbeddingInputs::table].storage.dense(), "embedding: no kernel decodes a table");
  cuda::EmbeddingArgs args;
  args.tokens = count_of(spec.inputs[EmbeddingInputs::ids]);
  args.rows = spec.inputs[EmbeddingInputs::table].dims[0];
  args.width = spec.inputs[EmbeddingInputs::table].dims[1];
  return cuda_kernel_of([args, table = float_type(spec.inputs[EmbeddingInputs::table].dtype),
                         y = float_type(spec.outputs[0].dtype),
                         multiprocessors = context.multiprocessors](const KernelCall& call, CudaStream stream) {
    cuda::EmbeddingArgs a = args;
    a.ids = call.inputs[EmbeddingInputs::ids].as<int32_t>();
    a.table = call.inputs[EmbeddingInputs::table].data;
    a.y = call.outputs[0].data;
    cuda::launch_embedding(table, y, a, multiprocessors, stream);
  });
}

std::unique_ptr<CudaKernel> make_grad(const KernelSpec& spec, const CudaContext& context) {
  cuda::EmbeddingGradArgs args;
  args.tokens = count_of(spec.inputs[EmbeddingGradInputs::ids]);
  args.rows = spec.outputs[0].dims[0];
  args.width = spec.outputs[0].dims[1];
  args.padding = spec.attrs.integer("padding", args.padding);
  HR_CHECK(args.tokens < int64_t{1} << 31 && args.rows < int64_t{1} << 31, "embedding_grad: {} tokens, {} rows",
           args.tokens, args.rows);
  HR_CHECK(spec.scratch_bytes >= embedding_grad_cuda_scratch(args.tokens), "embedding_grad: {} bytes of scratch",
           spec.scratch_bytes);
  return cuda_kernel_of([args, dy = float_type(spec.inputs[EmbeddingGradInputs::dy].dtype),
                         bytes = storage_bytes(spec.outputs[0]),
                         carried = spec.attrs.text("accumulate", "always") == "carried",
                         services = context.services](const KernelCall& call, CudaStream stream) {
    cuda::EmbeddingGradArgs a = args;
    a.ids = call.inputs[EmbeddingGradInputs::ids].as<int32_t>();
    a.dy = call.inputs[EmbeddingGradInputs::dy].data;
    a.acc = call.outputs[0].as<float>();
    a.row = reinterpret_cast<int32_t*>(call.scratch.data());
    a.place = a.row + a.tokens;
    if (carried && call.trip == 0) services->fill(a.acc, 0, bytes, stream);
    cuda::launch_embedding_grad(dy, a, stream);
  });
}

}  // namespace

void register_embedding_cuda(CudaKernels& kernels) {
  kernels.add("embedding", one_cuda_kernel<make_embedding>());
  kernels.add("embedding_grad", one_cuda_kernel<make_grad>());
}

}  // namespace headroom
