// CPU kernels of take_rows and put_rows: copies at memory bandwidth.
#include <algorithm>
#include <cstring>

#include "base/threads.h"
#include "ops/rows/row_span.h"
#include "ops/stream/scalar_access.h"

namespace headroom {
namespace {

constexpr int64_t kPiece = 1 << 16;  // the fewest bytes that a thread copies

// Calls copy(offset in the whole, offset in the part, bytes) for all of the part's bytes.
template <typename Copy>
void each_piece(const RowSpan& part, const Copy& copy) {
  if (part.bytes == 0) return;
  parallel_for(part.sequences * part.bytes, kPiece, [&](int64_t begin, int64_t end, int) {
    while (begin < end) {
      const int64_t sequence = begin / part.bytes, within = begin - sequence * part.bytes;
      const int64_t bytes = std::min(end - begin, part.bytes - within);
      copy(sequence * part.stride + part.begin + within, begin, static_cast<size_t>(bytes));
      begin += bytes;
    }
  });
}

std::unique_ptr<CpuKernel> take_kernel(const KernelSpec& spec) {
  return kernel_of([part = row_span(spec.inputs[0], spec.attrs)](const KernelCall& call) {
    const std::byte* const from = call.inputs[0].as<std::byte>();
    std::byte* const to = call.outputs[0].as<std::byte>();
    each_piece(part, [&](int64_t whole, int64_t at, size_t bytes) { std::memcpy(to + at, from + whole, bytes); });
  });
}

std::unique_ptr<CpuKernel> put_kernel(const KernelSpec& spec) {
  return kernel_of([part = row_span(spec.outputs[0], spec.attrs)](const KernelCall& call) {
    const std::byte* const from = call.inputs[0].as<std::byte>();
    std::byte* const to = call.outputs[0].as<std::byte>();
    each_piece(part, [&](int64_t whole, int64_t at, size_t bytes) { std::memcpy(to + whole, from + at, bytes); });
  });
}

}  // namespace

void register_rows_cpu(CpuKernels& kernels) {
  kernels.add("take_rows", reference_only<take_kernel>());
  kernels.add("put_rows", reference_only<put_kernel>());
}

}  // namespace headroom
