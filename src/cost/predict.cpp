#include "cost/predict.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/error.h"

namespace headroom {
namespace {

// The key of a product's rates in a profile: an expert's product has those of a linear layer with its share of the
// rows, and so has a group of layers.
std::string_view rates_of(ProductPart part) {
  if (part == ProductPart::input_gradient) return "linear_dx";
  return part == ProductPart::weight_gradient ? "linear_dw" : "linear";
}

double gap(int64_t a, int64_t b) {
  return std::log2(static_cast<double>(std::max<int64_t>(1, a)) / static_cast<double>(std::max<int64_t>(1, b)));
}

double log_distance(const ProductSample& sample, const ProductShape& shape) {
  const double r = gap(sample.rows, shape.rows), o = gap(sample.outs, shape.outs), i = gap(sample.ins, shape.ins);
  return r * r + o * o + i * i;
}

// What a product's operands are, and how they are multiplied.
struct Arithmetic {
  DType dtype = DType::f32;
  std::string_view multiply;
};

// Ops that samples of any product say nothing about.
bool stands_for_more(std::string_view op) { return op == "linear_residual" || op == "linear_cross_entropy_grad"; }

ProductShape of_any_vocabulary(const ProductSample& sample, ProductShape shape) {
  shape.outs = sample.outs;
  return shape;
}

// Inverse-square-distance mean of the logarithms of the measured rates; 0 when nothing was measured.
double measured_rate(const Profile& profile, std::string_view op, Arithmetic arithmetic, const ProductShape& shape) {
  double weight = 0, sum = 0;
  for (const ProductSample& sample : profile.products) {
    if (sample.dtype != arithmetic.dtype || sample.multiply != arithmetic.multiply) continue;
    if (sample.op.empty() ? stands_for_more(op) : sample.op != op) continue;
    const double d = log_distance(sample, op == "linear_cross_entropy_grad" ? of_any_vocabulary(sample, shape) : shape);
    const double w = 1.0 / (d * d + 1e-6);
    weight += w;
    sum += w * std::log(sample.flops_per_second);
  }
  return weight > 0 ? std::exp(sum / weight) : 0;
}

// fp32 operands multiplied as bf16 numbers, where that was not measured: at the rate of bf16, or a third of it. A CPU
// without bf16 tiles multiplies the rounded numbers in fp32, two products for the three of bf16x3.
double product_rate(const Profile& profile, std::string_view op, Arithmetic arithmetic, const ProductShape& shape) {
  if (arithmetic.dtype != DType::f32) arithmetic.multiply = {};
  if (const double rate = measured_rate(profile, op, arithmetic, shape); rate > 0) return rate;
  if (!arithmetic.multiply.empty() && profile.facts.device == "cpu" && profile.facts.isa < 514) {
    const double rate = product_rate(profile, op, {DType::f32, {}}, shape);
    return arithmetic.multiply == "bf16x3" ? rate / 2 : rate;
  }
  HR_CHECK(!arithmetic.multiply.empty(), "profile {} has no rate for {} in {}", profile.name, op,
           dtype_name(arithmetic.dtype));
  const double rate = product_rate(profile, op, {DType::bf16, {}}, shape);
  return arithmetic.multiply == "bf16x3" ? rate / 3 : rate;
}

// The mean of the logarithms of the measured rates, as for products.
double attention_rate(const Profile& profile, const OpCall& call, bool backward) {
  const ConcreteType& q = call.inputs[0];
  const int64_t head_dim = q.dims.back() / std::max<int64_t>(1, call.attrs.integer("heads"));
  double weight = 0, sum = 0;
  for (const AttentionRate& rate : profile.attention) {
    if (rate.dtype != q.dtype) continue;
    const double s = rate.sequence > 0 ? gap(rate.sequence, q.dims[1]) : 0;
    const double h = rate.head_dim > 0 ? gap(rate.head_dim, head_dim) : 0;
    const double d = s * s + h * h;
    const double w = 1.0 / (d * d + 1e-6);
    weight += w;
    sum += w * std::log(backward ? rate.backward : rate.forward);
  }
  HR_CHECK(weight > 0, "profile {} has no attention rate for {}", profile.name, dtype_name(q.dtype));
  return std::exp(sum / weight);
}

// bf16 when any operand is.
DType dtype_of(const OpCall& call) {
  const auto narrow = [](const ConcreteType& type) { return type.dtype == DType::bf16; };
  return std::any_of(call.inputs.begin(), call.inputs.end(), narrow) ||
                 std::any_of(call.outputs.begin(), call.outputs.end(), narrow)
             ? DType::bf16
             : DType::f32;
}

double stream_rate(const Profile& profile, std::string_view op, const OpCall& call, double otherwise) {
  const DType dtype = dtype_of(call);
  for (const StreamRate& rate : profile.streams)
    if (rate.op == op && rate.dtype == dtype) return rate.bytes_per_second;
  return otherwise;
}

double sequence_factor(const Profile& profile, const OpCall& call) {
  const DType dtype = dtype_of(call);
  for (const SequenceFactor& sequence : profile.in_sequence)
    if (sequence.dtype == dtype) return sequence.factor;
  return 1;
}

// What an f32 weight takes beside bf16 rows: measured rates are those of narrow weights.
double rounding_seconds(const OpCall& call, const Profile& profile) {
  if (call.inputs[0].dtype == call.inputs[1].dtype) return 0;
  return static_cast<double>(storage_bytes(call.inputs[1])) / profile.stream_bytes_per_second;
}

// A linear layer whose residual and result are the fp32 stream's moves more than its operands.
double predict_product(const Op& op, const OpCall& call, const Profile& profile) {
  const double flops = op.work(call).flops;
  const Arithmetic arithmetic{call.inputs[0].dtype, call.attrs.text("multiply")};
  const ProductShape shape = op.product_shape(call);
  double rate = 0;
  if (op.product().part == ProductPart::output && call.attrs.integer("residual") != 0)
    rate = measured_rate(profile, "linear_residual", arithmetic, shape);
  if (rate <= 0) rate = product_rate(profile, rates_of(op.product().part), arithmetic, shape);
  return flops / rate + rounding_seconds(call, profile) + profile.launch_seconds;
}

// The loss: its measured rate, which is that of its hidden size and chunk whatever the vocabulary; else its products at
// the rate of the head's shape per chunk, plus passes over the logits.
double predict_loss(const Op& op, const OpCall& call, const Profile& profile) {
  const ConcreteType& x = call.inputs[0];
  const int64_t hidden = x.dims.back(), rows = element_count(x.dims) / hidden,
                vocab = element_count(call.inputs[1].dims) / hidden;
  const int64_t chunk = call.attrs.integer("chunk") > 0 ? std::min(rows, call.attrs.integer("chunk")) : rows;
  const double flops = 2.0 * static_cast<double>(rows) * static_cast<double>(vocab) * static_cast<double>(hidden);
  const bool gradient = op.cost_class() == CostClass::loss_grad;
  const Arithmetic arithmetic{x.dtype, call.attrs.text("multiply")};
  const int64_t chunks = chunk > 0 ? (rows + chunk - 1) / chunk : 0;  // each rounds a wide weight
  double seconds = static_cast<double>(chunks) * rounding_seconds(call, profile);
  if (gradient)
    if (const double rate = measured_rate(profile, "linear_cross_entropy_grad", arithmetic, {chunk, vocab, hidden});
        rate > 0)
      return seconds + (call.attrs.integer("train_weight") != 0 ? 3 : 2) * flops / rate;
  seconds += flops / product_rate(profile, "linear", arithmetic, {chunk, vocab, hidden});
  const double logits = 4.0 * static_cast<double>(rows) * static_cast<double>(vocab);
  seconds += logits * (gradient ? 3 : 1) / profile.softmax_bytes_per_second;
  if (!gradient) return seconds;
  seconds += flops / product_rate(profile, "linear_dx", arithmetic, {chunk, vocab, hidden});
  return seconds + flops / product_rate(profile, "linear_dw", arithmetic, {chunk, vocab, hidden});
}

// Every expert's matrix comes from memory, however few rows meet it.
double predict_experts(const Op& op, const OpCall& call, const Profile& profile) {
  const Work work = op.work(call);
  const Arithmetic arithmetic{call.inputs[0].dtype, call.attrs.text("multiply")};
  const double rate = product_rate(profile, rates_of(op.product().part), arithmetic, op.product_shape(call));
  const double seconds = work.flops / rate + rounding_seconds(call, profile);
  return std::max(seconds, work.bytes / profile.stream_bytes_per_second) + profile.launch_seconds;
}

double predict_moved(const Op& op, const OpCall& call, const Profile& profile, double otherwise) {
  return op.work(call).bytes / stream_rate(profile, op_name(op), call, otherwise) + profile.launch_seconds;
}

// The tier below the device that a copy has one end in.
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
    case CostClass::attention:
      return op.work(call).flops / attention_rate(profile, call, false) + profile.launch_seconds;
    case CostClass::attention_grad:
      return op.work(call).flops / attention_rate(profile, call, true) + profile.launch_seconds;
    case CostClass::loss:
    case CostClass::loss_grad:
      return predict_loss(op, call, profile);
    case CostClass::optimizer:
      return op.work(call).bytes / profile.optimizer_bytes_per_second + profile.launch_seconds;
    case CostClass::copy:
      if (!call.attrs.has("to"))  // stays where it is, as a cast: on a GPU in its own memory, not on the bus
        return predict_moved(
            op, call, profile,
            profile.facts.device == "cpu" ? profile.copy_bytes_per_second : profile.stream_bytes_per_second);
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
