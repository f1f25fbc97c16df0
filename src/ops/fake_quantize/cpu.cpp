// CPU kernels of fake quantisation.
#include <cmath>

#include "base/quantization_grid.h"
#include "base/threads.h"
#include "ops/fake_quantize/simd.h"
#include "ops/stream/scalar_access.h"

namespace headroom {
namespace {

// The attributes of a weight's grid.
struct Grid {
  int bits = 8;
  int64_t group = 1;

  explicit Grid(const Attrs& attrs) : bits(static_cast<int>(attrs.integer("bits"))), group(attrs.integer("group")) {}
};

GroupedWeight grouped(const TensorView& weight, const Grid& grid) {
  return {weight.data, weight.dtype, grid.bits, grid.group};
}
int64_t rows_of(const TensorView& x) { return x.count() / x.dims.back(); }
TokenCodes token_codes(const TensorView& codes, const TensorView& grid) {
  return {codes.as<int8_t>(), grid.as<float>(), codes.dims.back()};
}

// The fewest tokens for a thread: about 4096 elements.
int64_t token_grain(const TensorView& x) { return std::max<int64_t>(1, 4096 / x.dims.back()); }

std::unique_ptr<CpuKernel> round_simd(const KernelSpec& spec) {
  return kernel_of([grid = Grid(spec.attrs)](const KernelCall& call) {
    const TensorView &weight = call.inputs[0], &y = call.outputs[0];
    parallel_for(weight.count() / grid.group, 64, [&](int64_t begin, int64_t end, int) {
      round_groups(grouped(weight, grid), y.data, y.dtype, begin, end);
    });
  });
}

std::unique_ptr<CpuKernel> mask_simd(const KernelSpec& spec) {
  return kernel_of([grid = Grid(spec.attrs)](const KernelCall& call) {
    const TensorView& weight = call.inputs[1];
    parallel_for(weight.count() / grid.group, 64, [&](int64_t begin, int64_t end, int) {
      mask_groups(grouped(weight, grid), call.outputs[0].as<float>(), begin, end);
    });
  });
}

std::unique_ptr<CpuKernel> quantize_simd(const KernelSpec&) {
  return kernel_of([](const KernelCall& call) {
    const TensorView& x = call.inputs[0];
    parallel_for(rows_of(x), token_grain(x), [&](int64_t begin, int64_t end, int) {
      quantize_rows(x.data, x.dtype, token_codes(call.outputs[0], call.outputs[1]), begin, end);
    });
  });
}

std::unique_ptr<CpuKernel> dequantize_simd(const KernelSpec&) {
  return kernel_of([](const KernelCall& call) {
    const TensorView& y = call.outputs[0];
    parallel_for(rows_of(y), token_grain(y), [&](int64_t begin, int64_t end, int) {
      dequantize_rows(token_codes(call.inputs[0], call.inputs[1]), y.data, y.dtype, begin, end);
    });
  });
}

std::unique_ptr<CpuKernel> gradient_simd(const KernelSpec&) {
  return kernel_of([](const KernelCall& call) {
    const TensorView &dy = call.inputs[0], &dx = call.outputs[0];
    parallel_for(dy.count(), 4096, [&](int64_t begin, int64_t end, int) {
      mask_codes(dy.data, dy.dtype, call.inputs[1].as<int8_t>(), dx.data, dx.dtype, begin, end);
    });
  });
}

float value_at(const TensorView& x, int64_t i) { return static_cast<float>(read_element(x, i)); }

// The scale of a group; NaN if an element of the group is not finite.
float scale_of_group(const TensorView& weight, const Grid& grid, int64_t first) {
  float most = 0, fault = 0;
  for (int64_t i = first; i < first + grid.group; ++i) {
    const float w = value_at(weight, i);
    most = std::max(most, std::fabs(w)), fault += w - w;
  }
  return weight_scale(most, grid.bits) + fault;
}

// Calls body(i, steps of weight i, scale) for every weight.
template <typename Body>
void each_weight(const TensorView& weight, const Grid& grid, const Body& body) {
  for (int64_t first = 0; first < weight.count(); first += grid.group) {
    const float scale = scale_of_group(weight, grid, first), inverse = 1 / scale;
    for (int64_t i = first; i < first + grid.group; ++i) body(i, weight_steps(value_at(weight, i), inverse), scale);
  }
}

std::unique_ptr<CpuKernel> round_reference(const KernelSpec& spec) {
  return kernel_of([grid = Grid(spec.attrs)](const KernelCall& call) {
    each_weight(call.inputs[0], grid, [&](int64_t i, float steps, float scale) {
      const float y = clamped_code(steps, code_range(grid.bits)) * scale;
      write_element(call.outputs[0], i, static_cast<double>(y));
    });
  });
}

std::unique_ptr<CpuKernel> mask_reference(const KernelSpec& spec) {
  return kernel_of([grid = Grid(spec.attrs)](const KernelCall& call) {
    const CodeRange range = code_range(grid.bits);
    each_weight(call.inputs[1], grid, [&](int64_t i, float steps, float) {
      if (!(steps > range.low && steps < range.high)) write_element(call.outputs[0], i, 0);
    });
  });
}

std::unique_ptr<CpuKernel> quantize_reference(const KernelSpec&) {
  return kernel_of([](const KernelCall& call) {
    const TensorView& x = call.inputs[0];
    const TokenCodes to = token_codes(call.outputs[0], call.outputs[1]);
    for (int64_t row = 0; row < rows_of(x); ++row) {
      const int64_t first = row * to.features, end = first + to.features;
      float least = 0, most = 0, fault = 0;
      for (int64_t i = first; i < end; ++i) {
        const float v = value_at(x, i);
        least = std::min(least, v), most = std::max(most, v), fault += v - v;
      }
      const TokenGrid grid = token_grid(least, most);
      for (int64_t i = first; i < end; ++i)
        to.codes[i] = static_cast<int8_t>(token_code(value_at(x, i), 1 / grid.scale, grid.zero));
      to.grid[2 * row] = grid.scale + fault, to.grid[2 * row + 1] = grid.zero;
    }
  });
}

std::unique_ptr<CpuKernel> dequantize_reference(const KernelSpec&) {
  return kernel_of([](const KernelCall& call) {
    const TokenCodes from = token_codes(call.inputs[0], call.inputs[1]);
    for (int64_t i = 0; i < call.outputs[0].count(); ++i) {
      const float* const grid = from.grid + i / from.features * 2;
      const float y = (static_cast<float>(from.codes[i]) - grid[1]) * grid[0];
      write_element(call.outputs[0], i, static_cast<double>(y));
    }
  });
}

std::unique_ptr<CpuKernel> gradient_reference(const KernelSpec&) {
  return kernel_of([](const KernelCall& call) {
    for (int64_t i = 0; i < call.inputs[0].count(); ++i) {
      const int8_t code = call.inputs[1].as<int8_t>()[i];
      write_element(call.outputs[0], i, code > INT8_MIN && code < INT8_MAX ? read_element(call.inputs[0], i) : 0);
    }
  });
}

}  // namespace

void register_fake_quantize_cpu(CpuKernels& kernels) {
  kernels.add("fake_quantize_weight", simd_and_reference<round_simd, round_reference>());
  kernels.add("fake_quantize_weight_grad", simd_and_reference<mask_simd, mask_reference>());
  kernels.add("quantize_tokens", simd_and_reference<quantize_simd, quantize_reference>());
  kernels.add("dequantize_tokens", simd_and_reference<dequantize_simd, dequantize_reference>());
  kernels.add("quantize_tokens_grad", simd_and_reference<gradient_simd, gradient_reference>());
}

}  // namespace headroom
