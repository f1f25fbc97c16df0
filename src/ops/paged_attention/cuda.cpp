// CUDA kernels of attention_paged and kv_append_paged.
#include "base/error.h"
#include "ops/attention/cache_append.h"
#include "ops/cuda/kernel.h"
#include "ops/paged_attention/cuda_kernels.h"
#include "ops/paged_attention/cuda_scratch.h"

namespace headroom {
namespace {

// The sizes without the addresses.
cuda::AttentionSizes sizes_of(const PagedShape& shape) {
  cuda::AttentionSizes sizes;
  sizes.queries = 1;
  sizes.keys = static_cast<int32_t>(shape.positions());
  sizes.heads = static_cast<int32_t>(shape.heads);
  sizes.kv_heads = static_cast<int32_t>(shape.kv_heads);
  sizes.dim = static_cast<int32_t>(shape.dim);
  sizes.window = static_cast<int32_t>(std::min(shape.window, shape.positions()));
  sizes.scale = static_cast<float>(shape.scale);
  sizes.softcap = static_cast<float>(shape.softcap);
  return sizes;
}

cuda::PagedTables tables_of(const PagedShape& shape) {
  cuda::PagedTables tables;
  tables.sequences = static_cast<int32_t>(shape.tables);
  tables.blocks_each = static_cast<int32_t>(shape.table_blocks);
  tables.block_tokens = static_cast<int32_t>(shape.block_tokens);
  tables.blocks = static_cast<int32_t>(shape.pool_rows / shape.block_tokens);
  return tables;
}

void check_counts(const PagedShape& shape) {
  constexpr int64_t kMost = int64_t{1} << 30;
  HR_CHECK(shape.rows < kMost && shape.positions() < kMost && shape.pool_rows < 2 * kMost &&
               shape.heads * shape.dim < kMost / 64,
           "attention of {} rows of {} to {} positions in a pool of {}: more than an index counts", shape.rows,
           shape.heads * shape.dim, shape.positions(), shape.pool_rows);
}

std::unique_ptr<CudaKernel> make_paged(const KernelSpec& spec, const CudaContext&) {
  const PagedShape shape = paged_shape(spec.call());
  check_counts(shape);
  HR_CHECK(cuda_paged_scratch(shape) <= spec.scratch_bytes, "attention_paged needs {} bytes of scratch, {} are booked",
           cuda_paged_scratch(shape), spec.scratch_bytes);
  return cuda_kernel_of([shape, sizes = sizes_of(shape), tables = tables_of(shape), at_once = cuda_paged_at_once(shape),
                         q_type = float_type(spec.inputs[PagedInputs::q].dtype),
                         kv_type = float_type(spec.inputs[PagedInputs::keys].dtype)](const KernelCall& call,
                                                                                     CudaStream stream) {
    cuda::PagedTables own = tables;
    own.tables = call.inputs[PagedInputs::tables].as<int32_t>();
    own.owners = call.inputs[PagedInputs::owners].as<int32_t>();
    own.offset = call.inputs[PagedInputs::offset].as<int32_t>();
    const AttentionShape rows = cuda_paged_rows(shape, at_once);
    Carver carver(call.scratch.data());
    const CudaDecodeBlock block = cuda_decode_block(carver, rows);
    cuda::launch_attention_paged(q_type, kv_type, sizes, own, shape.rows, at_once,
                                 {call.inputs[PagedInputs::q].data, call.inputs[PagedInputs::keys].data,
                                  call.inputs[PagedInputs::values].data, call.outputs[0].data, nullptr},
                                 {block.o, block.maximum, block.sum, static_cast<int32_t>(cuda_decode_chunks(rows))},
                                 stream);
  });
}

std::unique_ptr<CudaKernel> make_append(const KernelSpec& spec, const CudaContext& context) {
  return cuda_kernel_of([multiprocessors = context.multiprocessors](const KernelCall& call, CudaStream stream) {
    const TensorView &k = call.inputs[CacheAppendInputs::rows], &pool = call.outputs[0];
    cuda::launch_kv_append_paged(float_type(k.dtype), float_type(pool.dtype), k.data, pool.data,
                                 call.inputs[CacheAppendInputs::places].as<int32_t>(), k.dims[0], pool.dims[1],
                                 k.dims[2], multiprocessors, stream);
  });
}

}  // namespace

void register_paged_attention_cuda(CudaKernels& kernels) {
  kernels.add("attention_paged", one_cuda_kernel<make_paged>());
  kernels.add("kv_append_paged", one_cuda_kernel<make_append>());
}

}  // namespace headroom
