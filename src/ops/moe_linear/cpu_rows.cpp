// Dot products of rows with the rows of their expert's matrix.
#include "ops/moe_linear/cpu_rows.h"

#include <algorithm>

#include "base/threads.h"
#include "ops/linear/row_products.h"
#include "ops/moe_linear/arranged_rows.h"
#include "ops/moe_linear/products.h"
#include "ops/stream/scalar_access.h"

namespace headroom {
namespace {

struct ExpertRows {
  ExpertShape shape;
  bool adds = false;
  RowForm form = RowForm::stored;
  ColumnRange range = nullptr;
};

std::byte* element(const TensorView& view, int64_t index) {
  return view.as<std::byte>() + index * dtype_bytes(view.dtype);
}

// body(expert, first row, rows, where they are arranged) for every expert that has rows.
template <typename Body>
void each_expert(const KernelCall& call, const ExpertRows& plan, const Body& body) {
  const int32_t* offsets = call.inputs[ExpertInputs::offsets].as<int32_t>();
  std::byte* arranged = plan.form == RowForm::stored ? nullptr : call.scratch.data();
  for (int64_t expert = 0; expert < plan.shape.experts; ++expert) {
    const int64_t first = offsets[expert], rows = offsets[expert + 1] - first;
    if (rows <= 0) continue;
    const bool in_form = is_arranged(plan.form, rows);
    body(expert, first, rows, in_form ? arranged : nullptr);
    if (in_form) arranged += align_up(rows, kTileLanes) * plan.shape.ins * 2;
  }
}

void arrange(const KernelCall& call, const ExpertRows& plan) {
  each_expert(call, plan, [&](int64_t, int64_t first, int64_t rows, std::byte* to) {
    if (!to) return;
    const void* from = element(call.inputs[ExpertInputs::rows], first * plan.shape.ins);
    (plan.form == RowForm::tiles ? arrange_tiles : arrange_rows)(from, rows, plan.shape.ins, to);
  });
}

// Columns begin .. end, of so many rows at a time as stay in the second-level cache.
void multiply(const KernelCall& call, const ExpertRows& plan, const RowProduct& all, std::byte* arranged, int64_t begin,
              int64_t end) {
  const DType x = call.inputs[ExpertInputs::rows].dtype, y = call.outputs[0].dtype;
  const int64_t most = rows_of_a_pass(plan.form, all.rows, all.ins);
  for (int64_t first = 0; first < all.rows; first += most) {
    RowProduct part = rows_from(all, first, x, y);
    part.rows = std::min(most, all.rows - first);
    part.arranged = arranged ? arranged + first * all.ins * 2 : nullptr;
    plan.range(part, begin, end);
  }
}

void run_rows(const KernelCall& call, const ExpertRows& plan) {
  const ExpertShape& shape = plan.shape;
  check_offsets(call.inputs[ExpertInputs::offsets].as<int32_t>(), shape);
  if (plan.form != RowForm::stored) arrange(call, plan);
  parallel_for(shape.outs, 32, [&](int64_t begin, int64_t end, int) {
    each_expert(call, plan, [&](int64_t expert, int64_t first, int64_t rows, std::byte* arranged) {
      RowProduct product{element(call.inputs[ExpertInputs::rows], first * shape.ins),
                         element(call.inputs[ExpertInputs::weight], expert * shape.outs * shape.ins)};
      product.y = element(call.outputs[0], first * shape.outs);
      if (plan.adds) product.residual = element(call.inputs[ExpertInputs::addend], first * shape.outs);
      product.rows = rows, product.outs = shape.outs, product.ins = shape.ins;
      multiply(call, plan, product, arranged, begin, end);
    });
  });
}

}  // namespace

KernelOffer make_expert_rows(const KernelSpec& spec, const DeviceFacts& facts) {
  if (std::string refusal = simd_refusal(facts); !refusal.empty()) return {nullptr, std::move(refusal)};
  const bool invariant = spec.attrs.integer("batch_invariant") != 0;
  const RowTypes types = expert_types(spec.call());
  ExpertRows plan{rows_shape(spec.call()), spec.attrs.integer("addend") != 0};
  const std::vector<int64_t>& dims = spec.inputs[ExpertInputs::rows].dims;
  const int64_t tokens = dims.size() < 2 ? plan.shape.rows : plan.shape.rows / dims[dims.size() - 2];
  if (tokens > 8 && !invariant) return {nullptr, "more than eight tokens"};
  if (invariant) plan.form = row_form(types, plan.shape.ins, facts.capabilities);
  if (const int64_t needed = arranged_bytes(plan.form, plan.shape); needed > spec.scratch_bytes) {
    if (plan.form == RowForm::tiles)  // with other bits than without
      return {nullptr, fmt::format("needs {} bytes of scratch, {} are booked", needed, spec.scratch_bytes)};
    plan.form = RowForm::stored;
  }
  plan.range = plan.form == RowForm::tiles ? tile_range(types.y) : dot_range(types, facts.capabilities);
  return {kernel_of([plan](const KernelCall& call) { run_rows(call, plan); }), {}};
}

}  // namespace headroom
