// CPU kernels of Muon: products of ops/cpu/matmul.h, with elementwise passes between them.
#include <array>
#include <cmath>

#include "base/threads.h"
#include "ops/cpu/matmul.h"
#include "ops/muon/products.h"
#include "ops/step_scalars.h"
#include "ops/stream/updated_weight.h"

namespace headroom {
namespace {

// Calls body(i) for every element, on the team.
template <class Body>
void for_elements(int64_t count, const Body& body) {
  parallel_for(count, 4096, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) body(i);
  });
}

void scale(const bfloat16* from, float factor, int64_t count, bfloat16* to) {
  for_elements(count, [=](int64_t i) { to[i] = bfloat16(static_cast<float>(from[i]) * factor); });
}

// The square root of the sum of squares; its parts do not depend on the number of threads.
float norm_of(const bfloat16* x, int64_t count, float* parts) {
  const int64_t each = (count + MuonScratch::kNorms - 1) / MuonScratch::kNorms;
  parallel_for(MuonScratch::kNorms, 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t part = begin; part < end; ++part) {
      double sum = 0;
      for (int64_t i = part * each; i < std::min(count, (part + 1) * each); ++i)
        sum += static_cast<double>(static_cast<float>(x[i])) * static_cast<double>(static_cast<float>(x[i]));
      parts[part] = static_cast<float>(sum);
    }
  });
  double sum = 0;
  for (int64_t part = 0; part < MuonScratch::kNorms; ++part) sum += static_cast<double>(parts[part]);
  return static_cast<float>(std::sqrt(sum));
}

class MuonKernel final : public CpuKernel {
 public:
  MuonKernel(const KernelSpec& spec, std::array<std::unique_ptr<Matmul>, 3> products)
      : plan_(spec.attrs), shape_(spec.outputs[MuonOutputs::weight].dims), products_(std::move(products)) {}

  void run(const KernelCall& call) const override {
    const float clip = call.inputs[MuonInputs::clip].as<float>()[0];
    const TensorView* const copy = narrow_copy_of(call, MuonOutputs::copy);
    // If the gradient norm is not finite, the step is skipped.
    if (!std::isfinite(clip)) return refresh_copy(call.outputs[MuonOutputs::weight], copy);
    const float* const hyper = call.inputs[MuonInputs::hyper].as<float>();
    const double lr = static_cast<double>(hyper[kLearningRate]);
    const double decay = plan_.decay ? static_cast<double>(hyper[kWeightDecay]) : 0;
    const auto kept = static_cast<float>(1 - lr * decay), rate = static_cast<float>(lr * shape_.rate_factor(plan_));
    const uint64_t key = step_key(hyper, plan_.tensor);
    const UpdatedWeight weight = updated_weight(call.outputs[MuonOutputs::weight], copy);
    const MuonScratch scratch(shape_, call.scratch.data());
    std::byte* const product = call.scratch.data() + scratch.bytes;
    for (int64_t matrix = 0; matrix < shape_.matrices; ++matrix) {
      const int64_t first = matrix * shape_.elements();
      move_buffer(call.inputs[MuonInputs::gradient].as<float>() + first, clip,
                  call.outputs[MuonOutputs::momentum_buffer].as<float>() + first, scratch.x);
      const bfloat16* const update = orthogonal(scratch, product);
      for_elements(shape_.elements(), [&](int64_t i) {
        const float w = read_updated(weight, first + i);
        write_updated(weight, first + i, w * kept - rate * static_cast<float>(update[i]), key);
      });
    }
  }

 private:
  // Updates the momentum buffer and computes the matrix to orthogonalise.
  void move_buffer(const float* g, float clip, float* buffer, bfloat16* x) const {
    const float momentum = plan_.momentum;
    const bool nesterov = plan_.nesterov;
    for_elements(shape_.elements(), [=](int64_t i) {
      const float clipped = g[i] * clip;
      buffer[i] += (1 - momentum) * (clipped - buffer[i]);
      x[i] = bfloat16(nesterov ? clipped + momentum * (buffer[i] - clipped) : buffer[i]);
    });
  }

  const bfloat16* orthogonal(const MuonScratch& scratch, std::byte* product) const {
    const int64_t elements = shape_.elements(), square = shape_.narrow() * shape_.narrow();
    bfloat16 *x = scratch.x, *next = scratch.next;
    const float norm = std::max(kMuonLeastNorm, norm_of(x, elements, scratch.norms));
    const float rounded = static_cast<float>(bfloat16(norm));
    for_elements(elements, [=](int64_t i) { x[i] = bfloat16(static_cast<float>(x[i]) / rounded); });
    for (int64_t step = 0; step < plan_.steps; ++step) {
      products_[0]->run({x, x, scratch.gram, nullptr, nullptr, product});
      scale(scratch.gram, kMuonQuintic, square, scratch.scaled);
      scale(scratch.gram, kMuonCubic, square, scratch.sum);
      products_[1]->run({scratch.scaled, scratch.gram, scratch.sum, nullptr, scratch.sum, product});
      scale(x, kMuonLinear, elements, next);
      const bfloat16 *a = shape_.is_tall() ? x : scratch.sum, *b = shape_.is_tall() ? scratch.sum : x;
      products_[2]->run({a, b, next, nullptr, next, product});
      std::swap(x, next);
    }
    return x;
  }

  MuonPlan plan_;
  MuonShape shape_;
  std::array<std::unique_ptr<Matmul>, 3> products_;  // gram, square, move
};

template <MatmulMaker make>
KernelOffer make_muon(const KernelSpec& spec, const DeviceFacts& facts) {
  const MuonShape shape(spec.outputs[MuonOutputs::weight].dims);
  const int64_t own = MuonScratch(shape).bytes;
  HR_CHECK(spec.scratch_bytes >= own, "muon: {} bytes of scratch", spec.scratch_bytes);
  std::array<std::unique_ptr<Matmul>, 3> products;
  const MuonProducts of(shape);
  const MatmulSpec* const specs[] = {&of.gram, &of.square, &of.move};
  for (size_t i = 0; i < products.size(); ++i) {
    MatmulOffer offer = make(*specs[i], facts, spec.scratch_bytes - own);
    if (!offer.matmul) return {nullptr, offer.refusal};
    products[i] = std::move(offer.matmul);
  }
  return {std::make_unique<MuonKernel>(spec, std::move(products)), {}};
}

}  // namespace

void register_muon_cpu(CpuKernels& kernels) {
  kernels.add("muon", {{"amx", make_muon<make_amx_matmul>},
                       {"onednn", make_muon<make_onednn_matmul>},
                       {"simd", make_muon<make_simd_matmul>},
                       {"reference", make_muon<make_reference_matmul>}});
}

}  // namespace headroom
