// CUDA kernels of the attention ops: which calls each implementation accepts, and its launch.
#include "base/error.h"
#include "ops/attention/cache_append.h"
#include "ops/attention/cuda_arrays.h"
#include "ops/attention/cuda_dnn.h"
#include "ops/attention/cuda_kernels.h"
#include "ops/attention/cuda_mma.h"
#include "ops/attention/cuda_scratch.h"
#include "ops/attention/score_dropout.h"
#include "ops/cuda/kernel.h"
#include "ops/cuda/mma_refusal.h"

namespace headroom {
namespace {

using cuda::AttentionSizes;

static_assert(kCudaDecodeKeys == cuda::kDecodeKeys);

// The sizes without the mask operands.
AttentionSizes sizes_of(const AttentionShape& shape) {
  constexpr int64_t kMost = int64_t{1} << 30;
  HR_CHECK(shape.batch < kMost && shape.queries + shape.keys < kMost && shape.heads * shape.dim < kMost / 64,
           "attention of {} x {} queries with rows of {} and {} keys: more than an index counts", shape.batch,
           shape.queries, shape.heads * shape.dim, shape.keys);
  AttentionSizes sizes;
  sizes.batch = static_cast<int32_t>(shape.batch);
  sizes.queries = static_cast<int32_t>(shape.queries);
  sizes.keys = static_cast<int32_t>(shape.keys);
  sizes.heads = static_cast<int32_t>(shape.heads);
  sizes.kv_heads = static_cast<int32_t>(shape.kv_heads);
  sizes.dim = static_cast<int32_t>(shape.dim);
  sizes.window = static_cast<int32_t>(std::min(shape.window, kMost));
  sizes.causal = shape.causal;
  sizes.scale = static_cast<float>(shape.scale);
  sizes.softcap = static_cast<float>(shape.softcap);
  return sizes;
}

void set_mask(AttentionSizes& sizes, const TensorView& mask) {
  (mask.dims.size() == 2 ? sizes.starts : sizes.lengths) = mask.as<int32_t>();
}

// The operands of a call for masks and for random bits.
class CallOptions {
 public:
  CallOptions(const KernelSpec& spec, size_t inputs, bool gradient)
      : places_(spec.attrs, inputs, gradient), dropout_(spec.attrs) {}
  void set(AttentionSizes& sizes, const KernelCall& call) const {
    if (places_.mask > 0) set_mask(sizes, call.inputs[places_.mask]);
    if (places_.hyper > 0)
      sizes.dropout = {call.inputs[places_.hyper].as<float>(), dropout_.tensor, dropout_.rate.below,
                       dropout_.rate.scale, call.trip * sizes.batch * sizes.heads * sizes.queries};
  }

