#include "runtime/calibrate/round.h"

#include <fmt/format.h>

#include <optional>

#include "cost/predict.h"
#include "cost/product_rates.h"
#include "ops/attention/kernel_choice.h"
#include "ops/cuda/capabilities.h"
#include "ops/linear/fp8.h"
#include "ops/linear/int8.h"
#include "ops/linear/int8_blocks.h"
#include "ops/linear_cross_entropy/sliced.h"

namespace headroom {
namespace {

constexpr int64_t kThinChunks = 4;    // of the loss, in a call
constexpr int64_t kSlicedRows = 256;  // of the loss in slices of the vocabulary
constexpr int kWarmUpRuns = 12;  // of a large product, until the clock is that of sustained load, as in a training run

// How a product's operands are stored and multiplied.
struct Arithmetic {
  DType dtype = DType::f32;
  std::string multiply;  // attribute of the product; empty: as the operands are stored
  // Only products of layers are.
  bool in_eight_bits() const { return multiply == kMultiplyFp8 || multiply == kMultiplyInt8; }
  Attrs attrs() const {
    Attrs attrs{{"layout", "out_in"}};
    if (!multiply.empty()) attrs.set("multiply", multiply);
    return attrs;
  }
};

double flops_of(const ProductShape& s) {
  return 2.0 * static_cast<double>(s.rows) * static_cast<double>(s.outs) * static_cast<double>(s.ins);
}

void add_sample(TimedCalls& calls, Profile& profile, std::string_view op, const ProductShape& s, const Arithmetic& how,
                double flops_per_second) {
  profile.products.push_back(
      {std::string(op), how.dtype, s.rows, s.outs, s.ins, flops_per_second, how.multiply, calls.take_disturbed()});
}

// Inputs that are not in the caches in a step are cold: weights, accumulators, states, saved activations.
void measure_product(TimedCalls& calls, Profile& profile, const ProductShape& s, const Arithmetic& how) {
  const ConcreteType x{how.dtype, {1, s.rows, s.ins}}, w{how.dtype, {s.outs, s.ins}},
      dy{how.dtype, {1, s.rows, s.outs}}, acc{DType::f32, {s.outs, s.ins}};
  const auto measure = [&](const char* op, const Attrs& more, std::vector<ConcreteType> inputs,
                           const std::vector<size_t>& cold) {
    Attrs attrs = how.attrs();
    for (const auto& [name, value] : more.items()) attrs.set(name, value);
    const double seconds = calls.seconds(op, attrs, std::move(inputs), cold);
    add_sample(calls, profile, op, s, how, flops_of(s) / seconds);
  };
  measure("linear", {{"bias", int64_t{0}}, {"residual", int64_t{0}}}, {x, w}, {1});
  measure("linear_dx", {{"addend", int64_t{0}}}, {dy, w}, {1});
  measure("linear_dw", {{"accumulate", "always"}}, {x, dy, acc}, {0, 2});
}

// Products of 8-bit activations, with the codes of quantize-weights=int8-g32.
void measure_int8_blocks(TimedCalls& calls, Profile& profile, const ProductShape& s) {
  const ConcreteType x{DType::f32, {1, s.rows, s.ins}}, w{DType::f32, {s.outs, s.ins}, {kCodesBlock, 8}};
  const Arithmetic how{DType::f32, std::string(kMultiplyInt8Blocks)};
  Attrs attrs = how.attrs();
  attrs.set("bias", int64_t{0}).set("residual", int64_t{0});
  add_sample(calls, profile, "linear", s, how, flops_of(s) / calls.seconds("linear", attrs, {x, w}, {1}));
}

void measure_residual(TimedCalls& calls, Profile& profile, const ProductShape& s, const Arithmetic& how) {
  const ConcreteType x{how.dtype, {1, s.rows, s.ins}}, w{how.dtype, {s.outs, s.ins}},
      y{DType::f32, {1, s.rows, s.outs}};
  Attrs attrs = how.attrs();
  attrs.set("bias", int64_t{0}).set("residual", int64_t{1}).set("dtype", "f32");
  const double seconds = calls.seconds("linear", attrs, {x, w, y}, {1, 2});
  add_sample(calls, profile, kResidualRates.key, s, how, flops_of(s) / seconds);
}

// A chunk of few rows stands for a loss in slices of the vocabulary, which many rows meet together. On bf16 tiles it
// mostly moves the weight and its gradient's sums: several in a call, so that each but the last evicts what the one
// before it wrote, as in a step.
void measure_loss(TimedCalls& calls, Profile& profile, const ProductShape& s, const Arithmetic& how) {
  const bool tiles = profile.facts.has_bf16_tiles() && how.dtype == DType::bf16;
  const int64_t rows = s.rows >= kWideLossChunk ? s.rows : tiles ? kThinChunks * s.rows : kSlicedRows;
  const ConcreteType x{how.dtype, {1, rows, s.ins}}, w{how.dtype, {s.outs, s.ins}}, labels{DType::i32, {1, rows}},
      scale{DType::f32, {1}}, sums{DType::f64, {2}}, acc{DType::f32, {s.outs, s.ins}};
  Attrs attrs = how.attrs();
  attrs.set("chunk", s.rows).set("train_weight", int64_t{1}).set("accumulate", "always");
  attrs.set("loss_accumulate", "always");
  const double seconds =
      calls.seconds("linear_cross_entropy_grad", attrs, {x, w, labels, scale, sums, acc}, {1, 5}, true);
  add_sample(calls, profile, kLossGradientRates.key, s, how, 3 * flops_of({rows, s.outs, s.ins}) / seconds);
}

// A call of attention and one of its gradient, with 4 heads that share 2, for as many sequences as fill the device.
struct AttentionCalls {
  Attrs attrs{{"heads", int64_t{4}}, {"kv_heads", int64_t{2}}};
  std::vector<ConcreteType> forward, backward;

