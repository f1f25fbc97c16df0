#include "ops/linear/cuda_product.h"

#include <algorithm>

#include "ops/cast/cuda_convert.h"
#include "ops/cuda/mma_refusal.h"
#include "ops/linear/cuda_kernels.h"
#include "ops/linear/cuda_scratch.h"

namespace headroom {
namespace {

// A product of the library, with a narrow copy of the bias after the library's workspace.
class NarrowBiasProduct final : public CudaProduct {
 public:
  NarrowBiasProduct(std::shared_ptr<const CudaProduct> product, const MatmulSpec& spec, int multiprocessors)
      : product_(std::move(product)),
        cols_(spec.size.cols),
        result_(float_type(spec.result)),
        multiprocessors_(multiprocessors) {}

  int64_t workspace_bytes() const override { return library_bytes() + cuda_lines(cols_ * 2); }

  void run(const CudaProductArguments& arguments, CudaStream stream) const override {
    CudaProductArguments inner = arguments;
    void* const narrow = static_cast<std::byte*>(arguments.workspace) + library_bytes();
    cuda::launch_cast(cuda::FloatType::f32, result_, arguments.bias, narrow, cols_, multiprocessors_, stream);
    inner.bias = narrow;
    product_->run(inner, stream);
  }

 private:
  int64_t library_bytes() const { return cuda_lines(product_->workspace_bytes()); }

  std::shared_ptr<const CudaProduct> product_;
  int64_t cols_;
  cuda::FloatType result_;
  int multiprocessors_;
};

// A product by one of headroom's own launchers.
using ProductLauncher = void (*)(const cuda::DeviceProduct& product, int multiprocessors, CudaStream stream);

class TiledProduct final : public CudaProduct {
 public:
  TiledProduct(const CudaProductSpec& spec, int multiprocessors, ProductLauncher launch)
      : spec_(spec), multiprocessors_(multiprocessors), launch_(launch) {}

  int64_t workspace_bytes() const override { return 0; }

  void run(const CudaProductArguments& arguments, CudaStream stream) const override {
    const MatmulSpec& m = spec_.matmul;
    cuda::DeviceProduct product{float_type(m.operand), float_type(m.result), m.a_transposed, m.b_transposed,
                                m.size.rows,           m.size.cols,          m.size.depth};
    product.a = arguments.a;
    product.a_step = spec_.a_step();
    product.b = arguments.b;
    product.b_step = spec_.b_step();
    product.c = arguments.c;
    product.c_step = spec_.c_step();
    product.bias = m.bias ? static_cast<const float*>(arguments.bias) : nullptr;
    product.addend = m.addend ? arguments.addend : nullptr;
    launch_(product, multiprocessors_, stream);
  }

 private:
  CudaProductSpec spec_;
  int multiprocessors_;
  ProductLauncher launch_;
};

// Why none of headroom's own kernels supports the product, or empty.
std::string tiles_refusal(const MatmulSpec& matmul) {
  constexpr int64_t kMost = int64_t{1} << 30;
  if (matmul.a_transposed && matmul.b_transposed) return "both operands are transposed";
  if (std::max({matmul.size.rows, matmul.size.cols, matmul.size.depth}) > kMost) return "a dimension is above 2^30";
  return {};
}

std::string mma_refusal(const CudaProductSpec& spec, const CudaContext& context) {
  const MatmulSpec& m = spec.matmul;
  const auto& [rows, cols, depth] = m.size;
  if (spec.alignment < 16) return "addresses are not multiples of 16 bytes";
  const int64_t a_length = m.a_transposed ? rows : depth, b_length = m.b_transposed ? depth : cols;
  std::string refusal = mma_product_refusal(context, cuda::product_mma_shared(), m.operand,
                                            {a_length, b_length, spec.a_step(), spec.b_step()});
  return refusal.empty() ? tiles_refusal(m) : refusal;
}

}  // namespace

CudaProductOffer make_library_product(const CudaProductSpec& spec, const CudaContext& context, int64_t workspace) {
  CudaBlas* const blas = context.services->blas();
  if (!blas) return {nullptr, "there is no cuBLASLt"};
  const int64_t narrow = narrow_bias_bytes(spec.matmul);
  if (workspace < narrow) return {nullptr, "no room for a narrow bias"};
  // Parts of the workspace start at multiples of 256.
  CudaProductOffer offer = blas->prepare(spec, narrow > 0 ? (workspace - narrow) / 256 * 256 : workspace);
  if (offer.call && narrow > 0)
    offer.call = std::make_shared<NarrowBiasProduct>(std::move(offer.call), spec.matmul, context.multiprocessors);
  return offer;
}

CudaProductOffer make_mma_product(const CudaProductSpec& spec, const CudaContext& context, int64_t) {
  if (std::string refusal = mma_refusal(spec, context); !refusal.empty()) return {nullptr, std::move(refusal)};
  return {std::make_shared<TiledProduct>(spec, context.multiprocessors, cuda::launch_product_mma), {}};
}

CudaProductOffer make_tiled_product(const CudaProductSpec& spec, const CudaContext& context, int64_t) {
  if (std::string refusal = tiles_refusal(spec.matmul); !refusal.empty()) return {nullptr, std::move(refusal)};
  return {std::make_shared<TiledProduct>(spec, context.multiprocessors, cuda::launch_product), {}};
}

}  // namespace headroom
