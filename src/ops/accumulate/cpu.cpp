// CPU kernels of accumulate and zero_fill. Elementwise: any split over the team gives the same bits.
#include <cstring>

#include "base/threads.h"
#include "ops/add/simd.h"
#include "ops/stream/scalar_access.h"

namespace headroom {
namespace {

constexpr int64_t kGrain = 4096;

void copy_all(const TensorView& from, const TensorView& to) {
  const int64_t bytes = dtype_bytes(from.dtype);
  parallel_for(from.count(), kGrain, [&](int64_t begin, int64_t end, int) {
    std::memcpy(to.as<std::byte>() + begin * bytes, from.as<std::byte>() + begin * bytes,
                static_cast<size_t>((end - begin) * bytes));
  });
}

// A kernel that copies on the first trip of "carried" and calls add(x, acc) otherwise.
template <typename Add>
std::unique_ptr<CpuKernel> accumulating(const KernelSpec& spec, Add add) {
  return kernel_of([carried = std::string(spec.attrs.text("accumulate", "always")), add](const KernelCall& call) {
    if (overwrites(carried, call.trip))
      copy_all(call.inputs[0], call.outputs[0]);
    else
      add(call.inputs[0], call.outputs[0]);
  });
}

KernelOffer offer_simd(const KernelSpec& spec, const DeviceFacts& facts) {
  if (std::string refusal = simd_refusal(facts); !refusal.empty()) return {nullptr, std::move(refusal)};
  if (spec.inputs[0].dtype != DType::f32) return {nullptr, "only f32 is vectorised"};
  return {accumulating(spec,
                       [](const TensorView& x, const TensorView& acc) {
                         parallel_for(x.count(), kGrain, [&](int64_t begin, int64_t end, int) {
                           accumulate_floats(x.as<float>() + begin, DType::f32, acc.as<float>() + begin, end - begin);
                         });
                       }),
          {}};
}

// read_element() and write_element() go through double, so f64 is added as f64.
KernelOffer offer_reference(const KernelSpec& spec, const DeviceFacts&) {
  return {accumulating(spec,
                       [](const TensorView& x, const TensorView& acc) {
                         for (int64_t i = 0; i < x.count(); ++i)
                           write_element(acc, i, read_element(acc, i) + read_element(x, i));
                       }),
          {}};
}

std::unique_ptr<CpuKernel> zero_kernel(const KernelSpec&) {
  return kernel_of([](const KernelCall& call) {
    const TensorView& y = call.outputs[0];
    const int64_t bytes = dtype_bytes(y.dtype);
    parallel_for(y.count(), kGrain, [&](int64_t begin, int64_t end, int) {
      std::memset(y.as<std::byte>() + begin * bytes, 0, static_cast<size_t>((end - begin) * bytes));
    });
  });
}

}  // namespace

void register_accumulate_cpu(CpuKernels& kernels) {
  kernels.add("accumulate", {{"simd", offer_simd}, {"reference", offer_reference}});
  kernels.add("zero_fill", reference_only<zero_kernel>());
}

}  // namespace headroom
