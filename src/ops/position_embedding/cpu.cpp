// CPU kernels of position_embedding and position_embedding_grad. Positions outside the table are clamped.
#include <algorithm>

#include "base/threads.h"
#include "ops/add/simd.h"
#include "ops/position_embedding/operands.h"
#include "ops/stream/scalar_access.h"

namespace headroom {
namespace {

// What is added to the position of a token, row of [batch * seq]: the one offset, the offset of its batch row, or minus
// the start of its segment.
int64_t shift(const KernelCall& call, int64_t row) {
  if (call.inputs.size() <= PositionInputs::shift) return 0;
  const TensorView& shift = call.inputs[PositionInputs::shift];
  const int32_t* const given = shift.as<int32_t>();
  if (shift.dims.size() == 2) return -int64_t{given[row]};
  return given[shift.dims[0] > 1 ? row / call.inputs[PositionInputs::x].dims[1] : 0];
}

// The table's row for a token, clamped to the table.
int64_t position(const KernelCall& call, int64_t first, int64_t row, int64_t table_rows) {
  const int64_t seq = call.outputs[0].dims[1];
  return std::clamp<int64_t>(first + shift(call, row) + row % seq, 0, table_rows - 1);
}

std::unique_ptr<CpuKernel> forward_simd(const KernelSpec& spec) {
  return kernel_of([first = spec.attrs.integer("first")](const KernelCall& call) {
    const TensorView &x = call.inputs[PositionInputs::x], &table = call.inputs[PositionInputs::table],
                     &y = call.outputs[0];
    const int64_t width = x.dims[2], row_bytes = width * dtype_bytes(x.dtype);
    parallel_for(x.dims[0] * x.dims[1], 4, [&](int64_t begin, int64_t end, int) {
      for (int64_t row = begin; row < end; ++row) {
        const std::byte* const from = x.as<std::byte>() + row * row_bytes;
        std::byte* const to = y.as<std::byte>() + row * row_bytes;
        const int64_t at = position(call, first, row, table.dims[0]) * width;
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
    const TensorView& x = call.inputs[PositionInputs::x];
    const int64_t width = x.dims[2];
    for (int64_t i = 0; i < x.count(); ++i) {
      const int64_t row = position(call, first, i / width, call.inputs[PositionInputs::table].dims[0]);
      write_element(call.outputs[0], i,
                    read_element(x, i) + read_element(call.inputs[PositionInputs::table], row * width + i % width));
    }
  });
}

void zero(const TensorView& acc) {
  parallel_for(acc.count(), 4096, [&](int64_t begin, int64_t end, int) {
    std::fill(acc.as<float>() + begin, acc.as<float>() + end, 0.0f);
  });
}

// The table's row that receives a token's gradient; callers skip rows outside the table.
int64_t grad_row(const KernelCall& call, int64_t first, int64_t row) {
  return first + shift(call, row) + row % call.inputs[PositionGradInputs::dy].dims[1];
}

// Each thread owns rows of the table and adds the tokens in order.
std::unique_ptr<CpuKernel> grad_simd(const KernelSpec& spec) {
  return kernel_of([accumulate = std::string(spec.attrs.text("accumulate", "always")),
                    first = spec.attrs.integer("first")](const KernelCall& call) {
    const TensorView &dy = call.inputs[PositionGradInputs::dy], &acc = call.outputs[0];
    const int64_t seq = dy.dims[1], width = dy.dims[2], row_bytes = width * dtype_bytes(dy.dtype);
    if (overwrites(accumulate, call.trip)) zero(acc);
    parallel_for(std::clamp<int64_t>(acc.dims[0] - first, 0, seq), 1, [&](int64_t begin, int64_t end, int) {
      for (int64_t row = 0; row < dy.dims[0] * seq; ++row) {
        const int64_t at = grad_row(call, first, row);
        if (at < first + begin || at >= first + end) continue;
        accumulate_floats(dy.as<std::byte>() + row * row_bytes, dy.dtype, acc.as<float>() + at * width, width);
      }
    });
  });
}

std::unique_ptr<CpuKernel> grad_reference(const KernelSpec& spec) {
  return kernel_of([accumulate = std::string(spec.attrs.text("accumulate", "always")),
                    first = spec.attrs.integer("first")](const KernelCall& call) {
    const TensorView &dy = call.inputs[PositionGradInputs::dy], &acc = call.outputs[0];
    const int64_t width = dy.dims[2];
    if (overwrites(accumulate, call.trip)) zero(acc);
    for (int64_t i = 0; i < dy.count(); ++i) {
      const int64_t at = grad_row(call, first, i / width);
      if (at >= first && at < acc.dims[0])
        acc.as<float>()[at * width + i % width] += static_cast<float>(read_element(dy, i));
    }
  });
}

}  // namespace

void register_position_embedding_cpu(CpuKernels& kernels) {
  kernels.add("position_embedding", simd_and_reference<forward_simd, forward_reference>());
  kernels.add("position_embedding_grad", simd_and_reference<grad_simd, grad_reference>());
}

}  // namespace headroom
