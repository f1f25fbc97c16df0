// CPU kernels of encode_rows and decode_rows: a row at a time, by base/block_codes.h.
#include <algorithm>
#include <array>

#include "base/block_codes.h"
#include "base/threads.h"
#include "ops/cpu/kernel.h"
#include "ops/stream/float_types.h"
#include "ops/stream/scalar_access.h"

namespace headroom {
namespace {

constexpr int64_t kPiece = 1024;   // elements of a row that are converted at once
constexpr int64_t kGrain = 16384;  // the fewest elements of a thread

struct Rows {
  int64_t count = 0, length = 0, scales = 0;  // scales: where they begin, in bytes
};

Rows rows_of(const ConcreteType& codes) {
  const int64_t elements = element_count(codes.dims);
  return {elements / codes.storage.block, codes.storage.block, storage_layout(codes.storage, elements).scales};
}

// body(row) for all rows, on the team.
template <typename Body>
void each_row(const Rows& rows, const Body& body) {
  parallel_for(rows.count, std::max<int64_t>(1, kGrain / rows.length), [&](int64_t begin, int64_t end, int) {
    for (int64_t row = begin; row < end; ++row) body(row);
  });
}

// body(first, values) for the pieces of a row, as floats.
template <typename Body>
void each_piece(const TensorView& view, const Rows& rows, int64_t row, const Body& body) {
  std::array<float, kPiece> converted;
  for (int64_t first = 0; first < rows.length; first += kPiece) {
    const size_t count = static_cast<size_t>(std::min(kPiece, rows.length - first));
    const int64_t at = row * rows.length + first;
    if (view.dtype == DType::f32) {
      body(first, std::span<const float>(view.as<float>() + at, count));
      continue;
    }
    with_narrow(view.dtype, [&](auto type) {
      const auto* const narrow = view.as<decltype(type)>() + at;
      for (size_t i = 0; i < count; ++i) converted[i] = static_cast<float>(narrow[i]);
    });
    body(first, std::span<const float>(converted.data(), count));
  }
}

std::unique_ptr<CpuKernel> encode_kernel(const KernelSpec& spec) {
  return kernel_of([rows = rows_of(spec.outputs[0])](const KernelCall& call) {
    uint8_t* const codes = call.outputs[0].as<uint8_t>();
    float* const scales = reinterpret_cast<float*>(codes + rows.scales);
    each_row(rows, [&](int64_t row) {
      float scale = 0;
      each_piece(call.inputs[0], rows, row, [&](int64_t, std::span<const float> values) {
        scale = std::max(scale, scale_of(CodeTable::integer, 8, values));
      });
      scales[row] = scale;
      each_piece(call.inputs[0], rows, row, [&](int64_t first, std::span<const float> values) {
        encode(CodeTable::integer, 8, scale, values, codes + row * rows.length + first);
      });
    });
  });
}

std::unique_ptr<CpuKernel> decode_kernel(const KernelSpec& spec) {
  return kernel_of([rows = rows_of(spec.inputs[0])](const KernelCall& call) {
    const uint8_t* const codes = call.inputs[0].as<uint8_t>();
    const float* const scales = reinterpret_cast<const float*>(codes + rows.scales);
    const TensorView& out = call.outputs[0];
    each_row(rows, [&](int64_t row) {
      std::array<float, kPiece> values;
      for (int64_t first = 0; first < rows.length; first += kPiece) {
        const int64_t count = std::min(kPiece, rows.length - first), at = row * rows.length + first;
        float* const to = out.dtype == DType::f32 ? out.as<float>() + at : values.data();
        decode(CodeTable::integer, 8, codes + row * rows.length, scales[row], first, count, to);
        if (out.dtype == DType::f32) continue;
        with_narrow(out.dtype, [&](auto type) {
          using T = decltype(type);
          for (int64_t i = 0; i < count; ++i) out.as<T>()[at + i] = T(values[static_cast<size_t>(i)]);
        });
      }
    });
  });
}

}  // namespace

void register_row_codes_cpu(CpuKernels& kernels) {
  kernels.add("encode_rows", reference_only<encode_kernel>());
  kernels.add("decode_rows", reference_only<decode_kernel>());
}

}  // namespace headroom
