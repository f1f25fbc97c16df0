// A slice of the vocabulary, for some rows after the other and some of its entries after the other.
#include <algorithm>

#include "base/error.h"
#include "ops/cpu/kernel.h"
#include "ops/cross_entropy_slice/shape.h"
#include "ops/linear_cross_entropy/cpu_chunk.h"
#include "ops/linear_cross_entropy/cpu_slice_products.h"
#include "ops/stream/scalar_access.h"

namespace headroom {
namespace {

LossOptions options_of(const KernelSpec& spec) {
  LossOptions options;
  options.gradient = spec.op == "cross_entropy_slice_grad";
  options.trains = spec.attrs.integer("train_weight") != 0;
  options.weight_carried = options.trains && spec.attrs.text("accumulate", "always") == "carried";
  options.softcap = static_cast<float>(spec.attrs.real("softcap", 0));
  return options;
}

RowSoftmax read_row(const double* row) { return {static_cast<float>(row[0]), static_cast<float>(row[1]), row[2]}; }

void write_row(const RowSoftmax& softmax, double* row) {
  row[0] = static_cast<double>(softmax.largest);
  row[1] = static_cast<double>(softmax.chosen);
  row[2] = softmax.sum;
}

class SliceKernel final : public CpuKernel {
 public:
  SliceKernel(const KernelSpec& spec, const DeviceFacts& facts)
      : shape_(loss_shape(spec.call())),
        options_(options_of(spec)),
        dtype_(spec.inputs[SliceInputs::x].dtype),
        slices_(cut_slice(shape_)),
        adds_(options_.gradient ? spec.attrs.integer("adds") != 0 : spec.inputs.size() > SliceInputs::softmax),
        workspace_(slice_workspace(shape_, slices_, dtype_, facts, options_.gradient, options_.trains)),
        products_(shape_, options_, slices_, dtype_),
        softmax_(simd_slice_softmax()) {}

  // Creates the products. Returns the reason if one is refused, else an empty string.
  std::string prepare(MatmulMaker make, const DeviceFacts& facts) { return products_.prepare(make, facts, workspace_); }

  void run(const KernelCall& call) const override {
    Carver carver(call.scratch.data());
    const SliceScratch scratch = slice_scratch(carver, slices_, workspace_);
    for (int64_t first = 0; first < shape_.rows; first += slices_.rows) {
      const Pass pass{call, scratch, first, std::min(slices_.rows, shape_.rows - first)};
      if (options_.gradient)
        add_gradients(pass);
      else
        add_logits(pass);
    }
  }

 private:
  // Rows that are computed together.
  struct Pass {
    const KernelCall& call;
    const SliceScratch& scratch;
    int64_t first = 0, rows = 0;
  };

  template <typename Body>
  void each_piece(Body body) const {
    for (int64_t first = 0; first < shape_.vocabulary; first += slices_.entries)
      body(first, std::min(slices_.entries, shape_.vocabulary - first));
  }

  SliceOperands operands_of(const Pass& pass, int64_t entry, int64_t entries) const {
    return {pass.first,
            pass.rows,
            entries,
            {pass.call.inputs[SliceInputs::labels].as<int32_t>(), shape_.sequence, shape_.shift},
            row_of(pass.call.inputs[SliceInputs::x], pass.first, shape_.hidden),
            row_of(pass.call.inputs[SliceInputs::weight], entry, shape_.hidden),
            nullptr,
            options_.gradient ? *pass.call.inputs[SliceGradInputs::scale].as<float>() : 1.0f,
            pass.scratch.logits,
            pass.scratch.workspace};
  }

  void add_logits(const Pass& pass) const {
    double* const kept = pass.call.outputs[0].as<double>() + pass.first * kRowSoftmaxFields;
    for (int64_t row = 0; row < pass.rows; ++row)
      pass.scratch.softmax[row] = adds_ ? read_row(kept + row * kRowSoftmaxFields) : RowSoftmax{};
    each_piece([&](int64_t entry, int64_t entries) {
      const LossRows rows = products_.logits_of(operands_of(pass, entry, entries));
      softmax_.add(rows, pass.call.first_row + entry, pass.scratch.softmax);
    });
    for (int64_t row = 0; row < pass.rows; ++row) write_row(pass.scratch.softmax[row], kept + row * kRowSoftmaxFields);
  }

