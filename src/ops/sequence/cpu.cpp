// CPU kernels of sequence_lengths, padding_starts and zero_ids.
#include <algorithm>

#include "ops/linear_cross_entropy/shape.h"
#include "ops/stream/scalar_access.h"

namespace headroom {
namespace {

std::unique_ptr<CpuKernel> lengths_kernel(const KernelSpec& spec) {
  return kernel_of([pad = static_cast<int32_t>(spec.attrs.integer("pad"))](const KernelCall& call) {
    const TensorView& ids = call.inputs[0];
    for (int64_t row = 0; row < ids.dims[0]; ++row) {
      const int32_t* const tokens = ids.as<int32_t>() + row * ids.dims[1];
      int64_t length = ids.dims[1];
      while (length > 1 && tokens[length - 1] == pad) --length;
      call.outputs[0].as<int32_t>()[row] = static_cast<int32_t>(length);
    }
  });
}

std::unique_ptr<CpuKernel> starts_kernel(const KernelSpec& spec) {
  return kernel_of([pad = static_cast<int32_t>(spec.attrs.integer("pad"))](const KernelCall& call) {
    const int64_t seq = call.inputs[0].dims[1];
    const int32_t* const ids = call.inputs[0].as<int32_t>();
    int32_t* const starts = call.outputs[0].as<int32_t>();
    int32_t paddings = 0;
    for (int64_t i = 0; i < call.inputs[0].count(); ++i) {
      if (i % seq == 0) paddings = 0;
      const bool padding = ids[i] == pad;
      starts[i] = padding ? static_cast<int32_t>(i % seq) + 1 : paddings;
      paddings += padding ? 1 : 0;
    }
  });
}

std::unique_ptr<CpuKernel> zeros_kernel(const KernelSpec&) {
  return kernel_of(
      [](const KernelCall& call) { std::fill_n(call.outputs[0].as<int32_t>(), call.outputs[0].count(), 0); });
}

std::unique_ptr<CpuKernel> labels_kernel(const KernelSpec&) {
  return kernel_of([](const KernelCall& call) {
    const TensorView& labels = call.inputs[0];
    const Targets targets{labels.as<int32_t>(), labels.dims[1], true};
    for (int64_t row = 0; row < labels.count(); ++row) call.outputs[0].as<int32_t>()[row] = targets.at(row);
  });
}

}  // namespace

void register_sequence_cpu(CpuKernels& kernels) {
  kernels.add("sequence_lengths", reference_only<lengths_kernel>());
  kernels.add("padding_starts", reference_only<starts_kernel>());
  kernels.add("zero_ids", reference_only<zeros_kernel>());
  kernels.add("next_labels", reference_only<labels_kernel>());
}

}  // namespace headroom
