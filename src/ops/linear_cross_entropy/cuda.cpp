// The output projection and the loss, one chunk of rows at a time: logits, softmax, and two more products for the
// gradient.
#include <algorithm>
#include <array>

#include "ops/cast/cuda_convert.h"
#include "ops/cuda/capabilities.h"
#include "ops/cuda/kernel.h"
#include "ops/linear/cuda_kernels.h"
#include "ops/linear/cuda_product.h"
#include "ops/linear_cross_entropy/cuda_kernels.h"
#include "ops/linear_cross_entropy/cuda_scratch.h"
#include "ops/linear_cross_entropy/loss_options.h"

namespace headroom {
namespace {

static_assert(cuda::kHeldLogits == kCudaHeldLogits);

// The products of a chunk of `rows` rows; the last chunk has its own.
struct CudaChunk {
  int64_t rows = 0;
  std::shared_ptr<const CudaProduct> logits, dx, dw_first, dw_adding;
};

class CudaLossKernel final : public CudaKernel {
 public:
  CudaLossKernel(const LossShape& shape, const CudaLossScratch& scratch, const LossOptions& options, DType dtype,
                 int multiprocessors)
      : shape_(shape), scratch_(scratch), options_(options), dtype_(dtype), multiprocessors_(multiprocessors) {}

  // Prepares the products; returns the reason when one is refused.
  std::string prepare(CudaProductMaker make, const CudaContext& context) {
    std::string refusal;
    const auto product = [&](const MatmulSpec& matmul, int64_t a_stride, int64_t b_stride, int64_t c_stride) {
      CudaProductOffer offer = make({matmul, a_stride, b_stride, c_stride, chunk_alignment(shape_, row_bytes())},
                                    context, scratch_.workspace);
      refusal += offer.refusal;
      return std::move(offer.call);
    };
    LossShape shape = shape_;
    shape.rounds_weight = false;  // the products read the copy
    for (int64_t rows : {shape_.chunk, shape_.rows % shape_.chunk}) {
      if (rows == 0 || rows > shape_.rows) continue;
      CudaChunk chunk;
      chunk.rows = rows;
      const int64_t a = shape_.out_in ? gradient_stride() : 0, b = shape_.out_in ? 0 : gradient_stride();
      chunk.logits = product(logits_of(shape, rows), 0, 0, scratch_.stride);
      if (options_.gradient) chunk.dx = product(loss_dx_product(shape, dtype_, rows), gradient_stride(), 0, 0);
      if (options_.weight_carried) chunk.dw_first = product(loss_dw_product(shape, dtype_, rows, false), a, b, 0);
      if (options_.trains) chunk.dw_adding = product(loss_dw_product(shape, dtype_, rows, true), a, b, 0);
      if (!refusal.empty()) return refusal;
      chunks_.push_back(std::move(chunk));
    }
    return {};
  }

  void enqueue(const KernelCall& call, CudaStream stream) const override {
    if (shape_.rounds_weight)
      cuda::launch_cast(cuda::FloatType::f32, float_type(dtype_), call.inputs[LossGradInputs::weight].data,
                        rounded_weight(call), shape_.vocabulary * shape_.hidden, multiprocessors_, stream);
    if (launch_mode() == LaunchMode::load) return load(call, stream);
    bool first_weight = options_.weight_carried && call.trip == 0, first_bias = options_.bias_carried && call.trip == 0;
    for (int64_t first = 0; first < shape_.rows; first += shape_.chunk) {
      const CudaChunk& chunk = shape_.rows - first >= shape_.chunk ? chunks_.front() : chunks_.back();
      queue_losses(call, chunk, first, stream);
      if (options_.gradient) queue_dx(call, chunk, first, stream);
      if (options_.trains_bias) queue_bias(call, chunk, first_bias, stream);
      if (options_.trains) queue_dw(call, first_weight ? *chunk.dw_first : *chunk.dw_adding, first, stream);
      first_weight = first_bias = false;
    }
    queue_sums(call, stream);
  }

