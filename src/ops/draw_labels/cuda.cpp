// Draws labels on the GPU. The host does not know whether a pass draws, so every pass computes the logits.
#include <algorithm>

#include "ops/cast/cuda_convert.h"
#include "ops/cuda/kernel.h"
#include "ops/draw_labels/cuda_kernels.h"
#include "ops/draw_labels/draw.h"
#include "ops/draw_labels/shape.h"
#include "ops/linear/cuda_product.h"
#include "ops/linear_cross_entropy/cuda_scratch.h"

namespace headroom {
namespace {

class CudaDrawLabels final : public CudaKernel {
 public:
  CudaDrawLabels(const KernelSpec& spec, const CudaContext& context)
      : shape_(loss_shape(spec.call())),
        scratch_(cuda_loss_scratch(shape_, context.facts)),
        dtype_(spec.inputs[DrawInputs::x].dtype),
        softcap_(static_cast<float>(spec.attrs.real("softcap", 0))),
        multiprocessors_(context.multiprocessors) {
    HR_CHECK(scratch_.total() <= spec.scratch_bytes, "draw_labels needs {} bytes of scratch, {} are booked",
             scratch_.total(), spec.scratch_bytes);
  }

  // Prepares the products; returns the reason when one is refused.
  std::string prepare(CudaProductMaker make, const CudaContext& context) {
    LossShape shape = shape_;
    shape.rounds_weight = false;  // the products read the copy
    for (const int64_t rows : {shape_.chunk, shape_.rows % shape_.chunk}) {
      if (rows == 0) continue;
      CudaProductOffer offer =
          make({logits_product(shape, dtype_, rows), 0, 0, scratch_.stride, chunk_alignment(shape_, row_bytes())},
               context, scratch_.workspace);
      if (!offer.call) return offer.refusal;
      products_.push_back(std::move(offer.call));
    }
    return {};
  }

  void enqueue(const KernelCall& call, CudaStream stream) const override {
    const int32_t* const labels = call.inputs[DrawInputs::labels].as<int32_t>();
    cuda::launch_keep_labels(labels, call.outputs[0].as<int32_t>(), shape_.rows, multiprocessors_, stream);
    if (shape_.rounds_weight)
      cuda::launch_cast(cuda::FloatType::f32, float_type(dtype_), call.inputs[DrawInputs::weight].data,
                        rounded_weight(call), shape_.vocabulary * shape_.hidden, multiprocessors_, stream);
    for (int64_t first = 0; first < shape_.rows; first += shape_.chunk)
      queue_chunk(call, first, std::min(shape_.chunk, shape_.rows - first), stream);
  }
  // The place in the global batch depends on the trip.
  bool replays() const override { return false; }

 private:
  int64_t row_bytes() const { return shape_.hidden * dtype_bytes(dtype_); }
  void* rounded_weight(const KernelCall& call) const { return call.scratch.data() + scratch_.logits + scratch_.losses; }

  void queue_chunk(const KernelCall& call, int64_t first, int64_t rows, CudaStream stream) const {
    const CudaProduct& product = rows == shape_.chunk ? *products_.front() : *products_.back();
    const void* const weight = shape_.rounds_weight ? rounded_weight(call) : call.inputs[DrawInputs::weight].data;
    const void* const bias = shape_.bias ? call.inputs[DrawInputs::bias].data : nullptr;
    product.run(
        {static_cast<const std::byte*>(call.inputs[DrawInputs::x].data) + first * row_bytes(), weight,
         call.scratch.data(), bias, nullptr, call.scratch.data() + scratch_.logits + scratch_.losses + scratch_.weight},
        stream);
    cuda::DeviceDraw draw;
    draw.logits = reinterpret_cast<const float*>(call.scratch.data());
    draw.rows = rows;
    draw.vocabulary = shape_.vocabulary;
    draw.stride = scratch_.stride;
    draw.first_row = first;
    draw.sequence = shape_.sequence;
    draw.batch_row = call.trip * (shape_.rows / shape_.sequence);
    draw.shift = shape_.shift;
    draw.softcap = softcap_;
    draw.key = kDrawnLabelKey;
    draw.hyper = call.inputs[DrawInputs::hyper].as<float>();
    draw.labels = call.inputs[DrawInputs::labels].as<int32_t>();
    draw.drawn = call.outputs[0].as<int32_t>();
    cuda::launch_draw_labels(draw, stream);
  }

  LossShape shape_;
  CudaLossScratch scratch_;
  DType dtype_;
  float softcap_;
  int multiprocessors_;
  std::vector<std::shared_ptr<const CudaProduct>> products_;
};

// With the first of these products that is not refused.
CudaOffer make_draw(const KernelSpec& spec, const CudaContext& context, std::span<const CudaProductMaker> makers) {
  std::string refusals;
  for (const CudaProductMaker make : makers) {
    auto kernel = std::make_unique<CudaDrawLabels>(spec, context);
    const std::string refusal = kernel->prepare(make, context);
    if (refusal.empty()) return {std::move(kernel), {}};
    refusals += refusal + "; ";
  }
  return {nullptr, refusals};
}

CudaOffer make_library(const KernelSpec& spec, const CudaContext& context) {
  constexpr CudaProductMaker kMakers[] = {make_library_product};
  if (!context.services->blas()) return {nullptr, "there is no cuBLASLt"};
  return make_draw(spec, context, kMakers);
}
CudaOffer make_tiles(const KernelSpec& spec, const CudaContext& context) {
  constexpr CudaProductMaker kMakers[] = {make_mma_product, make_tiled_product};
  return make_draw(spec, context, kMakers);
}

}  // namespace

void register_draw_labels_cuda(CudaKernels& kernels) {
  kernels.add("draw_labels", {{"cublaslt", make_library}, {"plain", make_tiles}});
}

}  // namespace headroom
