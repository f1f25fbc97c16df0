// Dot products of rows with the rows of their expert's matrix.
#include "ops/moe_linear/cpu_rows.h"

#include <algorithm>

#include "base/threads.h"
#include "ops/linear/row_products.h"
#include "ops/moe_linear/products.h"
#include "ops/stream/scalar_access.h"

namespace headroom {
namespace {

std::byte* element(const TensorView& view, int64_t index) {
  return view.as<std::byte>() + index * dtype_bytes(view.dtype);
}

void run_rows(const KernelCall& call, const ExpertShape& shape, bool adds, ColumnRange range) {
  const int32_t* offsets = call.inputs[ExpertInputs::offsets].as<int32_t>();
  check_offsets(offsets, shape);
  parallel_for(shape.outs, 32, [&](int64_t begin, int64_t end, int) {
    for (int64_t expert = 0; expert < shape.experts; ++expert) {
      const int64_t first = offsets[expert], rows = offsets[expert + 1] - first;
      if (rows <= 0) continue;
      RowProduct product{element(call.inputs[ExpertInputs::rows], first * shape.ins),
                         element(call.inputs[ExpertInputs::weight], expert * shape.outs * shape.ins)};
      product.y = element(call.outputs[0], first * shape.outs);
      if (adds) product.residual = element(call.inputs[ExpertInputs::addend], first * shape.outs);
      product.rows = rows, product.outs = shape.outs, product.ins = shape.ins;
      range(product, begin, end);
    }
  });
}

}  // namespace

KernelOffer make_expert_rows(const KernelSpec& spec, const DeviceFacts& facts) {
  if (std::string refusal = simd_refusal(facts); !refusal.empty()) return {nullptr, std::move(refusal)};
  const bool invariant = spec.attrs.integer("batch_invariant") != 0;
  const RowTypes types{spec.inputs[ExpertInputs::rows].dtype, spec.inputs[ExpertInputs::weight].dtype,
                       spec.outputs[0].dtype};
  const ExpertShape shape = rows_shape(spec.call());
  const std::vector<int64_t>& dims = spec.inputs[ExpertInputs::rows].dims;
  const int64_t tokens = dims.size() < 2 ? shape.rows : shape.rows / dims[dims.size() - 2];
  if (tokens > 8 && !invariant) return {nullptr, "more than eight tokens"};
  const bool adds = spec.attrs.integer("addend") != 0;
  const ColumnRange range = dot_range(types, facts.capabilities);
  return {kernel_of([shape, adds, range](const KernelCall& call) { run_rows(call, shape, adds, range); }), {}};
}

}  // namespace headroom
