#include "ops/linear/cpu_rows.h"

#include "base/threads.h"
#include "ops/linear/cpu_coded_rows.h"
#include "ops/linear/row_products.h"
#include "ops/linear/scratch.h"

namespace headroom {
namespace {

// The threads share the columns of all layers.
void run_rows(const KernelCall& call, const RowsPlan& plan, ColumnRange range) {
  int64_t outs = 0;
  for (const TensorView& y : call.outputs) outs += y.dims.back();
  parallel_for(outs, 64, [&](int64_t begin, int64_t end, int) {
    for (size_t i = 0; i < call.outputs.size() && end > 0; ++i) {
      RowProduct product{call.inputs[0].data, call.inputs[1 + i].data};
      if (plan.bias != 0) product.bias = call.inputs[plan.bias + i].as<float>();
      if (plan.residual != 0) product.residual = call.inputs[plan.residual].data;
      product.y = call.outputs[i].data;
      product.rows = plan.count, product.outs = call.outputs[i].dims.back(), product.ins = plan.ins;
      const int64_t to = std::min(end, product.outs);
      if (begin < to) range(product, begin, to);
      begin = std::max<int64_t>(0, begin - product.outs), end -= product.outs;
    }
  });
}

KernelOffer make_rows(const KernelSpec& spec, const RowsPlan& plan, const DeviceFacts& facts) {
  const RowTypes types{spec.inputs[0].dtype, spec.inputs[1].dtype, spec.outputs[0].dtype};
  for (size_t i = 0; i < spec.outputs.size(); ++i) {
    if (!spec.inputs[1 + i].storage.dense()) return {nullptr, "the weight is stored in blocks of codes"};
    if (spec.inputs[1 + i].dtype != types.w) return {nullptr, "weights of several dtypes"};
  }
  if (types.w != types.x && !plan.any_count) return {nullptr, "the weight has another dtype than x"};
  if (!facts.capabilities.has(kAvx2)) return {nullptr, "the machine has no AVX2"};
  if (plan.count > 8 && !plan.any_count) return {nullptr, "more than eight rows"};
  const ColumnRange range = plan.out_in ? dot_range(types, facts.capabilities) : combine_range(types);
  return {kernel_of([plan, range](const KernelCall& call) { run_rows(call, plan, range); }), {}};
}

}  // namespace

KernelOffer make_linear_rows(const KernelSpec& spec, const DeviceFacts& facts) {
  const LinearShape shape = linear_shape(spec.inputs[0], spec.inputs[1], spec.attrs);
  const LinearOperands inputs = linear_operands(spec.attrs);
  if (inputs.low_rank != 0) return {nullptr, "a low-rank product is added"};
  const RowsPlan plan{shape.rows, shape.ins, shape.out_in, inputs.bias, inputs.last, is_batch_invariant(spec.attrs)};
  return spec.inputs[1].storage.dense() ? make_rows(spec, plan, facts) : make_coded_rows(spec, plan, facts);
}

KernelOffer make_linear_group_rows(const KernelSpec& spec, const DeviceFacts& facts) {
  const LinearShape shape = linear_shape(spec.inputs[0], spec.inputs[1], spec.attrs);
  const size_t bias = spec.attrs.integer("bias") != 0 ? 1 + spec.outputs.size() : 0;
  return make_rows(spec, {shape.rows, shape.ins, shape.out_in, bias, 0, is_batch_invariant(spec.attrs)}, facts);
}

}  // namespace headroom
