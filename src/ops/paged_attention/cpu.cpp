// CPU kernels of attention_paged and kv_append_paged.
#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/threads.h"
#include "ops/cpu/kernel.h"
#include "ops/paged_attention/reference.h"
#include "ops/paged_attention/scratch.h"
#include "ops/paged_attention/simd.h"
#include "ops/stream/float_types.h"

namespace headroom {
namespace {

using PagedRun = void (*)(const PagedCall&, int64_t threads);

KernelOffer paged_kernel(const KernelSpec& spec, const DeviceFacts& facts, PagedRun run) {
  return {kernel_of([run, shape = paged_shape(spec.call()), most = facts.threads](const KernelCall& call) {
            HR_CHECK(threads() <= most, "scratch for {} threads, a team of {}", most, threads());
            PagedCall paged{shape, call.inputs[0].dtype, call.inputs[1].dtype};
            paged.q = call.inputs[0].data;
            paged.k = call.inputs[1].data;
            paged.v = call.inputs[2].data;
            paged.o = call.outputs[0].data;
            paged.tables = call.inputs[3].as<int32_t>();
            paged.owners = call.inputs[4].as<int32_t>();
            paged.offset = call.inputs[5].as<int32_t>();
            paged.scratch = call.scratch.data();
            run(paged, most);
          }),
          {}};
}

KernelOffer paged_reference_kernel(const KernelSpec& spec, const DeviceFacts& facts) {
  return paged_kernel(spec, facts, [](const PagedCall& call, int64_t) { paged_reference(call); });
}

KernelOffer paged_simd_kernel(const KernelSpec& spec, const DeviceFacts& facts) {
  if (!facts.capabilities.has(kAvx2)) return {nullptr, "needs AVX2"};
  if (paged_shape(spec.call()).dim > kMaxFastDim) return {nullptr, "heads are too wide"};
  return paged_kernel(spec, facts, paged_simd);
}

void append_rows(const TensorView& rows, const TensorView& pool, const int32_t* slots) {
  const int64_t width = rows.dims[2], held = pool.dims[1];
  with_floats(rows.dtype, pool.dtype, [&](auto source, auto target) {
    using From = decltype(source);
    using To = decltype(target);
    parallel_for(rows.dims[0], std::max<int64_t>(1, 8192 / width), [&](int64_t begin, int64_t end, int) {
      for (int64_t row = begin; row < end; ++row) {
        if (slots[row] < 0 || slots[row] >= held) continue;
        const From* const from = rows.as<From>() + row * width;
        To* const to = pool.as<To>() + slots[row] * width;
        if constexpr (std::is_same_v<From, To>)
          std::memcpy(to, from, static_cast<size_t>(width) * sizeof(To));
        else
          std::transform(from, from + width, to, [](From value) { return static_cast<To>(static_cast<float>(value)); });
      }
    });
  });
}

KernelOffer append_paged_reference(const KernelSpec&, const DeviceFacts&) {
  return {kernel_of([](const KernelCall& call) {
            append_rows(call.inputs[0], call.outputs[0], call.inputs[2].as<int32_t>());
          }),
          {}};
}

}  // namespace

void register_paged_attention_cpu(CpuKernels& kernels) {
  kernels.add("attention_paged", {{"simd", paged_simd_kernel}, {"reference", paged_reference_kernel}});
  kernels.add("kv_append_paged", {{"reference", append_paged_reference}});
}

}  // namespace headroom