 private:
  MatmulSpec logits_of(const LossShape& shape, int64_t rows) const {
    MatmulSpec spec = logits_product(shape, dtype_, rows);
    spec.result = logits_dtype();
    return spec;
  }
  DType logits_dtype() const { return shape_.narrow_logits ? DType::bf16 : DType::f32; }

  // Loads all code that any trip needs.
  void load(const KernelCall& call, CudaStream stream) const {
    for (const CudaChunk& chunk : chunks_) {
      queue_losses(call, chunk, 0, stream);
      if (options_.gradient) queue_dx(call, chunk, 0, stream);
      if (options_.trains_bias) queue_bias(call, chunk, false, stream);
      if (options_.weight_carried) queue_dw(call, *chunk.dw_first, 0, stream);
      if (options_.trains) queue_dw(call, *chunk.dw_adding, 0, stream);
    }
    queue_sums(call, stream);
  }

  // Elements from one row of dlogits to the next.
  int64_t gradient_stride() const { return scratch_.stride * scratch_.element / dtype_bytes(dtype_); }
  int64_t row_bytes() const { return shape_.hidden * dtype_bytes(dtype_); }
  void* row_of(const TensorView& tensor, int64_t row) const {
    return static_cast<std::byte*>(tensor.data) + row * row_bytes();
  }

  void* logits(const KernelCall& call) const { return call.scratch.data(); }
  double* losses(const KernelCall& call) const {
    return reinterpret_cast<double*>(call.scratch.data() + scratch_.logits);
  }
  double* hits(const KernelCall& call) const { return shape_.hits ? losses(call) + shape_.rows : nullptr; }
  void* rounded_weight(const KernelCall& call) const { return call.scratch.data() + scratch_.logits + scratch_.losses; }
  const void* weight(const KernelCall& call) const {
    return shape_.rounds_weight ? rounded_weight(call) : call.inputs[LossGradInputs::weight].data;
  }
  void* workspace(const KernelCall& call) const {
    return call.scratch.data() + scratch_.logits + scratch_.losses + scratch_.weight;
  }
  cuda::DeviceTargets targets(const KernelCall& call) const {
    return {static_cast<const int32_t*>(call.inputs[LossGradInputs::labels].data), shape_.sequence, shape_.shift};
  }

  void queue_losses(const KernelCall& call, const CudaChunk& chunk, int64_t first, CudaStream stream) const {
    chunk.logits->run({row_of(call.inputs[LossGradInputs::x], first), weight(call), logits(call),
                       loss_bias(shape_, options_, call), nullptr, workspace(call)},
                      stream);
    cuda::DeviceLoss loss;
    loss.logits = logits(call);
    loss.rows = chunk.rows;
    loss.vocabulary = shape_.vocabulary;
    loss.stride = scratch_.stride;
    loss.targets = targets(call);
    loss.first_row = first;
    loss.softcap = options_.softcap;
    loss.losses = losses(call);
    loss.hits = hits(call);
    if (options_.gradient) loss.scale = static_cast<const float*>(call.inputs[LossGradInputs::scale].data);
    cuda::launch_loss(loss, float_type(logits_dtype()), options_.gradient, float_type(dtype_), stream);
  }

  void queue_dx(const KernelCall& call, const CudaChunk& chunk, int64_t first, CudaStream stream) const {
    chunk.dx->run({logits(call), weight(call), row_of(call.outputs[LossGradOutputs::dx], first), nullptr, nullptr,
                   workspace(call)},
                  stream);
  }

  void queue_bias(const KernelCall& call, const CudaChunk& chunk, bool overwrite, CudaStream stream) const {
    cuda::launch_sum_over_rows(float_type(dtype_), logits(call), chunk.rows, shape_.vocabulary, gradient_stride(),
                               static_cast<float*>(call.outputs.back().data), overwrite, workspace(call), stream);
  }

