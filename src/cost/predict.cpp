#include "cost/predict.h"

#include <algorithm>

#include "cost/attention_rates.h"
#include "cost/call_seconds.h"
#include "cost/predict_loss.h"
#include "cost/product_rates.h"
#include "ops/linear/fp8.h"
#include "ops/linear/int8_blocks.h"

namespace headroom {
namespace {

// An expert's product has the rates of a linear layer with its share of the rows, and so has a group of layers.
const ProductRates& rates_of(ProductPart part) {
  if (part == ProductPart::input_gradient) return kInputGradientRates;
  return part == ProductPart::weight_gradient ? kWeightGradientRates : kOutputRates;
}

// bf16 when any operand is narrow: its measurements also count for f16, which moves as many bytes.
DType dtype_of(const OpCall& call) {
  const auto narrow = [](const ConcreteType& type) { return type.dtype == DType::bf16 || type.dtype == DType::f16; };
  return std::any_of(call.inputs.begin(), call.inputs.end(), narrow) ||
                 std::any_of(call.outputs.begin(), call.outputs.end(), narrow)
             ? DType::bf16
             : DType::f32;
}

double stream_rate(const Profile& profile, std::string_view key, const OpCall& call, double otherwise) {
  const DType dtype = dtype_of(call);
  for (const StreamRate& rate : profile.streams)
    if (rate.op == key && rate.dtype == dtype) return rate.bytes_per_second;
  return otherwise;
}

double sequence_factor(const Profile& profile, const OpCall& call) {
  const DType dtype = dtype_of(call);
  for (const SequenceFactor& sequence : profile.in_sequence)
    if (sequence.dtype == dtype) return sequence.factor;
  return 1;
}

// The time to decode a weight: a GPU writes the decoded copy before the product; on a CPU every thread decodes what its
// rows need, at about half of the rate at which the threads together stream f32.
double decoding_seconds(const OpCall& call, const Profile& profile) {
  const auto [rows, weight] = factors(call);
  const auto elements = static_cast<double>(element_count(weight.dims));
  if (profile.facts.is_cpu()) return 2 * 4 * elements / profile.stream_bytes_per_second;
  const double copy = elements * static_cast<double>(dtype_bytes(rows.dtype));
  return with_launch(profile, (copy + static_cast<double>(storage_bytes(weight))) / profile.stream_bytes_per_second);
}

// The time for an f32 weight with bf16 rows, since the measured rates are those of narrow weights. A GPU writes a copy,
// half as large, before the product. A quantized weight is decoded to the dtype of the rows, unless its codes are
// multiplied as they are.
double rounding_seconds(const OpCall& call, const Profile& profile) {
  if (multiplies_int8_blocks(call.attrs)) return 0;
  const auto [rows, weight] = factors(call);
  if (!weight.storage.dense()) return decoding_seconds(call, profile);
  if (rows.dtype == weight.dtype) return 0;
  const double bytes = static_cast<double>(storage_bytes(weight));
  if (!profile.facts.is_cpu()) return with_launch(profile, 1.5 * bytes / profile.stream_bytes_per_second);
  return bytes / profile.stream_bytes_per_second;
}

// The time to round both operands to fp8, unless measured fp8 rates include it: each is read twice, for its largest
// element and for its codes, with one launch each.
double fp8_seconds(const ProductShape& shape, ProductPart part, const Profile& profile) {
  const auto elements = [](int64_t a, int64_t b) { return static_cast<double>(a) * static_cast<double>(b); };
  const double rows = part == ProductPart::output ? elements(shape.rows, shape.ins) : elements(shape.rows, shape.outs);
  const double other =
      part == ProductPart::weight_gradient ? elements(shape.rows, shape.ins) : elements(shape.outs, shape.ins);
  double seconds = 0;
  for (const double operand : {rows, other})
    for (const double bytes : {2 * operand, 3 * operand})
      seconds += with_launch(profile, bytes / profile.stream_bytes_per_second);
  return seconds;
}

// A linear layer whose residual and result are the fp32 stream's moves more than its operands. On a GPU few rows take
// as long as moving the weight, however fast large products are.
double predict_product(const Op& op, const OpCall& call, const Profile& profile) {
  const double flops = op.work(call).flops;
  Multiplication how{factors(call).left.dtype, call.attrs.text("multiply")};
  const ProductShape shape = op.product_shape(call);
  const bool fp8 = how.multiply == kMultiplyFp8 && fits_fp8(shape.rows, shape.outs, shape.ins);
  if (how.multiply == kMultiplyFp8 && !fp8) how.multiply = {};
  double rate = 0;
  if (!fp8 && op.product().part == ProductPart::output && call.attrs.integer("residual") != 0)
    rate = measured_rate(profile, kResidualRates, how, shape);
  if (rate <= 0) rate = product_rate(profile, rates_of(op.product().part), how, shape);
  if (profile.facts.is_cpu()) return flops / rate + rounding_seconds(call, profile) + profile.launch_seconds;
  const double moving = op.work(call).bytes / profile.stream_bytes_per_second;
  const bool rounds_apart = fp8 && measured_rate(profile, rates_of(op.product().part), how, shape) <= 0;
  const double rounding =
      rounding_seconds(call, profile) + (rounds_apart ? fp8_seconds(shape, op.product().part, profile) : 0);
  return with_launch(profile, std::max(flops / rate, moving)) + rounding;
}

// Every expert's matrix is read from memory, however few rows it has.
double predict_experts(const Op& op, const OpCall& call, const Profile& profile) {
  const Work work = op.work(call);
  const Multiplication how{factors(call).left.dtype, call.attrs.text("multiply")};
  const double rate = product_rate(profile, rates_of(op.product().part), how, op.product_shape(call));
  const double seconds = work.flops / rate + rounding_seconds(call, profile);
  return with_launch(profile, std::max(seconds, work.bytes / profile.stream_bytes_per_second));
}

double predict_moved(const Op& op, const OpCall& call, const Profile& profile, double otherwise) {
  return with_launch(profile, op.work(call).bytes / stream_rate(profile, op.rate_key(), call, otherwise));
}

// By the bytes; for ops that multiply matrices in bf16, the longer of bytes and arithmetic.
double predict_update(const Op& op, const OpCall& call, const Profile& profile) {
  const Work work = op.work(call);
  const double moving = work.bytes / profile.optimizer_bytes_per_second;
  const ProductShape shape = op.product_shape(call);
  if (shape.rows * shape.outs * shape.ins <= 1) return moving;
  return std::max(moving, work.flops / product_rate(profile, rates_of(ProductPart::output), {DType::bf16, {}}, shape));
}

// The lower tier at one end of a copy.
Tier crossed(const Attrs& attrs) {
  return attrs.text("to") == "disk" || attrs.text("from") == "disk" ? Tier::disk : Tier::host;
}

double predict_alone(const Op& op, const OpCall& call, const Profile& profile) {
  switch (op.cost_class()) {
    case CostClass::none:
      return 0;
    case CostClass::gemm:
      if (op.product().matrices == ProductMatrices::experts) return predict_experts(op, call, profile);
      return predict_product(op, call, profile);
    case CostClass::logits:
      return predict_product(op, call, profile);
    case CostClass::attention:
      return with_launch(profile, op.work(call).flops / attention_rate(profile, call, AttentionPass::forward));
    case CostClass::attention_grad:
      return with_launch(profile, op.work(call).flops / attention_rate(profile, call, AttentionPass::backward));
    case CostClass::loss:
    case CostClass::loss_grad:
      return predict_loss(op, call, profile);
    case CostClass::optimizer:
      return with_launch(profile, predict_update(op, call, profile));
    case CostClass::copy:
      if (!call.attrs.has("to"))  // not a copy between tiers, but like a cast: on a GPU within its own memory
        return predict_moved(op, call, profile,
                             profile.facts.is_cpu() ? profile.copy_bytes_per_second : profile.stream_bytes_per_second);
      return predict_copy(op, call, crossed(call.attrs), call.attrs.text("to") != "device", profile);
    case CostClass::collective:
      return op.work(call).bytes / profile.copy_bytes_per_second + profile.launch_seconds;
    case CostClass::stream:
      break;
  }
  return predict_moved(op, call, profile, profile.stream_bytes_per_second);
}

}  // namespace

double predict_copy(const Op& op, const OpCall& call, Tier below, bool out, const Profile& profile) {
  const double rate = below == Tier::host ? profile.copy_bytes_per_second
                      : out               ? profile.disk_write_bytes_per_second
                                          : profile.disk_read_bytes_per_second;
  return op.work(call).bytes / rate + profile.launch_seconds;
}

double predict_call(const Op& op, const OpCall& call, const Profile& profile) {
  const double seconds = predict_alone(op, call, profile);
  const CostClass cost = op.cost_class();
  return cost == CostClass::gemm || cost == CostClass::stream ? seconds * sequence_factor(profile, call) : seconds;
}

}  // namespace headroom
