#include "ops/linear/cuda_fp8_product.h"

#include "ops/linear/cuda_fp8.h"
#include "ops/linear/cuda_fp8_scratch.h"

namespace headroom {
namespace {

// The codes are before the library's workspace, A as [rows, depth] and B as [cols, depth], the only layout that the
// library multiplies on every device.
class Fp8Product final : public CudaProduct {
 public:
  Fp8Product(std::shared_ptr<const CudaProduct> product, const CudaProductSpec& spec, Fp8Format a, Fp8Format b,
             int multiprocessors)
      : product_(std::move(product)),
        layout_(spec.matmul.size),
        a_(matrix(spec.matmul.size.rows, spec.matmul.size.depth, spec.matmul.a_transposed, a)),
        b_(matrix(spec.matmul.size.cols, spec.matmul.size.depth, !spec.matmul.b_transposed, b)),
        multiprocessors_(multiprocessors) {}

  int64_t workspace_bytes() const override { return layout_.total + product_->workspace_bytes(); }

  void run(const CudaProductArguments& arguments, CudaStream stream) const override {
    std::byte* const front = static_cast<std::byte*>(arguments.workspace);
    CudaProductArguments inner = arguments;
    inner.a = round(a_, arguments.a, front, {layout_.a_codes, layout_.a_scale, layout_.a_parts}, stream);
    inner.b = round(b_, arguments.b, front, {layout_.b_codes, layout_.b_scale, layout_.b_parts}, stream);
    inner.a_scale = reinterpret_cast<const float*>(front + layout_.a_scale);
    inner.b_scale = reinterpret_cast<const float*>(front + layout_.b_scale);
    inner.workspace = front + layout_.total;
    product_->run(inner, stream);
  }

 private:
  struct Offsets {
    int64_t codes, scale, parts;
  };

  // An operand needed as [rows, depth] and stored that way or transposed.
  static cuda::Fp8Matrix matrix(int64_t rows, int64_t depth, bool transposed, Fp8Format format) {
    cuda::Fp8Matrix operand;
    operand.rows = transposed ? depth : rows;
    operand.cols = transposed ? rows : depth;
    operand.transposed = transposed;
    operand.format = format;
    return operand;
  }

  const void* round(cuda::Fp8Matrix operand, const void* from, std::byte* front, const Offsets& at,
                    CudaStream stream) const {
    operand.from = from;
    operand.codes = reinterpret_cast<uint8_t*>(front + at.codes);
    operand.scale = reinterpret_cast<float*>(front + at.scale);
    operand.parts = reinterpret_cast<uint32_t*>(front + at.parts);
    operand.part_count = kFp8Parts;
    cuda::launch_fp8_codes(operand, multiprocessors_, stream);
    return operand.codes;
  }

  std::shared_ptr<const CudaProduct> product_;
  Fp8Layout layout_;
  cuda::Fp8Matrix a_, b_;
  int multiprocessors_;
};

}  // namespace

CudaProductOffer make_fp8_product(const CudaProductSpec& spec, Fp8Format a, Fp8Format b, const CudaContext& context,
                                  int64_t workspace) {
  const MatmulSpec& m = spec.matmul;
  if (m.operand != DType::bf16) return {nullptr, "the operands are not bf16"};
  if (!has_fp8_tensor_cores(context.facts)) return {nullptr, "no fp8 tensor cores below compute capability 8.9"};
  if (!fits_fp8(m.size.rows, m.size.cols, m.size.depth)) return {nullptr, "a size is not a multiple of 16"};
  if (spec.a_stride != 0 || spec.b_stride != 0) return {nullptr, "rows of an operand are apart"};
  if (m.bias && m.result == DType::f32) return {nullptr, "the library adds no f32 bias to an fp8 product"};
  const int64_t front = Fp8Layout(m.size).total;
  if (workspace < front) return {nullptr, "no room for the codes"};
  CudaProductSpec codes = spec;
  codes.matmul.a_transposed = false;
  codes.matmul.b_transposed = true;
  codes.a_format = a;
  codes.b_format = b;
  CudaProductOffer offer = make_library_product(codes, context, workspace - front);
  if (offer.call) offer.call = std::make_shared<Fp8Product>(std::move(offer.call), spec, a, b, context.multiprocessors);
  return offer;
}

}  // namespace headroom
