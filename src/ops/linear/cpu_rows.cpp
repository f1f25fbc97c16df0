#include "ops/linear/cpu_rows.h"

#include "ops/cast/convert.h"
#include "ops/linear/cpu_coded_rows.h"
#include "ops/linear/cpu_int8_blocks.h"
#include "ops/linear/decoded_rows.h"
#include "ops/linear/scratch.h"

namespace headroom {
namespace {

void run_rows(const KernelCall& call, const RowsPlan& plan, ColumnRange range) {
  each_part(call, plan, call.scratch.data(), 64, [&](size_t i, RowProduct product, int64_t begin, int64_t end, int) {
    product.w = call.inputs[1 + i].data;
    range(product, begin, end);
  });
}

// Rows of the weight are converted to f32 as x is.
void run_wide_rows(const KernelCall& call, const RowsPlan& plan, const DecodedRows& decoded) {
  decoded.run(call, plan, [&](size_t i, int64_t row, int64_t rows, void* to) {
    const TensorView& w = call.inputs[1 + i];
    convert_floats(behind(w.data, row * plan.ins, w.dtype), w.dtype, to, DType::f32, rows * plan.ins);
  });
}

KernelOffer make_wide_rows(const KernelSpec& spec, RowsPlan plan, const DeviceFacts& facts) {
  plan.wide = true;
  const DecodedRows decoded(plan, DType::f32, spec.outputs[0].dtype, facts);
  return {kernel_of([plan, decoded](const KernelCall& call) { run_wide_rows(call, plan, decoded); }), {}};
}

KernelOffer make_rows(const KernelSpec& spec, RowsPlan plan, const DeviceFacts& facts) {
  const RowTypes types{spec.inputs[LinearInputs::left].dtype, spec.inputs[LinearInputs::weight].dtype,
                       spec.outputs[0].dtype};
  for (size_t i = 0; i < spec.outputs.size(); ++i) {
    if (!spec.inputs[1 + i].storage.dense()) return {nullptr, "the weight is stored in blocks of codes"};
    if (spec.inputs[1 + i].dtype != types.w) return {nullptr, "weights of several dtypes"};
  }
  if (!facts.capabilities.has(kAvx2)) return {nullptr, "the machine has no AVX2"};
  if (plan.count > 8 && !plan.any_count) return {nullptr, "more than eight rows"};
  if (plan.any_count && plan.out_in && widens_both(types, plan.count, facts) &&
      rows_scratch(spec.call(), facts) <= spec.scratch_bytes)
    return make_wide_rows(spec, plan, facts);
  plan.tiles = multiplied_on_tiles(types, plan, facts);
  if (const int64_t needed = tiled_bytes(plan.count, plan.ins); plan.tiles && needed > spec.scratch_bytes)
    return {nullptr, fmt::format("needs {} bytes of scratch, {} are booked", needed, spec.scratch_bytes)};
  plan.arranged = rows_to_arrange(types, plan, facts, spec.scratch_bytes);
  const ColumnRange range = plan.out_in ? products_of(types, plan, facts) : combine_range(types);
  return {kernel_of([plan, range](const KernelCall& call) { run_rows(call, plan, range); }), {}};
}

KernelOffer make_either(const KernelSpec& spec, const RowsPlan& plan, const DeviceFacts& facts) {
  if (multiplies_int8_blocks(spec.attrs)) return {nullptr, kInBlocks};
  return spec.inputs[LinearInputs::weight].storage.dense() ? make_rows(spec, plan, facts)
                                                           : make_coded_rows(spec, plan, facts);
}

}  // namespace

bool multiplied_on_tiles(const RowTypes& types, const RowsPlan& plan, const DeviceFacts& facts) {
  return plan.out_in && plan.any_count && runs_on_tiles(types, plan.ins, facts.capabilities);
}

int64_t rows_to_arrange(const RowTypes& types, const RowsPlan& plan, const DeviceFacts& facts, int64_t scratch_bytes) {
  if (!plan.out_in || !plan.any_count) return 0;
  if (plan.tiles) return tiled_rows(plan.count, plan.ins);
  const int64_t needed = arranged_bytes(types, plan.count, plan.ins, facts.capabilities);
  return needed > 0 && needed <= scratch_bytes ? arranged_rows(plan.count, plan.ins) : 0;
}

ColumnRange products_of(const RowTypes& types, const RowsPlan& plan, const DeviceFacts& facts) {
  return plan.tiles ? tile_range(types.y) : dot_range(types, facts.capabilities);
}

PassRows pass_from(const KernelCall& call, const RowsPlan& plan, int64_t first, std::byte* scratch) {
  PassRows rows{first, std::min(plan.pass_rows(), plan.count - first)};
  const TensorView& x = call.inputs[LinearInputs::left];
  const void* const from = behind(x.data, first * plan.ins, x.dtype);
  if (plan.wide) {
    convert_in_parallel(from, x.dtype, scratch, DType::f32, rows.count * plan.ins);
    rows.wide = scratch;
  } else if (plan.tiles && rows.count > 1) {
    arrange_tiles(from, rows.count, plan.ins, scratch);
    rows.arranged = scratch;
  } else if (!plan.tiles && plan.arranged > 0 && rows_in_blocks(rows.count) > 0) {
    arrange_rows(from, rows.count, plan.ins, scratch);
    rows.arranged = scratch;
  }
  return rows;
}

RowProduct row_product(const KernelCall& call, const RowsPlan& plan, const PassRows& rows, size_t i) {
  RowProduct product{call.inputs[LinearInputs::left].data};
  if (plan.bias != 0) product.bias = call.inputs[plan.bias + i].as<float>();
  if (plan.residual != 0) product.residual = call.inputs[plan.residual].data;
  product.y = call.outputs[i].data;
  product.rows = rows.count, product.outs = call.outputs[i].dims.back(), product.ins = plan.ins;
  product = rows_from(product, rows.first, call.inputs[LinearInputs::left].dtype, call.outputs[i].dtype);
  product.rows = rows.count;
  product.arranged = rows.arranged;
  if (rows.wide) product.x = rows.wide;
  return product;
}

RowsPlan rows_plan(const KernelSpec& spec) {
  const LinearShape shape = linear_shape(spec.call());
  const bool one = spec.op == "linear";
  LinearOperands inputs;
  if (one) inputs = linear_operands(spec.attrs);
  if (!one && spec.attrs.integer("bias") != 0) inputs.bias = 1 + spec.outputs.size();
  return {shape.rows, shape.ins, shape.out_in, inputs.bias, inputs.last, is_batch_invariant(spec.attrs)};
}

bool stored_alike(const KernelSpec& spec) {
  const auto weights = std::span(spec.inputs).subspan(LinearInputs::weight, spec.outputs.size());
  return std::all_of(weights.begin(), weights.end(),
                     [&](const ConcreteType& weight) { return weight.storage == weights.front().storage; });
}

KernelOffer make_linear_rows(const KernelSpec& spec, const DeviceFacts& facts) {
  if (linear_operands(spec.attrs).low_rank != 0) return {nullptr, "a low-rank product is added"};
  if (multiply_of(spec.attrs) == Multiply::int8) return {nullptr, "the operands are multiplied as 8-bit codes"};
  return make_either(spec, rows_plan(spec), facts);
}

KernelOffer make_linear_group_rows(const KernelSpec& spec, const DeviceFacts& facts) {
  return make_either(spec, rows_plan(spec), facts);
}

}  // namespace headroom
