// Dot products of a few rows with the rows of their expert's matrix.
#include "ops/stream/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/moe_linear/cpu_rows.cpp"
#include "hwy/foreach_target.h"
// After foreach_target.h, which includes this file once per target.
#include "base/threads.h"
#include "ops/moe_linear/cpu_rows.h"
#include "ops/moe_linear/products.h"
#include "ops/stream/float_types.h"
#include "ops/stream/lanes-inl.h"
#include "ops/stream/scalar_access.h"

HWY_BEFORE_NAMESPACE();
namespace headroom {
namespace HWY_NAMESPACE {
namespace {

template <typename T, typename R>
void run(const KernelCall& call, const ExpertShape& shape, bool adds) {
  const int32_t* offsets = call.inputs[2].as<int32_t>();
  check_offsets(offsets, shape);
  parallel_for(shape.outs, 32, [&](int64_t begin, int64_t end, int) {
    for (int64_t expert = 0; expert < shape.experts; ++expert) {
      if (offsets[expert] >= offsets[expert + 1]) continue;
      for (int64_t out = begin; out < end; ++out) {
        const T* w = call.inputs[1].as<T>() + (expert * shape.outs + out) * shape.ins;
        for (int64_t row = offsets[expert]; row < offsets[expert + 1]; ++row) {
          const T* x = call.inputs[0].as<T>() + row * shape.ins;
          const float product =
              sum_lanes(shape.ins, [&](auto d, int64_t i) HWY_ATTR { return hn::Mul(load(d, x + i), load(d, w + i)); });
          const int64_t at = row * shape.outs + out;
          call.outputs[0].as<R>()[at] =
              static_cast<R>(adds ? static_cast<float>(call.inputs[3].as<R>()[at]) + product : product);
        }
      }
    }
  });
}

void run_rows(const KernelCall& call, const ExpertShape& shape, bool adds) {
  const DType x = call.inputs[0].dtype, y = x == DType::f32 ? x : call.outputs[0].dtype;
  with_floats(x, y, [&](auto from, auto to) { run<decltype(from), decltype(to)>(call, shape, adds); });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace headroom
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headroom {

HWY_EXPORT(run_rows);

KernelOffer make_expert_rows(const KernelSpec& spec, const DeviceFacts& facts) {
  if (std::string refusal = simd_refusal(facts); !refusal.empty()) return {nullptr, std::move(refusal)};
  if (spec.inputs[0].dtype != spec.inputs[1].dtype) return {nullptr, "the weights have another dtype than x"};
  const ExpertShape shape = expert_shape(spec.inputs[0], spec.inputs[1]);
  const std::vector<int64_t>& dims = spec.inputs[0].dims;
  const int64_t tokens = dims.size() < 2 ? shape.rows : shape.rows / dims[dims.size() - 2];
  if (tokens > 8 && spec.attrs.integer("batch_invariant") == 0) return {nullptr, "more than eight tokens"};
  const bool adds = spec.attrs.integer("addend") != 0;
  return {kernel_of([shape, adds](const KernelCall& call) { HWY_DYNAMIC_DISPATCH(run_rows)(call, shape, adds); }), {}};
}

}  // namespace headroom
#endif
