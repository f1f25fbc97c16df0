#include "cost/predict_loss.h"

#include <cmath>

#include "cost/call_seconds.h"
#include "cost/product_rates.h"
#include "ops/linear_cross_entropy/cuda_scratch.h"
#include "ops/linear_cross_entropy/tiled.h"

namespace headroom {
namespace {

// The work of a call on each of its chunks, and how often.
struct LossCall {
  Multiplication how;
  int64_t rows = 0, chunk = 0, vocabulary = 0, hidden = 0;
  bool gradient = false, trains = false, trains_bias = false;
  bool rounds = false;  // an f32 weight with bf16 rows
  int64_t logit_bytes = 4;
  int64_t sliced_rows = 0;  // that are computed together in slices of the vocabulary; 0: chunk by chunk
  // Products of a chunk: logits, and if there is a gradient dx and dw.
  double products() const { return trains ? 3 : gradient ? 2 : 1; }
  // In slices the logits are computed for the softmax, and again for the gradient.
  double sliced_products() const { return products() + (gradient ? 1 : 0); }
};

LossCall loss_call(const Op& op, const OpCall& call, const DeviceFacts& facts) {
  const auto [x, weight] = factors(call);
  LossCall loss;
  loss.how = {x.dtype, call.attrs.text("multiply")};
  loss.hidden = x.dims.back();
  loss.rows = element_count(x.dims) / loss.hidden;
  loss.vocabulary = element_count(weight.dims) / loss.hidden;
  const int64_t chunk = call.attrs.integer("chunk");
  loss.chunk = chunk > 0 ? std::min(loss.rows, chunk) : loss.rows;
  loss.gradient = op.cost_class() == CostClass::loss_grad;
  loss.trains = loss.gradient && call.attrs.integer("train_weight") != 0;
  loss.trains_bias = loss.gradient && call.attrs.integer("train_bias") != 0;
  loss.rounds = x.dtype != weight.dtype;
  if (call.attrs.text("logits") == "bf16") loss.logit_bytes = 2;
  if (facts.is_cpu() && loss.rows > 0 && runs_sliced(call, facts, loss.gradient))
    loss.sliced_rows = loss_slices(loss_shape(call), x.dtype, loss.gradient).rows;
  return loss;
}

double flops_of(const ProductShape& shape) {
  return 2.0 * static_cast<double>(shape.rows) * static_cast<double>(shape.outs) * static_cast<double>(shape.ins);
}

// Seconds for all chunks, of kWideLossChunk rows or more: at the measured rate, which is that of a hidden size and
// chunk whatever the vocabulary; else the products at the rate of the head's shape per chunk, plus passes over the
// logits.
double wide_chunks(const LossCall& loss, const Profile& profile) {
  const ProductShape shape{loss.chunk, loss.vocabulary, loss.hidden};
  const double flops = flops_of({loss.rows, loss.vocabulary, loss.hidden});
  if (loss.gradient)
    if (const double rate = measured_rate(profile, kLossGradientRates, loss.how, shape); rate > 0)
      return loss.products() * flops / rate;
  double seconds = flops / product_rate(profile, kOutputRates, loss.how, shape);
  const double logits = 4.0 * static_cast<double>(loss.rows) * static_cast<double>(loss.vocabulary);
  seconds += logits * (loss.gradient ? 3 : 1) / profile.softmax_bytes_per_second;
  if (!loss.gradient) return seconds;
  seconds += flops / product_rate(profile, kInputGradientRates, loss.how, shape);
  return seconds + flops / product_rate(profile, kWeightGradientRates, loss.how, shape);
}

// Seconds for one chunk of fewer rows than kWideLossChunk. They grow linearly with the rows, from the time to move the
// weight for each product and the sums of its gradient both ways.
double thin_chunk(const LossCall& loss, const Profile& profile) {
  const auto weight = static_cast<double>(loss.vocabulary * loss.hidden);
  LossCall wide = loss;
  wide.rows = wide.chunk = kWideLossChunk;
  const double most = wide_chunks(wide, profile);
  const double reads = (loss.gradient ? 2 : 1) * static_cast<double>(dtype_bytes(loss.how.dtype));
  const double least = std::min(most, weight * (reads + (loss.trains ? 8 : 0)) / profile.copy_bytes_per_second);
  return least + (most - least) * static_cast<double>(loss.chunk) / static_cast<double>(kWideLossChunk);
}

// A measured loss in slices.
const ProductSample* sliced_sample(const LossCall& loss, const Profile& profile) {
  if (!loss.gradient) return nullptr;
  const DType dtype = measured_dtype(profile, loss.how.dtype);
  for (const ProductSample& sample : profile.products)
    if (sample.op == kLossGradientRates.key && sample.dtype == dtype && sample.multiply == loss.how.multiply &&
        sample.rows < kWideLossChunk)
      return &sample;
  return nullptr;
}

// Seconds for all rows in slices of the vocabulary: at the measured rate, which counts three products and the softmax,
// or as chunks of so many rows with one more product.
double in_slices(const LossCall& loss, const Profile& profile) {
  if (const ProductSample* sample = sliced_sample(loss, profile))
    return 3 * flops_of({loss.rows, loss.vocabulary, loss.hidden}) / sample->flops_per_second * loss.sliced_products() /
           4;
  LossCall wide = loss;
  wide.chunk = loss.sliced_rows;
  return wide_chunks(wide, profile) * loss.sliced_products() / loss.products();
}

// Every chunk, or all rows of a slice, round a wide weight.
double on_cpu(const LossCall& loss, const Profile& profile) {
  if (loss.chunk == 0) return 0;
  const bool sliced = loss.sliced_rows > 0;
  const int64_t together = sliced ? loss.sliced_rows : loss.chunk;
  const auto chunks = static_cast<double>((loss.rows + together - 1) / together);
  const double weight_bytes = 4.0 * static_cast<double>(loss.vocabulary * loss.hidden);
  const double rounding = loss.rounds ? chunks * weight_bytes / profile.stream_bytes_per_second : 0;
  if (sliced) return rounding * loss.sliced_products() / loss.products() + in_slices(loss, profile);
  return rounding + (loss.chunk < kWideLossChunk ? chunks * thin_chunk(loss, profile) : wide_chunks(loss, profile));
}

// One product of a chunk: its arithmetic, or moving its operands if that takes longer.
double product_seconds(const Profile& profile, const ProductRates& rates, Multiplication how, const ProductShape& shape,
                       double bytes) {
  const double work =
      std::max(flops_of(shape) / product_rate(profile, rates, how, shape), bytes / profile.stream_bytes_per_second);
  return with_launch(profile, work);
}

// A chunk of shape.rows rows. The logits are in fp32 or bf16, their gradient in the operands' dtype; every chunk reads
// the sums of the weight's gradient and writes them again.
double chunk_seconds(const Profile& profile, const LossCall& loss, const ProductShape& shape) {
  const auto real = [](int64_t count) { return static_cast<double>(count); };
  const double element = static_cast<double>(dtype_bytes(loss.how.dtype));
  const double x = real(shape.rows) * real(shape.ins) * element, weight = real(shape.outs) * real(shape.ins) * element,
               logits = real(shape.rows) * real(shape.outs) * real(loss.logit_bytes),
               slopes = real(shape.rows) * real(shape.outs) * element, sums = real(shape.outs) * real(shape.ins) * 4;
  double seconds = product_seconds(profile, kOutputRates, loss.how, shape, x + weight + logits);
  const bool held = loss.logit_bytes == 2 && loss.vocabulary <= kCudaHeldLogits;
  const double passes = loss.gradient ? (held ? 1 : 2) * logits + slopes : logits;
  seconds += with_launch(profile, passes / profile.softmax_bytes_per_second);
  if (loss.gradient) seconds += product_seconds(profile, kInputGradientRates, loss.how, shape, slopes + weight + x);
  if (loss.trains) seconds += product_seconds(profile, kWeightGradientRates, loss.how, shape, slopes + x + 2 * sums);
  if (loss.trains_bias) seconds += with_launch(profile, slopes / profile.stream_bytes_per_second);
  return seconds;
}

// The ratio of the measured chunks' time to that of chunk_seconds(); 1 if none was measured.
double measured_share(const Profile& profile, const LossCall& loss) {
  LossCall measured;
  measured.how = loss.how;
  measured.gradient = measured.trains = true;
  NearMean logarithms;
  for (const ProductSample& sample : profile.products) {
    if (sample.op != kLossGradientRates.key || sample.dtype != loss.how.dtype || sample.multiply != loss.how.multiply)
      continue;
    const ProductShape shape{sample.rows, sample.outs, sample.ins};
    const double seconds = 3 * flops_of(shape) / sample.flops_per_second;
    logarithms.add(shape_distance(profile, sample, {loss.chunk, sample.outs, loss.hidden}),
                   std::log(seconds / chunk_seconds(profile, measured, shape)));
  }
  return logarithms.empty() ? 1 : std::exp(logarithms.mean());
}

// Chunk by chunk; the last may be shorter; a wide weight is rounded once.
double on_gpu(const LossCall& loss, const Profile& profile) {
  double seconds = 0;
  if (loss.chunk > 0) {
    const auto of_rows = [&](int64_t rows) {
      return rows > 0 ? chunk_seconds(profile, loss, {rows, loss.vocabulary, loss.hidden}) : 0.0;
    };
    seconds = static_cast<double>(loss.rows / loss.chunk) * of_rows(loss.chunk) + of_rows(loss.rows % loss.chunk);
  }
  if (loss.gradient) seconds *= measured_share(profile, loss);
  if (loss.rounds)
    seconds += with_launch(profile,
                           6.0 * static_cast<double>(loss.vocabulary * loss.hidden) / profile.stream_bytes_per_second);
  return seconds + profile.launch_seconds;  // for the sum of the rows' losses
}

}  // namespace

double predict_loss(const Op& op, const OpCall& call, const Profile& profile) {
  const LossCall loss = loss_call(op, call, profile.facts);
  return profile.facts.is_cpu() ? on_cpu(loss, profile) : on_gpu(loss, profile);
}

}  // namespace headroom
