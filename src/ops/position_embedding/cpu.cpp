// CPU kernels of position_embedding and position_embedding_grad. Positions outside the table are clamped.
#include <algorithm>

#include "base/threads.h"
#include "ops/add/simd.h"
#include "ops/stream/scalar_access.h"

namespace headroom {
namespace {

int64_t position(const KernelCall& call, int64_t first, int64_t s) {
  const int64_t offset = call.inputs.size() == 3 ? call.inputs[2].as<int32_t>()[0] : 0;
  return std::clamp<int64_t>(first + offset + s, 0, call.inputs[1].dims[0] - 1);
}

std::unique_ptr<CpuKernel> forward_simd(const KernelSpec& spec) {
  return kernel_of([first = spec.attrs.integer("first")](const KernelCall& call) {
    const TensorView &x = call.inputs[0], &table = call.inputs[1], &y = call.outputs[0];
    const int64_t width = x.dims[2], row_bytes = width * dtype_bytes(x.dtype);
    parallel_for(x.dims[0] * x.dims[1], 4, [&](int64_t begin, int64_t end, int) {
      for (int64_t row = begin; row < end; ++row) {
        const std::byte* const from = x.as<std::byte>() + row * row_bytes;
        std::byte* const to = y.as<std::byte>() + row * row_bytes;
        const int64_t at = position(call, first, row % x.dims[1]) * width;
        if (table.dtype == x.dtype)
          add_floats(from, table.as<std::byte>() + at * dtype_bytes(table.dtype), to, x.dtype, width);
        else
          add_f32(from, table.as<float>() + at, to, x.dtype, width);
      }
    });
  });
}

std::unique_ptr<CpuKernel> forward_reference(const KernelSpec& spec) {
  return kernel_of([first = spec.attrs.integer("first")](const KernelCall& call) {
    const TensorView& x = call.inputs[0];
    const int64_t width = x.dims[2];
    for (int64_t i = 0; i < x.count(); ++i) {
      const int64_t row = position(call, first, i / width % x.dims[1]);
      write_element(call.outputs[0], i, read_element(x, i) + read_element(call.inputs[1], row * width + i % width));
    }
  });
}

void zero(const TensorView& acc) {
  parallel_for(acc.count(), 4096, [&](int64_t begin, int64_t end, int) {
    std::fill(acc.as<float>() + begin, acc.as<float>() + end, 0.0f);
  });
}

// Each thread owns table rows and takes the batch in order.
std::unique_ptr<CpuKernel> grad_simd(const KernelSpec& spec) {
  return kernel_of([accumulate = std::string(spec.attrs.text("accumulate", "always")),
                    first = spec.attrs.integer("first")](const KernelCall& call) {
    const TensorView &dy = call.inputs[0], &acc = call.outputs[0];
    const int64_t seq = dy.dims[1], width = dy.dims[2], row_bytes = width * dtype_bytes(dy.dtype);
    if (overwrites(accumulate, call.trip)) zero(acc);
    parallel_for(std::clamp<int64_t>(acc.dims[0] - first, 0, seq), 1, [&](int64_t begin, int64_t end, int) {
      for (int64_t s = begin; s < end; ++s)
        for (int64_t b = 0; b < dy.dims[0]; ++b)
          accumulate_floats(dy.as<std::byte>() + (b * seq + s) * row_bytes, dy.dtype,
                            acc.as<float>() + (first + s) * width, width);
    });
  });
}

std::unique_ptr<CpuKernel> grad_reference(const KernelSpec& spec) {
  return kernel_of([accumulate = std::string(spec.attrs.text("accumulate", "always")),
                    first = spec.attrs.integer("first")](const KernelCall& call) {
    const TensorView &dy = call.inputs[0], &acc = call.outputs[0];
    const int64_t seq = dy.dims[1], width = dy.dims[2];
    if (overwrites(accumulate, call.trip)) zero(acc);
    for (int64_t i = 0; i < dy.count(); ++i) {
      const int64_t s = first + i / width % seq;
      if (s < acc.dims[0]) acc.as<float>()[s * width + i % width] += static_cast<float>(read_element(dy, i));
    }
  });
}

}  // namespace

void register_position_embedding_cpu(CpuKernels& kernels) {
  kernels.add("position_embedding", simd_and_reference<forward_simd, forward_reference>());
  kernels.add("position_embedding_grad", simd_and_reference<grad_simd, grad_reference>());
}

}  // namespace headroom