  void add_gradients(const Pass& pass) const {
    const double* const kept = pass.call.inputs[SliceGradInputs::softmax].as<double>() + pass.first * kRowSoftmaxFields;
    for (int64_t row = 0; row < pass.rows; ++row) pass.scratch.softmax[row] = read_row(kept + row * kRowSoftmaxFields);
    float* const dx = pass.call.outputs[0].as<float>() + pass.first * shape_.hidden;
    const bool overwrite = options_.weight_carried && pass.call.trip == 0 && pass.first == 0;
    each_piece([&](int64_t entry, int64_t entries) {
      const SliceOperands operands = operands_of(pass, entry, entries);
      softmax_.write_gradient(products_.logits_of(operands), pass.call.first_row + entry, pass.scratch.softmax);
      products_.add_dx(operands, dx, adds_ || entry > 0);
      if (options_.trains)
        products_.add_dw(operands, pass.call.outputs[1].as<float>() + entry * shape_.hidden, !overwrite);
    });
  }

  LossShape shape_;
  LossOptions options_;
  DType dtype_;
  LossSlices slices_;
  bool adds_;          // to the softmax or to dx
  int64_t workspace_;  // bytes
  SliceProducts products_;
  SliceSoftmax softmax_;
};

template <MatmulMaker make>
KernelOffer make_slice(const KernelSpec& spec, const DeviceFacts& facts) {
  const LossOptions options = options_of(spec);
  const int64_t needed = slice_scratch_bytes(loss_shape(spec.call()), spec.inputs[SliceInputs::x].dtype, facts,
                                             options.gradient, options.trains);
  if (needed > spec.scratch_bytes)
    return {nullptr, fmt::format("needs {} bytes of scratch, {} are booked", needed, spec.scratch_bytes)};
  auto kernel = std::make_unique<SliceKernel>(spec, facts);
  if (std::string refusal = kernel->prepare(make, facts); !refusal.empty()) return {nullptr, std::move(refusal)};
  return {std::move(kernel), {}};
}

// Plain loops need no workspace.
KernelOffer make_reference(const KernelSpec& spec, const DeviceFacts& facts) {
  DeviceFacts plain = facts;
  plain.capabilities = {};
  return make_slice<make_reference_matmul>(spec, plain);
}

// Adds the losses of all rows. The host only gives labels that the model accepts (data/batch_reader.h).
std::unique_ptr<CpuKernel> make_sum(const KernelSpec& spec) {
  const std::vector<int64_t>& dims = spec.inputs[SliceSumInputs::labels].dims;
  const int64_t sequence = dims.back(), rows = element_count(dims), vocabulary = spec.attrs.integer("vocabulary");
  const bool shift = spec.attrs.integer("shift", 1) != 0, hits = spec.attrs.integer("hits") != 0;
  const bool carried = spec.attrs.text("accumulate", "always") == "carried";
  return kernel_of([=](const KernelCall& call) {
    const Targets targets{call.inputs[SliceSumInputs::labels].as<int32_t>(), sequence, shift};
    const double* const softmax = call.inputs[SliceSumInputs::softmax].as<double>();
    LossSums found;
    int64_t counted = 0;
    for (int64_t row = 0; row < rows; ++row) {
      const int32_t target = targets.at(row);
      if (target == Targets::kNone) continue;
      require_label(target, row, sequence, shift, vocabulary);
      const RowSoftmax of_row = read_row(softmax + row * kRowSoftmaxFields);
      found.loss += of_row.loss();
      found.hits += of_row.hit() ? 1 : 0;
      ++counted;
    }
    add_sums(call.outputs[0].as<double>(), found, counted, hits, !carried || call.trip != 0);
  });
}

}  // namespace

void register_cross_entropy_slice_cpu(CpuKernels& kernels) {
  for (const char* op : {"cross_entropy_slice", "cross_entropy_slice_grad"})
    kernels.add(op, {{"amx", make_slice<make_amx_matmul>},
                     {"onednn", make_slice<make_onednn_matmul>},
                     {"simd", make_slice<make_simd_matmul>},
                     {"reference", make_reference}});
  kernels.add("cross_entropy_sum", reference_only<make_sum>());
}

}  // namespace headroom