  void queue_dw(const KernelCall& call, const CudaProduct& product, int64_t first, CudaStream stream) const {
    const void* const x = row_of(call.inputs[LossGradInputs::x], first);
    const void* const dlogits = logits(call);
    void* const sums = call.outputs[LossGradOutputs::accumulator].data;
    product.run({shape_.out_in ? dlogits : x, shape_.out_in ? x : dlogits, sums, nullptr, sums, workspace(call)},
                stream);
  }

  void queue_sums(const KernelCall& call, CudaStream stream) const {
    cuda::launch_loss_sums(targets(call), shape_.rows, losses(call), hits(call),
                           static_cast<double*>(call.outputs[options_.gradient ? 1 : 0].data),
                           options_.loss_carried && call.trip == 0, stream);
  }

  LossShape shape_;
  CudaLossScratch scratch_;
  LossOptions options_;
  DType dtype_;
  int multiprocessors_;
  std::vector<CudaChunk> chunks_;
};

// Uses the first of these makers that accepts the product.
template <CudaProductMaker first, CudaProductMaker... others>
CudaProductOffer make_first_of(const CudaProductSpec& spec, const CudaContext& context, int64_t workspace) {
  CudaProductOffer offer = first(spec, context, workspace);
  if constexpr (sizeof...(others) > 0)
    if (!offer.call) return make_first_of<others...>(spec, context, workspace);
  return offer;
}

std::string unknown_attribute(const KernelSpec& spec) {
  constexpr std::array<std::string_view, 13> kKnown{
      "accumulate",      "accumulate_bias", "bias",  "chunk",   "hits",       "layout",      "logits",
      "loss_accumulate", "multiply",        "shift", "softcap", "train_bias", "train_weight"};
  for (const auto& [name, value] : spec.attrs.items())
    if (std::find(kKnown.begin(), kKnown.end(), name) == kKnown.end()) return fmt::format("attribute {}", name);
  return {};
}

// Why an implementation is refused for every call.
std::string without_library(const KernelSpec&, const CudaContext& context) {
  return context.services->blas() ? "" : "there is no cuBLASLt";
}
std::string without_mma(const KernelSpec& spec, const CudaContext& context) {
  return has_bf16_tensor_cores(context.facts) && spec.inputs[LossInputs::x].dtype == DType::bf16
             ? ""
             : "needs bf16 and compute capability 8.0";
}
std::string nothing(const KernelSpec&, const CudaContext&) { return {}; }

template <auto hindrance, CudaProductMaker make>
CudaOffer make_loss(const KernelSpec& spec, const CudaContext& context) {
  if (std::string refusal = hindrance(spec, context); !refusal.empty()) return {nullptr, std::move(refusal)};
  if (std::string refusal = unknown_attribute(spec); !refusal.empty()) return {nullptr, std::move(refusal)};
  const LossShape shape = loss_shape(spec.call());
  const CudaLossScratch scratch = cuda_loss_scratch(shape, context.facts);
  HR_CHECK(scratch.total() <= spec.scratch_bytes, "the loss needs {} bytes of scratch, {} are booked", scratch.total(),
           spec.scratch_bytes);
  auto kernel = std::make_unique<CudaLossKernel>(shape, scratch, loss_options(spec), spec.inputs[LossInputs::x].dtype,
                                                 context.multiprocessors);
  std::string refusal = kernel->prepare(make, context);
  if (!refusal.empty()) return {nullptr, std::move(refusal)};
  return {std::move(kernel), {}};
}

}  // namespace

void register_linear_cross_entropy_cuda(CudaKernels& kernels) {
  constexpr CudaProductMaker kLibrary = make_first_of<make_library_product, make_mma_product, make_tiled_product>;
  constexpr CudaProductMaker kMma = make_first_of<make_mma_product, make_tiled_product>;
  for (const char* op : {"linear_cross_entropy", "linear_cross_entropy_grad"})
    kernels.add(op, {{"cublaslt", make_loss<without_library, kLibrary>},
                     {"mma", make_loss<without_mma, kMma>},
                     {"plain", make_loss<nothing, make_tiled_product>}});
}

}  // namespace headroom
