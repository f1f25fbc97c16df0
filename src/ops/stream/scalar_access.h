// Reads and writes one element of any supported dtype, for reference kernels. Throws InternalError for other dtypes.
#pragma once

#include "base/bfloat16.h"
#include "base/error.h"
#include "base/float16.h"
#include "ops/cpu/capabilities.h"
#include "ops/cpu/kernel.h"

namespace headroom {

inline double read_element(const TensorView& view, int64_t index) {
  switch (view.dtype) {
    case DType::f64:
      return view.as<double>()[index];
    case DType::f32:
      return static_cast<double>(view.as<float>()[index]);
    case DType::bf16:
      return static_cast<double>(static_cast<float>(view.as<bfloat16>()[index]));
    case DType::f16:
      return static_cast<double>(static_cast<float>(view.as<float16>()[index]));
    case DType::i32:
      return static_cast<double>(view.as<int32_t>()[index]);
    default:
      HR_CHECK(false, "no reference kernel reads {}", dtype_name(view.dtype));
  }
  return 0;
}

inline void write_element(const TensorView& view, int64_t index, double value) {
  switch (view.dtype) {
    case DType::f64:
      view.as<double>()[index] = value;
      break;
    case DType::f32:
      view.as<float>()[index] = static_cast<float>(value);
      break;
    case DType::bf16:
      view.as<bfloat16>()[index] = bfloat16(static_cast<float>(value));
      break;
    case DType::f16:
      view.as<float16>()[index] = float16(static_cast<float>(value));
      break;
    default:
      HR_CHECK(false, "no reference kernel writes {}", dtype_name(view.dtype));
  }
}

// True when this call overwrites its accumulator: attribute "carried" and the first trip of the loop.
inline bool overwrites(std::string_view accumulate, int64_t trip) { return accumulate == "carried" && trip == 0; }

// The reason why a SIMD kernel refuses a device that only runs reference kernels. Empty if it may run.
inline std::string simd_refusal(const DeviceFacts& facts) {
  return facts.capabilities.has(kAvx2) ? std::string() : "the device has no AVX2";
}

// Candidates of an op with one SIMD kernel and one reference kernel, both made from the spec alone.
template <auto Simd, auto Reference>
std::vector<KernelCandidate> simd_and_reference() {
  return {{"simd",
           [](const KernelSpec& spec, const DeviceFacts& facts) -> KernelOffer {
             std::string refusal = simd_refusal(facts);
             if (!refusal.empty()) return {nullptr, std::move(refusal)};
             return {Simd(spec), {}};
           }},
          {"reference", [](const KernelSpec& spec, const DeviceFacts&) -> KernelOffer {
             return {Reference(spec), {}};
           }}};
}

// The only candidate of an op whose plain kernel is fast enough.
template <auto Reference>
std::vector<KernelCandidate> reference_only() {
  return {{"reference", [](const KernelSpec& spec, const DeviceFacts&) -> KernelOffer {
             return {Reference(spec), {}};
           }}};
}

}  // namespace headroom
