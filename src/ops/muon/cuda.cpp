// CUDA kernels of muon: products, as for the linear layer, and passes over elements between them.
#include <array>
#include <utility>

#include "ops/cuda/kernel.h"
#include "ops/linear/cuda_product.h"
#include "ops/muon/cuda_kernels.h"
#include "ops/muon/products.h"

namespace headroom {
namespace {

static_assert(cuda::kMuonNormParts == MuonScratch::kNorms);

class MuonCuda final : public CudaKernel {
 public:
  MuonCuda(const KernelSpec& spec, int multiprocessors, std::array<std::shared_ptr<const CudaProduct>, 3> products)
      : plan_(spec.attrs),
        shape_(spec.outputs[MuonOutputs::weight].dims),
        weight_(float_type(spec.outputs[MuonOutputs::weight].dtype)),
        multiprocessors_(multiprocessors),
        products_(std::move(products)) {
    args_.count = shape_.elements();
    args_.momentum = plan_.momentum;
    args_.least_norm = kMuonLeastNorm;
    args_.rate_factor = shape_.rate_factor(plan_);
    args_.tensor = plan_.tensor;
    args_.nesterov = plan_.nesterov;
    args_.decay = plan_.decay;
  }

  void enqueue(const KernelCall& call, CudaStream stream) const override {
    const MuonScratch scratch(shape_, call.scratch.data());
    cuda::MuonArgs a = args_;
    a.w = call.outputs[MuonOutputs::weight].data;
    a.copy = narrow_copy(call, MuonOutputs::copy);
    a.hyper = call.inputs[MuonInputs::hyper].as<float>();
    a.clip = call.inputs[MuonInputs::clip].as<float>();
    a.norms = scratch.norms;
    for (int64_t matrix = 0; matrix < shape_.matrices; ++matrix) {
      a.first = matrix * shape_.elements();
      a.g = call.inputs[MuonInputs::gradient].as<float>() + a.first;
      a.buffer = call.outputs[MuonOutputs::momentum_buffer].as<float>() + a.first;
      a.x = scratch.x;
      cuda::launch_muon_begin(a, multiprocessors_, stream);
      a.x = iterate(scratch, call.scratch.data() + scratch.bytes, stream);
      cuda::launch_muon_end(weight_, a, multiprocessors_, stream);
    }
  }

 private:
  bfloat16* iterate(const MuonScratch& scratch, void* workspace, CudaStream stream) const {
    const auto scale = [&](const bfloat16* from, float factor, int64_t count, bfloat16* to) {
      cuda::launch_muon_scale(from, factor, count, to, multiprocessors_, stream);
    };
    const int64_t square = shape_.narrow() * shape_.narrow();
    bfloat16 *x = scratch.x, *next = scratch.next;
    for (int64_t step = 0; step < plan_.steps; ++step) {
      products_[0]->run({x, x, scratch.gram, nullptr, nullptr, workspace}, stream);
      scale(scratch.gram, kMuonQuintic, square, scratch.scaled);
      scale(scratch.gram, kMuonCubic, square, scratch.sum);
      products_[1]->run({scratch.scaled, scratch.gram, scratch.sum, nullptr, scratch.sum, workspace}, stream);
      scale(x, kMuonLinear, shape_.elements(), next);
      const bfloat16 *a = shape_.is_tall() ? x : scratch.sum, *b = shape_.is_tall() ? scratch.sum : x;
      products_[2]->run({a, b, next, nullptr, next, workspace}, stream);
      std::swap(x, next);
    }
    return x;
  }

  MuonPlan plan_;
  MuonShape shape_;
  cuda::FloatType weight_;
  int multiprocessors_;
  cuda::MuonArgs args_;
  std::array<std::shared_ptr<const CudaProduct>, 3> products_;  // gram, square, move
};

template <CudaProductMaker make>
CudaOffer make_muon(const KernelSpec& spec, const CudaContext& context) {
  const MuonShape shape(spec.outputs[MuonOutputs::weight].dims);
  const int64_t own = MuonScratch(shape).bytes;
  HR_CHECK(spec.scratch_bytes >= own, "muon: {} bytes of scratch", spec.scratch_bytes);
  const MuonProducts of(shape);
  const MatmulSpec* const specs[] = {&of.gram, &of.square, &of.move};
  std::array<std::shared_ptr<const CudaProduct>, 3> products;
  for (size_t i = 0; i < products.size(); ++i) {
    CudaProductSpec product;
    product.matmul = *specs[i];
    product.alignment = 64;  // the alignment of scratch parts
    CudaProductOffer offer = make(product, context, spec.scratch_bytes - own);
    if (!offer.call) return {nullptr, offer.refusal};
    products[i] = std::move(offer.call);
  }
  return {std::make_unique<MuonCuda>(spec, context.multiprocessors, std::move(products)), {}};
}

}  // namespace

void register_muon_cuda(CudaKernels& kernels) {
  kernels.add("muon", {{"cublaslt", make_muon<make_library_product>}, {"plain", make_muon<make_tiled_product>}});
}

}  // namespace headroom
