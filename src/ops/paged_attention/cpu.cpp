// CPU kernels of attention_paged and kv_append_paged.
#include <algorithm>
#include <array>
#include <cstring>
#include <span>

#include "base/block_codes.h"
#include "base/error.h"
#include "base/threads.h"
#include "ops/attention/cache_append.h"
#include "ops/cpu/kernel.h"
#include "ops/paged_attention/bf16.h"
#include "ops/paged_attention/reference.h"
#include "ops/paged_attention/scratch.h"
#include "ops/paged_attention/simd.h"
#include "ops/stream/float_types.h"

namespace headroom {
namespace {

using PagedRun = void (*)(const PagedCall&, int64_t threads);

KernelOffer paged_kernel(const KernelSpec& spec, const DeviceFacts& facts, PagedRun run) {
  if (const int64_t needed = paged_scratch(spec.call(), facts); needed > spec.scratch_bytes)
    return {nullptr, fmt::format("needs {} bytes of scratch, {} are booked", needed, spec.scratch_bytes)};
  return {kernel_of([run, shape = paged_shape(spec.call()), most = facts.threads](const KernelCall& call) {
            HR_CHECK(threads() <= most, "scratch for {} threads, a team of {}", most, threads());
            PagedCall paged{shape, call.inputs[PagedInputs::q].dtype, call.inputs[PagedInputs::keys].dtype};
            paged.q = call.inputs[PagedInputs::q].data;
            paged.k = call.inputs[PagedInputs::keys].data;
            paged.v = call.inputs[PagedInputs::values].data;
            paged.o = call.outputs[0].data;
            paged.tables = call.inputs[PagedInputs::tables].as<int32_t>();
            paged.owners = call.inputs[PagedInputs::owners].as<int32_t>();
            paged.offset = call.inputs[PagedInputs::offset].as<int32_t>();
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

KernelOffer paged_narrow_kernel(const KernelSpec& spec, const DeviceFacts& facts, bool usable, PagedRun run) {
  const PagedShape shape = paged_shape(spec.call());
  if (!usable || !paged_in_bf16(shape, spec.inputs[PagedInputs::q].dtype, spec.inputs[PagedInputs::keys].dtype, facts))
    return {nullptr, "needs its instructions, AMX or AVX512_BF16, and bf16 queries, keys and values"};
  return paged_kernel(spec, facts, run);
}

KernelOffer paged_bf16_kernel(const KernelSpec& spec, const DeviceFacts& facts) {
  return paged_narrow_kernel(spec, facts, paged_bf16_usable(), paged_bf16);
}

KernelOffer paged_amx_kernel(const KernelSpec& spec, const DeviceFacts& facts) {
  return paged_narrow_kernel(spec, facts, facts.capabilities.has(kAmx) && paged_amx_usable(), paged_amx);
}

// Writes the codes of one head and their scale, which is NaN if an element is not finite.
template <typename From>
void encode_head(const From* from, int64_t dim, int8_t* to) {
  constexpr int64_t kPiece = 256;
  std::array<float, kPiece> values;
  const auto each_piece = [&](const auto& body) {
    for (int64_t first = 0; first < dim; first += kPiece) {
      const int64_t count = std::min(kPiece, dim - first);
      std::transform(from + first, from + first + count, values.begin(), [](From v) { return static_cast<float>(v); });
      body(first, std::span<const float>(values.data(), static_cast<size_t>(count)));
    }
  };
  float scale = 0, fault = 0;
  each_piece([&](int64_t, std::span<const float> piece) {
    scale = std::max(scale, scale_of(CodeTable::integer, 8, piece));
    for (const float value : piece) fault += value - value;
  });
  each_piece([&](int64_t first, std::span<const float> piece) {
    encode(CodeTable::integer, 8, scale, piece, reinterpret_cast<uint8_t*>(to + first));
  });
  scale += fault;
  std::memcpy(to + dim, &scale, sizeof scale);
}

void append_int8(const TensorView& rows, const TensorView& pool, const int32_t* slots) {
  const int64_t width = rows.dims[2], held = pool.dims[1], pool_width = pool.dims[2];
  const int64_t heads = (pool_width - width) / kHeadScaleBytes, dim = width / heads;
  with_float(rows.dtype, [&](auto source) {
    using From = decltype(source);
    parallel_for(rows.dims[0], std::max<int64_t>(1, 2048 / width), [&](int64_t begin, int64_t end, int) {
      for (int64_t row = begin; row < end; ++row) {
        if (slots[row] < 0 || slots[row] >= held) continue;
        for (int64_t head = 0; head < heads; ++head)
          encode_head(rows.as<From>() + row * width + head * dim, dim,
                      pool.as<int8_t>() + slots[row] * pool_width + head * pool_head_width(DType::i8, dim));
      }
    });
  });
}

void append_rows(const TensorView& rows, const TensorView& pool, const int32_t* slots) {
  if (pool.dtype == DType::i8) return append_int8(rows, pool, slots);
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
            append_rows(call.inputs[CacheAppendInputs::rows], call.outputs[0],
                        call.inputs[CacheAppendInputs::places].as<int32_t>());
          }),
          {}};
}

}  // namespace

void register_paged_attention_cpu(CpuKernels& kernels) {
  kernels.add("attention_paged", {{"amx", paged_amx_kernel},
                                  {"bf16", paged_bf16_kernel},
                                  {"simd", paged_simd_kernel},
                                  {"reference", paged_reference_kernel}});
  kernels.add("kv_append_paged", {{"reference", append_paged_reference}});
}

}  // namespace headroom
