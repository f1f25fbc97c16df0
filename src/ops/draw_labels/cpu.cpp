// Draws labels on the CPU: the logits of a chunk of rows, and a label for each row.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "base/threads.h"
#include "ops/cpu/kernel.h"
#include "ops/cpu/matmul.h"
#include "ops/draw_labels/cpu_draw_scratch.h"
#include "ops/draw_labels/draw.h"
#include "ops/stream/counter_bits.h"

namespace headroom {
namespace {

// The entry that the number `u` in (0, 1) draws from the softmax of the logits, which are overwritten.
int32_t drawn_entry(float* logits, int64_t count, float cap, double u) {
  if (cap > 0)
    for (int64_t i = 0; i < count; ++i) logits[i] = cap * std::tanh(logits[i] / cap);
  const float largest = *std::max_element(logits, logits + count);
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) {
    logits[i] = std::exp(logits[i] - largest);
    sum += static_cast<double>(logits[i]);
  }
  double left = u * sum;
  int64_t at = 0;
  while (at + 1 < count && !((left -= static_cast<double>(logits[at])) < 0)) ++at;
  return static_cast<int32_t>(at);
}

class DrawLabelsKernel final : public CpuKernel {
 public:
  DrawLabelsKernel(const KernelSpec& spec, const DeviceFacts& facts)
      : shape_(loss_shape(spec.call())),
        scratch_(cpu_draw_scratch(shape_, spec.inputs[DrawInputs::x].dtype, facts)),
        dtype_(spec.inputs[DrawInputs::x].dtype),
        softcap_(static_cast<float>(spec.attrs.real("softcap", 0))) {
    scratch_.workspace = spec.scratch_bytes - scratch_.logits;
  }

  // Creates the products. Returns the reason if one is refused, else an empty string.
  std::string prepare(MatmulMaker make, const DeviceFacts& facts) {
    if (scratch_.workspace < 0) return "its scratch is not booked";
    for (const int64_t rows : {shape_.chunk, shape_.rows % shape_.chunk}) {
      if (rows == 0) continue;
      MatmulOffer offer = make(logits_product(shape_, dtype_, rows), facts, scratch_.workspace);
      if (!offer.matmul) return offer.refusal;
      products_.push_back(std::move(offer.matmul));
    }
    return {};
  }

  void run(const KernelCall& call) const override {
    const TensorView &labels = call.inputs[DrawInputs::labels], &drawn = call.outputs[0];
    std::memcpy(drawn.data, labels.data, static_cast<size_t>(labels.count()) * sizeof(int32_t));
    const float* const hyper = call.inputs[DrawInputs::hyper].as<float>();
    if (!(hyper[kDrawnLabels] > 0)) return;
    const Targets targets{labels.as<int32_t>(), shape_.sequence, shape_.shift};
    for (int64_t first = 0; first < shape_.rows; first += shape_.chunk) {
      const int64_t end = std::min(shape_.rows, first + shape_.chunk);
      int64_t wanted = 0;
      for (int64_t row = first; row < end; ++row) wanted += targets.at(row) != Targets::kNone;
      if (wanted > 0) draw_chunk(call, targets, first, end - first, step_key(hyper, kDrawnLabelKey));
    }
  }

 private:
  void draw_chunk(const KernelCall& call, const Targets& targets, int64_t first, int64_t rows, uint64_t key) const {
    const auto* const x = call.inputs[DrawInputs::x].as<std::byte>();
    auto* const logits = reinterpret_cast<float*>(call.scratch.data());
    const float* const bias = shape_.bias ? call.inputs[DrawInputs::bias].as<float>() : nullptr;
    const Matmul& product = rows == shape_.chunk ? *products_.front() : *products_.back();
    product.run({x + first * shape_.hidden * dtype_bytes(dtype_), call.inputs[DrawInputs::weight].data, logits, bias,
                 nullptr, call.scratch.data() + scratch_.logits});
    int32_t* const drawn = call.outputs[0].as<int32_t>();
    const int64_t first_row = call.trip * (shape_.rows / shape_.sequence);
    parallel_for(rows, 1, [&](int64_t begin, int64_t end, int) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t row = first + i;
        if (targets.at(row) == Targets::kNone) continue;
        const uint64_t index = draw_index(first_row + row / shape_.sequence, row % shape_.sequence);
        const double u = open_unit_interval(counter_bits(block_key(key, index), index));
        drawn[row + int64_t{shape_.shift}] =
            drawn_entry(logits + i * shape_.vocabulary, shape_.vocabulary, softcap_, u);
      }
    });
  }

  LossShape shape_;
  CpuDrawScratch scratch_;
  DType dtype_;
  float softcap_;
  std::vector<std::unique_ptr<Matmul>> products_;
};

template <MatmulMaker make>
KernelOffer make_draw(const KernelSpec& spec, const DeviceFacts& facts) {
  auto kernel = std::make_unique<DrawLabelsKernel>(spec, facts);
  std::string refusal = kernel->prepare(make, facts);
  if (!refusal.empty()) return {nullptr, std::move(refusal)};
  return {std::move(kernel), {}};
}

// Plain loops need no workspace.
KernelOffer make_reference(const KernelSpec& spec, const DeviceFacts& facts) {
  DeviceFacts plain = facts;
  plain.capabilities = {};
  return make_draw<make_reference_matmul>(spec, plain);
}

}  // namespace

void register_draw_labels_cpu(CpuKernels& kernels) {
  kernels.add("draw_labels", {{"amx", make_draw<make_amx_matmul>},
                              {"onednn", make_draw<make_onednn_matmul>},
                              {"simd", make_draw<make_simd_matmul>},
                              {"reference", make_reference}});
}

}  // namespace headroom