  AttentionCalls(const AttentionSizes& s, DType dtype) {
    const ConcreteType q{dtype, {s.batch, s.sequence, 4 * s.head_dim}}, k{dtype, {s.batch, s.sequence, 2 * s.head_dim}},
        lse{DType::f32, {s.batch, 4, s.sequence}};
    forward = {q, k, k}, backward = {q, k, k, q, lse, q};
  }
};

void measure_attention(TimedCalls& calls, Profile& profile, const AttentionSizes& s, DType dtype) {
  const AttentionCalls call(s, dtype);
  const double forward_seconds = calls.seconds("attention", call.attrs, call.forward, {0, 1, 2});
  const double forward = calls.work().flops / forward_seconds;
  const double backward_seconds = calls.seconds("attention_grad", call.attrs, call.backward, {0, 1, 2, 3});
  profile.attention.push_back(
      {dtype, forward, calls.work().flops / backward_seconds, s.sequence, s.head_dim, calls.take_disturbed(), {}});
}

// Every set of kernels that a plan may name. A set that does not support the call on the device has no rate.
void measure_attention_kernels(TimedCalls& calls, Profile& profile, const AttentionSizes& s) {
  for (const std::string_view kernels : {kCudnnKernels, kOwnKernels, kCudnnAnyOrder}) {
    AttentionCalls call(s, DType::bf16);
    call.attrs.set("kernels", std::string(kernels));
    const auto wanted = [&](std::string_view implementation) {
      return (implementation == "cudnn") == (kernels != kOwnKernels);
    };
    const auto rate = [&](const char* op, const std::vector<ConcreteType>& inputs, const std::vector<size_t>& cold) {
      const std::optional<double> seconds = calls.seconds_if(wanted, op, call.attrs, inputs, cold);
      return seconds ? calls.work().flops / *seconds : 0.0;
    };
    AttentionRate found{DType::bf16, 0, 0, s.sequence, s.head_dim, false, std::string(kernels)};
    if (kernels != kCudnnAnyOrder) found.forward = rate("attention", call.forward, {0, 1, 2});
    found.backward = rate("attention_grad", call.backward, {0, 1, 2, 3});
    found.disturbed = calls.take_disturbed();
    if (found.forward > 0 || found.backward > 0) profile.attention_kernels.push_back(found);
  }
}

// Elementwise ops and norms, as a step calls them: the residual stream in fp32, inputs of products in `dtype`.
void measure_streams(TimedCalls& calls, Profile& profile, const CalibrationSizes& sizes, DType dtype) {
  const int64_t rows = sizes.stream_rows, width = sizes.stream_width;
  const ConcreteType stream{DType::f32, {1, rows, width}}, x{dtype, {1, rows, width}},
      wide{dtype, {1, rows, 2 * width}}, norm{DType::f32, {width}}, table{DType::f32, {rows, 64}};
  const auto measure = [&](const char* op, const Attrs& attrs, std::vector<ConcreteType> inputs,
                           const std::vector<size_t>& cold) {
    const double seconds = calls.seconds(op, attrs, std::move(inputs), cold);
    profile.streams.push_back({op, dtype, calls.work().bytes / seconds, calls.take_disturbed()});
  };
  const std::string kept(dtype_name(dtype));
  measure("rms_norm", {{"eps", 1e-6}, {"dtype", kept}}, {stream, norm}, {0});
  measure("rms_norm_grad", {{"eps", 1e-6}, {"train", int64_t{1}}, {"accumulate", "always"}, {"addend", int64_t{1}}},
          {stream, norm, x, norm, stream}, {0});
  measure("layer_norm", {{"eps", 1e-6}, {"dtype", kept}}, {stream, norm, norm}, {0});
  measure("layer_norm_grad",
          {{"eps", 1e-6},
           {"train", int64_t{3}},
           {"accumulate", "always"},
           {"accumulate_bias", "always"},
           {"addend", int64_t{1}}},
          {stream, norm, x, norm, norm, stream}, {0});
  measure("swiglu", {}, {wide, wide}, {0, 1});
  measure("swiglu_grad", {}, {wide, wide, wide}, {0, 1});
  measure("gelu", {{"approximate", "tanh"}}, {wide}, {0});
  measure("gelu_grad", {{"approximate", "tanh"}}, {wide, wide}, {0});
  measure("rotary", {{"heads", width / 64}, {"offset", int64_t{0}}, {"inverse", int64_t{0}}}, {x, table}, {});
  measure("add", {}, {x, x}, {});
  measure("split", {{"sizes", fmt::format("{0},{0},{0}", width)}}, {{dtype, {1, rows, 3 * width}}}, {0});
  measure("dropout", {{"rate", 0.1}, {"tensor", int64_t{0}}}, {x, {DType::f32, {16}}}, {});
  measure("bias_grad", {{"accumulate", "always"}}, {wide, {DType::f32, {2 * width}}}, {});
  if (dtype == DType::f32) measure("sum_squares", {{"accumulate", "always"}}, {wide, {DType::f64, {1}}}, {0});
}

void measure_rest(TimedCalls& calls, Profile& profile, const CalibrationSizes& sizes) {
  const auto note = [&](const char* rate) {
    if (calls.take_disturbed()) profile.disturbed.push_back(rate);
  };
  const ConcreteType wide{DType::f32, {1, sizes.stream_rows, sizes.stream_width}},
      norm{DType::f32, {sizes.stream_width}};
  double seconds = calls.seconds("rms_norm", {{"eps", 1e-6}}, {wide, norm}, {});
  double bytes = calls.work().bytes;
  seconds += calls.seconds("swiglu", {}, {wide, wide}, {});
  bytes += calls.work().bytes;
  seconds += calls.seconds("add", {}, {wide, wide}, {});
  profile.stream_bytes_per_second = (bytes + calls.work().bytes) / seconds;
  note("stream_bytes_per_second");
  const ConcreteType weight{DType::f32, {sizes.optimizer_elements}};
  seconds = calls.seconds("adamw", {{"beta1", 0.9}, {"beta2", 0.999}, {"eps", 1e-8}, {"decay", int64_t{1}}},
                          {weight, weight, weight, weight, {DType::f32, {16}}, {DType::f32, {1}}}, {0, 1, 2, 3});
  profile.optimizer_bytes_per_second = calls.work().bytes / seconds;
  note("optimizer_bytes_per_second");
  const int64_t rows = sizes.softmax_rows, vocabulary = sizes.softmax_vocabulary;
  const ConcreteType x{DType::f32, {1, rows, 16}}, w{DType::f32, {vocabulary, 16}}, labels{DType::i32, {1, rows}},
      acc{DType::f64, {2}};
  seconds = calls.seconds("linear_cross_entropy", {{"layout", "out_in"}, {"chunk", rows}, {"accumulate", "carried"}},
                          {x, w, labels, acc}, {}, true);
  profile.softmax_bytes_per_second = 4.0 * static_cast<double>(rows * vocabulary) / seconds;
  note("softmax_bytes_per_second");
  seconds = calls.seconds("cast", {{"dtype", "bf16"}}, {{DType::f32, {1, sizes.stream_rows, 2048}}}, {0});
  const double cast_rate = calls.work().bytes / seconds;
  profile.copy_bytes_per_second = cast_rate;
  note("copy_bytes_per_second");
  if (!profile.facts.is_cpu()) {  // there copies between tiers cross a bus
    profile.copy_bytes_per_second = calls.copy_rate();
    profile.streams.push_back({"cast", DType::bf16, cast_rate});
  }
  profile.launch_seconds = calls.seconds("add", {}, {{DType::f32, {64}}, {DType::f32, {64}}}, {});
  note("launch_seconds");
}

// The feed-forward part of a layer with its gradient: each product finds the caches as the op before it left them.
TimedCalls::Sequence layer_of(const ProductShape& s, DType dtype) {
  const ConcreteType stream{DType::f32, {1, s.rows, s.ins}}, norm{DType::f32, {s.ins}}, dy{dtype, {1, s.rows, s.ins}},
      in{dtype, {s.outs, s.ins}}, out{dtype, {s.ins, s.outs}}, in_sum{DType::f32, {s.outs, s.ins}},
      out_sum{DType::f32, {s.ins, s.outs}};
  enum : size_t { kX, kNorm, kGate, kUp, kDown, kGateSum, kUpSum, kDownSum, kDy, kStreamDy, kNormSum };
  enum : size_t { kNormed = kNormSum + 1, kGates, kUps, kH, kY, kDh, kDownDw, kDgate, kDup, kDx, kDxSum };
  const auto linear = [](int64_t residual) {
    Attrs attrs{{"layout", "out_in"}, {"bias", int64_t{0}}, {"residual", residual}};
    if (residual != 0) attrs.set("dtype", "f32");
    return attrs;
  };
  const auto dx = [](int64_t addend) { return Attrs{{"layout", "out_in"}, {"addend", addend}}; };
  const Attrs dw{{"layout", "out_in"}, {"accumulate", "always"}};
  const Attrs norm_grad{{"eps", 1e-6}, {"train", int64_t{1}}, {"accumulate", "always"}, {"addend", int64_t{1}}};
  TimedCalls::Sequence layer;
  layer.tensors = {stream, norm, in, in, out, in_sum, in_sum, out_sum, dy, stream, norm};
  layer.forward = {{"rms_norm", {{"eps", 1e-6}, {"dtype", std::string(dtype_name(dtype))}}, {kX, kNorm}},
                   {"linear", linear(0), {kNormed, kGate}},
                   {"linear", linear(0), {kNormed, kUp}},
                   {"swiglu", {}, {kGates, kUps}},
                   {"linear", linear(1), {kH, kDown, kX}}};
  layer.backward = {{"linear_dx", dx(0), {kDy, kDown}},
                    {"linear_dw", dw, {kH, kDy, kDownSum}},
                    {"swiglu_grad", {}, {kGates, kUps, kDh}},
                    {"linear_dx", dx(0), {kDgate, kGate}},
                    {"linear_dx", dx(1), {kDup, kUp, kDx}},
                    {"linear_dw", dw, {kNormed, kDgate, kGateSum}},
                    {"linear_dw", dw, {kNormed, kDup, kUpSum}},
                    {"rms_norm_grad", norm_grad, {kX, kNorm, kDxSum, kNormSum, kStreamDy}}};
  return layer;
}

// Compared with the prediction from this round's own rates.
void measure_sequence(TimedCalls& calls, Profile& round, const CalibrationSizes& sizes, DType dtype) {
  if (sizes.layer.rows == 0) return;
  double alone = 0;
  const double seconds =
      calls.sequence_seconds(layer_of(sizes.layer, dtype), sizes.layer_sets,
                             [&](const Op& op, const OpCall& call) { alone += predict_call(op, call, round); });
  round.in_sequence.push_back({dtype, seconds / (alone * sizes.layer_sets), calls.take_disturbed()});
}

// Every product in every arithmetic.
void measure_products(TimedCalls& calls, Profile& round, const CalibrationSizes& sizes,
                      const std::vector<Arithmetic>& arithmetics) {
  for (const Arithmetic& how : arithmetics)
    for (const ProductShape& shape : sizes.products)
      if (how.multiply != kMultiplyFp8 || fits_fp8(shape.rows, shape.outs, shape.ins))
        measure_product(calls, round, shape, how);
  for (const Arithmetic& how : arithmetics)
    if (!how.in_eight_bits())
      for (const ProductShape& shape : sizes.residuals) measure_residual(calls, round, shape, how);
  for (const Arithmetic& how : arithmetics)
    if (how.multiply.empty())
      for (const ProductShape& shape : sizes.narrow) {
        measure_product(calls, round, shape, how);
        measure_residual(calls, round, shape, how);
      }
  for (const Arithmetic& how : arithmetics)
    if (!how.in_eight_bits())
      for (const ProductShape& shape : sizes.losses) measure_loss(calls, round, shape, how);
}

std::vector<Arithmetic> arithmetics_of(const DeviceFacts& facts) {
  std::vector<Arithmetic> arithmetics{{DType::f32, ""}, {DType::bf16, ""}};
  if (facts.has_bf16_tiles()) arithmetics.insert(arithmetics.end(), {{DType::f32, "bf16"}, {DType::f32, "bf16x3"}});
  if (facts.is_cpu()) arithmetics.push_back({DType::f32, std::string(kMultiplyInt8)});
  if (has_fp16_tensor_cores(facts) && !has_bf16_tensor_cores(facts)) arithmetics.push_back({DType::f16, ""});
  if (has_fp8_tensor_cores(facts)) arithmetics.push_back({DType::bf16, std::string(kMultiplyFp8)});
  return arithmetics;
}

}  // namespace

void warm_up(TimedCalls& calls, const CalibrationSizes& sizes) {
  Profile unused;
  for (int run = 0; run < kWarmUpRuns; ++run) measure_product(calls, unused, sizes.warm_up, {});
  const ProductShape& s = sizes.before;
  if (s.rows > 0)
    calls.precede_with("linear", Arithmetic().attrs().set("bias", int64_t{0}).set("residual", int64_t{0}),
                       {{DType::f32, {1, s.rows, s.ins}}, {DType::f32, {s.outs, s.ins}}});
}

Profile measure_round(TimedCalls& calls, const DeviceFacts& facts, const CalibrationSizes& sizes,
                      const std::function<void()>& step) {
  Profile round;
  round.facts = facts;
  measure_products(calls, round, sizes, arithmetics_of(facts));
  if (facts.is_cpu() && facts.capabilities.has(kAvx2))
    for (const auto* shapes : {&sizes.decoding, &sizes.products})
      for (const ProductShape& shape : *shapes) measure_int8_blocks(calls, round, shape);
  step();
  for (DType dtype : {DType::f32, DType::bf16}) {
    for (const AttentionSizes& shape : sizes.attention) measure_attention(calls, round, shape, dtype);
    measure_streams(calls, round, sizes, dtype);
  }
  if (!facts.is_cpu())
    for (const AttentionSizes& shape : sizes.attention) measure_attention_kernels(calls, round, shape);
  measure_rest(calls, round, sizes);
  for (DType dtype : {DType::f32, DType::bf16}) measure_sequence(calls, round, sizes, dtype);
  step();
  return round;
}

}  // namespace headroom
