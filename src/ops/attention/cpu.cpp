// CPU kernels of the attention ops: what each implementation accepts, and the calls into it.
#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "ops/attention/cache_append.h"
#include "ops/attention/decode_simd.h"
#include "ops/attention/forward_bf16.h"
#include "ops/attention/forward_simd.h"
#include "ops/attention/grad_bf16.h"
#include "ops/attention/grad_simd.h"
#include "ops/attention/reference.h"
#include "ops/cpu/kernel.h"
#include "ops/stream/float_types.h"

namespace headroom {
namespace {

using ForwardRun = void (*)(const ForwardCall&);
using GradRun = void (*)(const GradCall&);

void check_team(const DeviceFacts& facts) {
  HR_CHECK(threads() <= facts.threads, "scratch for {} threads, a team of {}", facts.threads, threads());
}

// Position of the first query, clamped to the cache whatever the offset is.
int64_t held_offset(const TensorView& offset, int64_t rows) {
  return std::clamp<int64_t>(*offset.as<int32_t>(), 0, rows);
}

RowMask mask_of(const TensorView& input) {
  const bool segments = input.dims.size() == 2;
  return {segments ? nullptr : input.as<int32_t>(), segments ? input.as<int32_t>() : nullptr};
}

// Dropout of a call's `rows` rows of scores; `hyper` is the index of the step's scalars among the inputs, or 0.
ScoreDropout dropout_of(const DropoutAttrs& attrs, const KernelCall& call, size_t hyper, int64_t rows) {
  if (hyper == 0) return {};
  return {attrs.rate, step_key(call.inputs[hyper].as<float>(), attrs.tensor), call.trip * rows};
}

// For `attention` (inputs q, k, v, ...; outputs o, lse) and `attention_cached` (q, k, v, offset; o).
KernelOffer forward_kernel(const KernelSpec& spec, const DeviceFacts& facts, ForwardRun run) {
  const AttentionShape shape = attention_shape(spec.call());
  const bool cached = spec.op == "attention_cached";
  const OptionalInputs places(spec.attrs, cached ? 0 : spec.inputs.size(), false);
  const DropoutAttrs dropout(spec.attrs);
  return {kernel_of([=](const KernelCall& call) {
            check_team(facts);
            ForwardCall forward{shape, 0, call.inputs[AttentionInputs::q].dtype, call.inputs[AttentionInputs::k].dtype};
            if (cached) forward.first = held_offset(call.inputs[CachedInputs::offset], shape.keys);
            forward.q = call.inputs[AttentionInputs::q].data;
            forward.k = call.inputs[AttentionInputs::k].data;
            forward.v = call.inputs[AttentionInputs::v].data;
            forward.o = call.outputs[AttentionOutputs::o].data;
            forward.lse = cached ? nullptr : call.outputs[AttentionOutputs::lse].as<float>();
            forward.scratch = call.scratch.data();
            if (places.mask > 0) forward.mask = mask_of(call.inputs[places.mask]);
            forward.dropout = dropout_of(dropout, call, places.hyper, shape.batch * shape.heads * shape.queries);
            run(forward);
          }),
          {}};
}

KernelOffer grad_kernel(const KernelSpec& spec, const DeviceFacts& facts, GradRun run) {
  const AttentionShape shape = attention_shape(spec.call());
  const OptionalInputs places(spec.attrs, spec.inputs.size(), true);
  const DropoutAttrs dropout(spec.attrs);
  return {kernel_of([=](const KernelCall& call) {
            check_team(facts);
            using Inputs = AttentionGradInputs;
            const auto in = [&](size_t i) { return call.inputs[i].data; };
            run({shape, call.inputs[AttentionGradInputs::q].dtype, facts.threads, in(Inputs::q), in(Inputs::k),
                 in(Inputs::v), in(Inputs::o), call.inputs[Inputs::lse].as<float>(), in(Inputs::cotangent),
                 call.outputs[AttentionGradOutputs::dq].data, call.outputs[AttentionGradOutputs::dk].data,
                 call.outputs[AttentionGradOutputs::dv].data, call.scratch.data(),
                 places.mask > 0 ? mask_of(call.inputs[places.mask]) : RowMask{},
                 dropout_of(dropout, call, places.hyper, shape.batch * shape.heads * shape.queries)});
          }),
          {}};
}

// Why the SIMD kernels refuse, or empty.
std::string simd_refusal(const KernelSpec& spec, const DeviceFacts& facts, int64_t needed) {
  const AttentionShape shape = attention_shape(spec.call());
  if (!facts.capabilities.has(kAvx2)) return "needs AVX2";
  if (shape.dim > kMaxFastDim) return fmt::format("head dimension {} is above {}", shape.dim, kMaxFastDim);
  if (needed > spec.scratch_bytes) return fmt::format("needs {} bytes of scratch, not {}", needed, spec.scratch_bytes);
  return {};
}

KernelOffer forward_simd(const KernelSpec& spec, const DeviceFacts& facts) {
  const int64_t needed = SimdForward::bytes(attention_shape(spec.call())) * facts.threads;
  if (std::string refusal = simd_refusal(spec, facts, needed); !refusal.empty()) return {nullptr, refusal};
  return forward_kernel(spec, facts, run_forward<SimdForward>);
}

std::string lacking(InstructionSet set, const DeviceFacts& facts) {
  return fmt::format("needs {}, the device has {}", instruction_set_name(set),
                     instruction_set_name(instruction_set_of(facts.capabilities)));
}

// Why a kernel with exact products on AMX tiles refuses, or empty.
std::string exact_refusal(const KernelSpec& spec, const DeviceFacts& facts, int64_t needed) {
  if (!facts.capabilities.has(kAmx)) return lacking(InstructionSet::amx, facts);
  for (size_t i = 0; i < 3; ++i)
    if (spec.inputs[i].dtype != DType::f32) return "operands are not all f32";
  if (!exact_products_usable()) return "the processor or the system does not offer it";
  return simd_refusal(spec, facts, needed);
}

KernelOffer forward_exact(const KernelSpec& spec, const DeviceFacts& facts) {
  const int64_t needed = ExactForward::bytes(attention_shape(spec.call())) * facts.threads;
  if (std::string refusal = exact_refusal(spec, facts, needed); !refusal.empty()) return {nullptr, refusal};
  return forward_kernel(spec, facts, run_forward<ExactForward>);
}

KernelOffer grad_exact(const KernelSpec& spec, const DeviceFacts& facts) {
  const AttentionShape shape = attention_shape(spec.call());
  const int64_t needed = ExactGrad::bytes(shape) * grad_wave(shape, facts.threads).units();
  if (std::string refusal = exact_refusal(spec, facts, needed); !refusal.empty()) return {nullptr, refusal};
  return grad_kernel(spec, facts, run_grad<ExactGrad>);
}

KernelOffer decode_simd(const KernelSpec& spec, const DeviceFacts& facts) {
  const AttentionShape shape = attention_shape(spec.call());
  if (shape.queries != 1) return {nullptr, fmt::format("takes one query, not {}", shape.queries)};
  const int64_t needed = block_bytes(decode_block, shape);
  if (std::string refusal = simd_refusal(spec, facts, needed); !refusal.empty()) return {nullptr, refusal};
  return forward_kernel(spec, facts, run_decode);
}

#if defined(__x86_64__)
// Why a kernel with bf16 products refuses, or empty.
template <typename Products>
std::string bf16_refusal(const KernelSpec& spec, const DeviceFacts& facts, InstructionSet set, int64_t needed) {
  if (instruction_set_of(facts.capabilities) < set) return lacking(set, facts);
  for (size_t i = 0; i < 3; ++i)
    if (spec.inputs[i].dtype != DType::bf16) return "operands are not all bf16";
  if (!Products::usable()) return "the processor or the system does not offer it";
  return simd_refusal(spec, facts, needed);
}

template <typename Products, InstructionSet kSet>
KernelOffer forward_bf16(const KernelSpec& spec, const DeviceFacts& facts) {
  const int64_t needed = Bf16Forward<Products>::bytes(attention_shape(spec.call())) * facts.threads;
  if (std::string refusal = bf16_refusal<Products>(spec, facts, kSet, needed); !refusal.empty())
    return {nullptr, refusal};
  return forward_kernel(spec, facts, run_forward<Bf16Forward<Products>>);
}

template <typename Products, InstructionSet kSet>
KernelOffer grad_bf16(const KernelSpec& spec, const DeviceFacts& facts) {
  const AttentionShape shape = attention_shape(spec.call());
  const int64_t needed = Bf16Grad<Products>::bytes(shape) * grad_wave(shape, facts.threads).units();
  if (std::string refusal = bf16_refusal<Products>(spec, facts, kSet, needed); !refusal.empty())
    return {nullptr, refusal};
  return grad_kernel(spec, facts, run_grad<Bf16Grad<Products>>);
}
#else
template <typename Products, InstructionSet kSet>
KernelOffer forward_bf16(const KernelSpec&, const DeviceFacts&) {
  return {nullptr, "is made for x86-64"};
}

template <typename Products, InstructionSet kSet>
KernelOffer grad_bf16(const KernelSpec&, const DeviceFacts&) {
  return {nullptr, "is made for x86-64"};
}
#endif

KernelOffer forward_reference(const KernelSpec& spec, const DeviceFacts& facts) {
  return forward_kernel(spec, facts, reference_forward);
}

KernelOffer grad_simd(const KernelSpec& spec, const DeviceFacts& facts) {
  const AttentionShape shape = attention_shape(spec.call());
  const int64_t needed = SimdGrad::bytes(shape) * grad_wave(shape, facts.threads).units();
  if (std::string refusal = simd_refusal(spec, facts, needed); !refusal.empty()) return {nullptr, refusal};
  return grad_kernel(spec, facts, run_grad<SimdGrad>);
}

KernelOffer grad_reference(const KernelSpec& spec, const DeviceFacts& facts) {
  return grad_kernel(spec, facts, reference_grad);
}

void copy_row(const TensorView& from, int64_t from_row, const TensorView& to, int64_t to_row, int64_t width) {
  if (from.dtype == to.dtype) {
    const int64_t bytes = width * dtype_bytes(from.dtype);
    std::memcpy(to.as<std::byte>() + to_row * bytes, from.as<std::byte>() + from_row * bytes,
                static_cast<size_t>(bytes));
  } else {
    with_floats(from.dtype, to.dtype, [&](auto source, auto target) {
      using From = decltype(source);
      using To = decltype(target);
      std::transform(from.as<From>() + from_row * width, from.as<From>() + (from_row + 1) * width,
                     to.as<To>() + to_row * width,
                     [](From value) { return static_cast<To>(static_cast<float>(value)); });
    });
  }
}

KernelOffer append_reference(const KernelSpec&, const DeviceFacts&) {
  return {kernel_of([](const KernelCall& call) {
            const TensorView& k = call.inputs[CacheAppendInputs::rows];
            const TensorView& cache = call.outputs[0];
            const int64_t offset = *call.inputs[CacheAppendInputs::places].as<int32_t>(), rows = k.dims[1],
                          held = cache.dims[1];
            for (int64_t row = 0; row < k.dims[0]; ++row)
              for (int64_t t = std::max<int64_t>(0, -offset); t < rows && offset + t < held; ++t)
                copy_row(k, row * rows + t, cache, row * held + offset + t, k.dims[2]);
          }),
          {}};
}

}  // namespace

void register_attention_cpu(CpuKernels& kernels) {
  std::vector<KernelCandidate> forward{{"amx", forward_bf16<Bf16Amx, InstructionSet::amx>},
                                       {"avx512_bf16", forward_bf16<Bf16Dot, InstructionSet::avx512_bf16>},
                                       {"amx_exact", forward_exact},
                                       {"simd", forward_simd},
                                       {"reference", forward_reference}};
  kernels.add("attention", forward);
  forward.insert(forward.begin(), {"decode", decode_simd});
  kernels.add("attention_cached", forward);
  kernels.add("attention_grad", {{"amx", grad_bf16<Bf16Amx, InstructionSet::amx>},
                                 {"avx512_bf16", grad_bf16<Bf16Dot, InstructionSet::avx512_bf16>},
                                 {"amx_exact", grad_exact},
                                 {"simd", grad_simd},
                                 {"reference", grad_reference}});
  kernels.add("kv_append", {{"reference", append_reference}});
}

}  // namespace headroom
