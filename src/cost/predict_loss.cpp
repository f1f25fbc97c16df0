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

// A measured call with the gradient whose chunks had fewer rows than kWideLossChunk: in slices of the vocabulary, or
// where the device has bf16 tiles, in bf16, by chunks of these rows.
const ProductSample* thin_sample(const LossCall& loss, const Profile& profile, bool sliced) {
  const DType dtype = measured_dtype(profile, loss.how.dtype);
  const bool was_sliced = !(profile.facts.has_bf16_tiles() && dtype == DType::bf16);
  if (!loss.gradient || sliced != was_sliced) return nullptr;
  for (const ProductSample& sample : profile.products)
    if (sample.op == kLossGradientRates.key && sample.dtype == dtype && sample.multiply == loss.how.multiply &&
        sample.rows < kWideLossChunk)
      return &sample;
  return nullptr;
}

// Seconds to read the weight for `reads` products of a chunk, and the sums of its gradient both ways.
double moving_seconds(const LossCall& loss, const Profile& profile, double reads) {
  const double element = static_cast<double>(dtype_bytes(loss.how.dtype));
  return static_cast<double>(loss.vocabulary * loss.hidden) * (reads * element + (loss.trains ? 8 : 0)) /
         profile.copy_bytes_per_second;
}

// Seconds for one chunk of fewer rows than kWideLossChunk. They grow linearly with the rows, from those of the measured
// thin chunk, or if there is none from the time to move what it reads and writes.
double thin_chunk(const LossCall& loss, const Profile& profile) {
  LossCall wide = loss;
  wide.rows = wide.chunk = kWideLossChunk;
  const double most = wide_chunks(wide, profile);
  int64_t rows = 0;
  double least = moving_seconds(loss, profile, loss.gradient ? 2 : 1);
  if (const ProductSample* thin = thin_sample(loss, profile, false)) {
    rows = thin->rows;
    least = loss.products() * flops_of({rows, loss.vocabulary, loss.hidden}) / thin->flops_per_second;
  }
  least = std::min(least, most);
  const auto share =
      static_cast<double>(std::max<int64_t>(0, loss.chunk - rows)) / static_cast<double>(kWideLossChunk - rows);
  return least + (most - least) * share;
}

// Seconds for all rows in slices of the vocabulary, `groups` times as many as are processed together: at the measured
// rate, which counts three products of four, or as chunks of these rows with one more product; at least the time to
// move the weight and its sums for each group.
double in_slices(const LossCall& loss, const Profile& profile, double groups) {
  const double least = groups * moving_seconds(loss, profile, loss.gradient ? 3 : 1);
  if (const ProductSample* sample = thin_sample(loss, profile, true)) {
    const double three = 3 * flops_of({loss.rows, loss.vocabulary, loss.hidden}) / sample->flops_per_second;
    return std::max(least, three * loss.sliced_products() / 4);
  }
  LossCall group = loss;
  group.chunk = loss.sliced_rows;
  const double chunks =
      group.chunk < kWideLossChunk ? groups * thin_chunk(group, profile) : wide_chunks(group, profile);
  return std::max(least, chunks * loss.sliced_products() / loss.products());
}

// Every chunk, or all rows of a slice, round a wide weight.
double on_cpu(const LossCall& loss, const Profile& profile) {
  if (loss.chunk == 0) return 0;
  const bool sliced = loss.sliced_rows > 0;
  const int64_t together = sliced ? loss.sliced_rows : loss.chunk;
  const auto chunks = static_cast<double>((loss.rows + together - 1) / together);
  const double weight_bytes = 4.0 * static_cast<double>(loss.vocabulary * loss.hidden);
  const double rounding = loss.rounds ? chunks * weight_bytes / profile.stream_bytes_per_second : 0;
  // The gradient's slices are rounded for three products, a chunk for two.
  if (sliced) return rounding * (loss.gradient ? 1.5 : 1) + in_slices(loss, profile, chunks);
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
