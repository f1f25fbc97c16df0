// CUDA kernels of split and concat.
#include <algorithm>

#include "ops/cuda/kernel.h"
#include "ops/split/cuda_kernels.h"
#include "ops/split/parts.h"

namespace headroom {
namespace {

// Where the parts are in a row of the joined tensor. `tensor`: a part's index among the call's operands, or -1.
struct Layout {
  std::vector<int64_t> begin{0};  // in units
  std::vector<int> tensor;
  int64_t rows = 0;
  int unit = 16;  // bytes

  // `sizes` are the elements of one group.
  Layout(const ConcreteType& joined, int64_t groups, std::span<const ConcatPart> parts) {
    const int64_t bytes = dtype_bytes(joined.dtype);
    for (const ConcatPart& part : parts)
      while (part.size * bytes % unit != 0) unit /= 2;
    for (const ConcatPart& part : parts) {
      begin.push_back(begin.back() + part.size * bytes / unit);
      tensor.push_back(part.input);
    }
    rows = element_count(joined.dims) / (joined.dims.back() / groups);
  }

  void launch(const TensorView& joined, std::span<const TensorView> operands, bool join, int multiprocessors,
              CudaStream stream) const {
    for (size_t first = 0; first < tensor.size(); first += cuda::kMostParts) {
      cuda::ColumnParts args;
      args.joined = joined.data;
      args.rows = rows;
      args.stride = begin.back();
      args.parts = static_cast<int>(std::min<size_t>(cuda::kMostParts, tensor.size() - first));
      args.begin[0] = begin[first];
      for (int p = 0; p < args.parts; ++p) {
        const size_t at = first + static_cast<size_t>(p);
        args.part[p] = tensor[at] < 0 ? nullptr : operands[static_cast<size_t>(tensor[at])].data;
        args.begin[p + 1] = begin[at + 1];
      }
      cuda::launch_column_parts(args, unit, join, multiprocessors, stream);
    }
  }
};

std::unique_ptr<CudaKernel> make_split(const KernelSpec& spec, const CudaContext& context) {
  std::vector<ConcatPart> parts;
  for (int64_t size : parse_sizes("split", spec.attrs)) parts.push_back({size, static_cast<int>(parts.size())});
  return cuda_kernel_of([layout = Layout(spec.inputs[0], parse_groups("split", spec.attrs), parts),
                         multiprocessors = context.multiprocessors](const KernelCall& call, CudaStream stream) {
    layout.launch(call.inputs[0], call.outputs, false, multiprocessors, stream);
  });
}

std::unique_ptr<CudaKernel> make_concat(const KernelSpec& spec, const CudaContext& context) {
  const int64_t groups = parse_groups("concat", spec.attrs);
  std::vector<int64_t> widths;
  for (const ConcreteType& type : spec.inputs) widths.push_back(type.dims.back() / groups);
  return cuda_kernel_of([layout = Layout(spec.outputs[0], groups, layout_concat(widths, spec.attrs)),
                         multiprocessors = context.multiprocessors](const KernelCall& call, CudaStream stream) {
    layout.launch(call.outputs[0], call.inputs, true, multiprocessors, stream);
  });
}

}  // namespace

void register_split_cuda(CudaKernels& kernels) {
  kernels.add("split", one_cuda_kernel<make_split>());
  kernels.add("concat", one_cuda_kernel<make_concat>());
}

}  // namespace headroom
