// CPU kernels of split and concat: row copies at memory bandwidth.
#include <cstring>

#include "base/threads.h"
#include "ops/split/parts.h"
#include "ops/stream/scalar_access.h"

namespace headroom {
namespace {

std::unique_ptr<CpuKernel> split_kernel(const KernelSpec& spec) {
  return kernel_of([groups = parse_groups("split", spec.attrs)](const KernelCall& call) {
    const TensorView& x = call.inputs[0];
    const int64_t width = x.dims.back() / groups, size = dtype_bytes(x.dtype), row_bytes = width * size;
    parallel_for(x.count() / width, 8, [&](int64_t begin, int64_t end, int) {
      for (int64_t row = begin; row < end; ++row) {
        const std::byte* from = x.as<std::byte>() + row * row_bytes;
        for (const TensorView& part : call.outputs) {
          const int64_t bytes = part.dims.back() / groups * size;
          std::memcpy(part.as<std::byte>() + row * bytes, from, static_cast<size_t>(bytes));
          from += bytes;
        }
      }
    });
  });
}

std::unique_ptr<CpuKernel> concat_kernel(const KernelSpec& spec) {
  std::vector<int64_t> widths;
  const int64_t groups = parse_groups("concat", spec.attrs);
  for (const ConcreteType& type : spec.inputs) widths.push_back(type.dims.back() / groups);
  return kernel_of([groups, parts = layout_concat(widths, spec.attrs)](const KernelCall& call) {
    const TensorView& y = call.outputs[0];
    const int64_t width = y.dims.back() / groups, size = dtype_bytes(y.dtype), row_bytes = width * size;
    parallel_for(y.count() / width, 8, [&](int64_t begin, int64_t end, int) {
      for (int64_t row = begin; row < end; ++row) {
        std::byte* to = y.as<std::byte>() + row * row_bytes;
        for (const ConcatPart& part : parts) {
          const size_t bytes = static_cast<size_t>(part.size * size);
          if (part.input < 0)
            std::memset(to, 0, bytes);
          else
            std::memcpy(to, call.inputs[static_cast<size_t>(part.input)].as<std::byte>() + row * part.size * size,
                        bytes);
          to += bytes;
        }
      }
    });
  });
}

}  // namespace

void register_split_cpu(CpuKernels& kernels) {
  kernels.add("split", reference_only<split_kernel>());
  kernels.add("concat", reference_only<concat_kernel>());
}

}  // namespace headroom
