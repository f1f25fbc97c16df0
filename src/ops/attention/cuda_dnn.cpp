#include "ops/attention/cuda_dnn.h"

#include "base/error.h"
#include "ops/attention/cuda_arrays.h"
#include "ops/attention/cuda_scratch.h"
#include "ops/cuda/dnn.h"

namespace headroom {
namespace {

// `prepare` asks the library for a call within the booked scratch; `arrays` finds its operands.
template <typename Call, typename Arrays>
CudaOffer dnn_offer(const KernelSpec& spec, const CudaContext& context, bool gradient,
                    CudaLibraryOffer<Call> (CudaDnn::*prepare)(const AttentionShape&, int64_t),
                    Arrays (*arrays)(const KernelCall&)) {
  CudaDnn* const library = context.services->dnn();
  if (!library) return {nullptr, "the library is not there"};
  if (const char* const refusal = cudnn_refusal(spec.call(), context.facts, gradient)) return {nullptr, refusal};
  CudaLibraryOffer<Call> offer = (library->*prepare)(attention_shape(spec.call()), spec.scratch_bytes);
  if (!offer.call) return {nullptr, std::move(offer.refusal)};
  HR_CHECK(offer.call->workspace_bytes() <= spec.scratch_bytes, "{} takes {} bytes of workspace, {} are booked",
           library->name(), offer.call->workspace_bytes(), spec.scratch_bytes);
  return {cuda_kernel_of([own = std::move(offer.call), arrays](const KernelCall& call, CudaStream stream) {
            own->run(arrays(call), call.scratch.data(), stream);
          }),
          {}};
}

}  // namespace

CudaOffer make_dnn_attention(const KernelSpec& spec, const CudaContext& context) {
  return dnn_offer(spec, context, false, &CudaDnn::attention, attention_arrays);
}

CudaOffer make_dnn_attention_grad(const KernelSpec& spec, const CudaContext& context) {
  return dnn_offer(spec, context, true, &CudaDnn::attention_grad, attention_grad_arrays);
}

}  // namespace headroom
