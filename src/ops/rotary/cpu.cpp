// CPU kernels of rotary and rope_table.
#include <algorithm>
#include <cmath>

#include "base/threads.h"
#include "ops/rotary/frequencies.h"
#include "ops/rotary/operands.h"
#include "ops/rotary/simd.h"
#include "ops/stream/scalar_access.h"

namespace headroom {
namespace {

// What is added to the positions of a call's rows: one offset, one for each batch row, or minus the start of each row's
// segment.
struct Shift {
  int64_t offset = 0;
  const int32_t* offsets = nullptr;
  const int32_t* starts = nullptr;
  int64_t seq = 1;

  explicit Shift(const KernelCall& call) {
    if (call.inputs.size() <= RotaryInputs::shift) return;
    const int32_t* const given = call.inputs[RotaryInputs::shift].as<int32_t>();
    seq = call.inputs[RotaryInputs::x].dims[1];
    if (call.inputs[RotaryInputs::shift].dims.size() == 2)
      starts = given;
    else if (call.inputs[RotaryInputs::shift].dims[0] > 1)
      offsets = given;
    else
      offset = *given;
  }
  int64_t of(int64_t row) const { return starts ? -int64_t{starts[row]} : offsets ? offsets[row / seq] : offset; }
};

std::unique_ptr<CpuKernel> rotary_simd(const KernelSpec& spec) {
  return kernel_of(
      [heads = spec.attrs.integer("heads"), inverse = spec.attrs.integer("inverse") != 0](const KernelCall& call) {
        const TensorView &x = call.inputs[RotaryInputs::x], &table = call.inputs[RotaryInputs::table];
        RotaryRows args;
        args.x = x.data;
        args.y = call.outputs[0].data;
        args.table = table.as<float>();
        args.table_rows = table.dims[0];
        args.seq = x.dims[1];
        args.heads = heads;
        args.head_dim = x.dims[2] / heads;
        args.turned = table.dims[1];
        const Shift shift(call);
        args.offset = shift.offset;
        args.offsets = shift.offsets;
        args.starts = shift.starts;
        args.inverse = inverse;
        args.dtype = x.dtype;
        parallel_for(x.dims[0] * x.dims[1], 4, [&](int64_t begin, int64_t end, int) { rotary_rows(args, begin, end); });
      });
}

std::unique_ptr<CpuKernel> rotary_reference(const KernelSpec& spec) {
  return kernel_of([heads = spec.attrs.integer("heads"),
                    inverse = spec.attrs.integer("inverse") != 0](const KernelCall& call) {
    const TensorView &x = call.inputs[RotaryInputs::x], &table = call.inputs[RotaryInputs::table], &y = call.outputs[0];
    const int64_t width = x.dims[2], head_dim = width / heads, turned = table.dims[1], half = turned / 2;
    for (int64_t row = 0; row < x.dims[0] * x.dims[1]; ++row) {
      const int64_t position = std::clamp<int64_t>(Shift(call).of(row) + row % x.dims[1], 0, table.dims[0] - 1);
      for (int64_t head = 0; head < width; head += head_dim) {
        for (int64_t i = 0; i < half; ++i) {
          const int64_t at = row * width + head + i;
          const double a = read_element(x, at), b = read_element(x, at + half);
          const double c = read_element(table, position * turned + i);
          const double s = read_element(table, position * turned + half + i) * (inverse ? -1 : 1);
          write_element(y, at, a * c - b * s);
          write_element(y, at + half, b * c + a * s);
        }
        for (int64_t at = row * width + head + turned; at < row * width + head + head_dim; ++at)
          write_element(y, at, read_element(x, at));
      }
    }
  });
}

// The angle is rounded to f32 before its cosine and sine are taken, as HF does.
std::unique_ptr<CpuKernel> table_kernel(const KernelSpec& spec) {
  const float amplitude = static_cast<float>(spec.attrs.real("amplitude", 1));
  return kernel_of([frequencies = inverse_frequencies(spec.attrs), amplitude](const KernelCall& call) {
    const int64_t half = static_cast<int64_t>(frequencies.size());
    float* const table = call.outputs[0].as<float>();
    parallel_for(call.outputs[0].dims[0], 16, [&](int64_t begin, int64_t end, int) {
      for (int64_t position = begin; position < end; ++position)
        for (int64_t i = 0; i < half; ++i) {
          const float angle = static_cast<float>(position) * frequencies[static_cast<size_t>(i)];
          table[position * 2 * half + i] = std::cos(angle) * amplitude;
          table[position * 2 * half + half + i] = std::sin(angle) * amplitude;
        }
    });
  });
}

}  // namespace

void register_rotary_cpu(CpuKernels& kernels) {
  kernels.add("rotary", simd_and_reference<rotary_simd, rotary_reference>());
  kernels.add("rope_table", reference_only<table_kernel>());
}

}  // namespace headroom