 private:
  OptionalInputs places_;
  DropoutAttrs dropout_;
};

// Whether every call queues the same work: random bits differ from trip to trip.
bool draws_nothing(const KernelSpec& spec) { return spec.attrs.real("dropout", 0) == 0; }

// Why the tensor-core kernels refuse, or empty; shared(dim) is the shared memory of a block.
template <typename Shared>
std::string mma_refusal(const KernelSpec& spec, const CudaContext& context, const Shared& shared) {
  for (size_t i = 0; i < 3; ++i)
    if (spec.inputs[i].dtype != DType::bf16) return "operands are not all bf16";
  const AttentionShape shape = attention_shape(spec.call());
  const int64_t dim = shape.dim;
  if (shape.softcap > 0 && spec.attrs.real("dropout", 0) > 0) return "scores are soft-capped and dropped";
  if (!is_mma_head(dim)) return fmt::format("head size {} is not 64, 96 or 128", dim);
  return mma_device_refusal(context, shared(dim));
}

// For both `attention` (inputs q, k, v, ...; outputs o, lse) and `attention_cached` (q, k, v, offset; o): launch(sizes,
// arrays, stream).
template <typename Launch>
CudaOffer forward_offer(const KernelSpec& spec, const Launch& launch) {
  const bool cached = spec.op == "attention_cached";
  return {cuda_kernel_of(
              [sizes = sizes_of(attention_shape(spec.call())), cached,
               options = CallOptions(spec, cached ? 0 : spec.inputs.size(), false),
               launch](const KernelCall& call, CudaStream stream) {
                AttentionSizes own = sizes;
                if (cached)
                  own.offset = call.inputs[CachedInputs::offset].as<int32_t>();
                else
                  options.set(own, call);
                launch(own, attention_arrays(call), stream);
              },
              draws_nothing(spec)),
          {}};
}

CudaOffer make_plain(const KernelSpec& spec, const CudaContext&) {
  return forward_offer(spec, [q_type = float_type(spec.inputs[AttentionInputs::q].dtype),
                              kv_type = float_type(spec.inputs[AttentionInputs::k].dtype)](
                                 const AttentionSizes& sizes, const cuda::AttentionArrays& arrays, CudaStream stream) {
    cuda::launch_attention(q_type, kv_type, sizes, arrays, stream);
  });
}

CudaOffer make_mma(const KernelSpec& spec, const CudaContext& context) {
  if (std::string refusal = mma_refusal(spec, context, cuda::attention_mma_shared); !refusal.empty())
    return {nullptr, std::move(refusal)};
  return forward_offer(spec, cuda::launch_attention_mma);
}

CudaOffer make_decode(const KernelSpec& spec, const CudaContext&) {
  const AttentionShape shape = attention_shape(spec.call());
  if (shape.queries != 1) return {nullptr, fmt::format("takes one query, not {}", shape.queries)};
  if (!cuda_decodes(shape)) return {nullptr, fmt::format("head size {} is above {}", shape.dim, kCudaDecodeDim)};
  if (cuda_cached_scratch(shape) > spec.scratch_bytes) return {nullptr, "scratch is booked for another kernel"};
  return {cuda_kernel_of(
              [shape, sizes = sizes_of(shape), q_type = float_type(spec.inputs[AttentionInputs::q].dtype),
               kv_type = float_type(spec.inputs[AttentionInputs::k].dtype)](const KernelCall& call, CudaStream stream) {
                AttentionSizes own = sizes;
                own.offset = call.inputs[CachedInputs::offset].as<int32_t>();
                Carver carver(call.scratch.data());
                const CudaDecodeBlock block = cuda_decode_block(carver, shape);
                cuda::launch_attention_decode(
                    q_type, kv_type, own, attention_arrays(call),
                    {block.o, block.maximum, block.sum, static_cast<int32_t>(cuda_decode_chunks(shape))}, stream);
              }),
          {}};
}

// launch(sizes, arrays, stream)
template <typename Launch>
CudaOffer grad_offer(const KernelSpec& spec, const Launch& launch) {
  return {cuda_kernel_of(
              [sizes = sizes_of(attention_shape(spec.call())), options = CallOptions(spec, spec.inputs.size(), true),
               launch](const KernelCall& call, CudaStream stream) {
                AttentionSizes own = sizes;
                options.set(own, call);
                launch(own, attention_grad_arrays(call), stream);
              },
              draws_nothing(spec)),
          {}};
}

CudaOffer make_grad_plain(const KernelSpec& spec, const CudaContext&) {
  return grad_offer(spec, [type = float_type(spec.inputs[AttentionGradInputs::q].dtype)](
                              const AttentionSizes& sizes, const cuda::AttentionGradArrays& arrays, CudaStream stream) {
    cuda::launch_attention_grad(type, sizes, arrays, stream);
  });
}

CudaOffer make_grad_mma(const KernelSpec& spec, const CudaContext& context) {
  const auto tight = [](int64_t dim) { return cuda::attention_mma_grad_shared(dim, false); };
  if (std::string refusal = mma_refusal(spec, context, tight); !refusal.empty()) return {nullptr, std::move(refusal)};
  const bool roomy =
      2 * cuda::attention_mma_grad_shared(attention_shape(spec.call()).dim, true) <= context.shared_bytes;
  return grad_offer(spec,
                    [roomy](const AttentionSizes& sizes, const cuda::AttentionGradArrays& arrays, CudaStream stream) {
                      cuda::launch_attention_mma_grad(sizes, arrays, roomy, stream);
                    });
}

std::unique_ptr<CudaKernel> make_append(const KernelSpec& spec, const CudaContext& context) {
  return cuda_kernel_of([multiprocessors = context.multiprocessors](const KernelCall& call, CudaStream stream) {
    const TensorView &k = call.inputs[CacheAppendInputs::rows], &cache = call.outputs[0];
    cuda::launch_kv_append(float_type(k.dtype), float_type(cache.dtype), k.data, cache.data,
                           call.inputs[CacheAppendInputs::places].as<int32_t>(), k.dims[0], k.dims[1], cache.dims[1],
                           k.dims[2], multiprocessors, stream);
  });
}

}  // namespace

void register_attention_cuda(CudaKernels& kernels) {
  kernels.add("attention", {{"cudnn", make_dnn_attention}, {"mma", make_mma}, {"plain", make_plain}});
  kernels.add("attention_cached", {{"decode", make_decode}, {"mma", make_mma}, {"plain", make_plain}});
  kernels.add("attention_grad",
              {{"cudnn", make_dnn_attention_grad}, {"mma", make_grad_mma}, {"plain", make_grad_plain}});
  kernels.add("kv_append", one_cuda_kernel<make_append>());
}

}  // namespace headroom
