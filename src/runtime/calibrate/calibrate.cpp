#include "runtime/calibrate/calibrate.h"

#include <algorithm>

#include "runtime/calibrate/timed_call.h"

namespace headroom {
namespace {

constexpr int kRounds = 2;       // over all products: machines are faster and slower by the second
constexpr int kWarmUpRuns = 12;  // of a large product: a training run is sustained load, at the clock that this leaves

struct Shape {
  int64_t rows, outs, ins;
};
// Layers of small and middling models, and squares to interpolate between.
constexpr Shape kShapes[] = {{64, 256, 256},    {256, 256, 256},   {1024, 256, 256},  {256, 192, 576},
                             {512, 576, 576},   {2048, 576, 576},  {512, 1536, 576},  {2048, 1536, 576},
                             {512, 576, 1536},  {2048, 576, 1536}, {128, 1024, 1024}, {1024, 1024, 1024},
                             {512, 2048, 2048}, {256, 8192, 576}};
// The two products of an adapter of low rank, which move more than they multiply.
constexpr Shape kNarrowShapes[] = {{512, 16, 576}, {512, 576, 16}, {512, 16, 1536}, {512, 1536, 16}};
// Where a layer's sum joins the residual stream.
constexpr Shape kResidualShapes[] = {
    {512, 576, 576}, {2048, 576, 576}, {512, 576, 1536}, {2048, 576, 1536}, {1024, 1024, 1024}};
// Chunks of the loss: rows, vocabulary, hidden size.
constexpr Shape kLossShapes[] = {{64, 8192, 576}, {256, 8192, 576}, {1024, 8192, 576}, {256, 4096, 2048}};

struct AttentionShape {
  int64_t sequence, head_dim;
};
constexpr AttentionShape kAttentionShapes[] = {{128, 64}, {512, 64}, {2048, 64}, {512, 128}};

// How a product's operands are stored and multiplied.
struct Arithmetic {
  DType dtype = DType::f32;
  std::string multiply;  // of fp32 operands; empty: in fp32
  Attrs attrs() const {
    Attrs attrs{{"layout", "out_in"}};
    if (!multiply.empty()) attrs.set("multiply", multiply);
    return attrs;
  }
};

double flops_of(const Shape& s) {
  return 2.0 * static_cast<double>(s.rows) * static_cast<double>(s.outs) * static_cast<double>(s.ins);
}

// Inputs that a step finds far from the cores are cold: weights, accumulators, states, saved activations.
void measure_product(TimedCalls& calls, Profile& profile, const Shape& s, const Arithmetic& how) {
  const ConcreteType x{how.dtype, {1, s.rows, s.ins}}, w{how.dtype, {s.outs, s.ins}},
      dy{how.dtype, {1, s.rows, s.outs}}, acc{DType::f32, {s.outs, s.ins}};
  const auto measure = [&](const char* op, const Attrs& more, std::vector<ConcreteType> inputs,
                           const std::vector<size_t>& cold) {
    Attrs attrs = how.attrs();
    for (const auto& [name, value] : more.items()) attrs.set(name, value);
    const double seconds = calls.seconds(op, attrs, std::move(inputs), cold);
    profile.products.push_back({op, how.dtype, s.rows, s.outs, s.ins, flops_of(s) / seconds, how.multiply});
  };
  measure("linear", {{"bias", int64_t{0}}, {"residual", int64_t{0}}}, {x, w}, {1});
  measure("linear_dx", {{"addend", int64_t{0}}}, {dy, w}, {1});
  measure("linear_dw", {{"accumulate", "always"}}, {x, dy, acc}, {0, 2});
}

void measure_residual(TimedCalls& calls, Profile& profile, const Shape& s, const Arithmetic& how) {
  const ConcreteType x{how.dtype, {1, s.rows, s.ins}}, w{how.dtype, {s.outs, s.ins}},
      y{DType::f32, {1, s.rows, s.outs}};
  Attrs attrs = how.attrs();
  attrs.set("bias", int64_t{0}).set("residual", int64_t{1}).set("dtype", "f32");
  const double seconds = calls.seconds("linear", attrs, {x, w, y}, {1, 2});
  profile.products.push_back(
      {"linear_residual", how.dtype, s.rows, s.outs, s.ins, flops_of(s) / seconds, how.multiply});
}

void measure_loss(TimedCalls& calls, Profile& profile, const Shape& s, const Arithmetic& how) {
  const ConcreteType x{how.dtype, {1, s.rows, s.ins}}, w{how.dtype, {s.outs, s.ins}}, labels{DType::i32, {1, s.rows}},
      scale{DType::f32, {1}}, sums{DType::f64, {2}}, acc{DType::f32, {s.outs, s.ins}};
  Attrs attrs = how.attrs();
  attrs.set("chunk", s.rows).set("train_weight", int64_t{1}).set("accumulate", "always");
  attrs.set("loss_accumulate", "always");
  const double seconds =
      calls.seconds("linear_cross_entropy_grad", attrs, {x, w, labels, scale, sums, acc}, {1, 5}, true);
  profile.products.push_back(
      {"linear_cross_entropy_grad", how.dtype, s.rows, s.outs, s.ins, 3 * flops_of(s) / seconds, how.multiply});
}

void measure_attention(TimedCalls& calls, Profile& profile, const AttentionShape& s, DType dtype) {
  const int64_t heads = 4, kv = 2;
  const Attrs attrs{{"heads", heads}, {"kv_heads", kv}};
  const ConcreteType q{dtype, {1, s.sequence, heads * s.head_dim}}, k{dtype, {1, s.sequence, kv * s.head_dim}},
      lse{DType::f32, {1, heads, s.sequence}};
  const double forward_seconds = calls.seconds("attention", attrs, {q, k, k}, {0, 1, 2});
  const double forward = calls.work().flops / forward_seconds;
  const double backward_seconds = calls.seconds("attention_grad", attrs, {q, k, k, q, lse, q}, {0, 1, 2, 3});
  profile.attention.push_back({dtype, forward, calls.work().flops / backward_seconds, s.sequence, s.head_dim});
}

// Elementwise ops and norms, as a step calls them: the stream in fp32, what goes into products in `dtype`.
void measure_streams(TimedCalls& calls, Profile& profile, DType dtype) {
  const ConcreteType stream{DType::f32, {1, 2048, 768}}, x{dtype, {1, 2048, 768}}, wide{dtype, {1, 2048, 1536}},
      norm{DType::f32, {768}}, table{DType::f32, {2048, 64}};
  const auto measure = [&](const char* op, const Attrs& attrs, std::vector<ConcreteType> inputs,
                           const std::vector<size_t>& cold) {
    const double seconds = calls.seconds(op, attrs, std::move(inputs), cold);
    profile.streams.push_back({op, dtype, calls.work().bytes / seconds});
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
  measure("rotary", {{"heads", int64_t{12}}, {"offset", int64_t{0}}, {"inverse", int64_t{0}}}, {x, table}, {});
  measure("add", {}, {x, x}, {0});
}

void measure_rest(TimedCalls& calls, Profile& profile) {
  const ConcreteType wide{DType::f32, {1, 2048, 768}}, norm{DType::f32, {768}};
  double seconds = calls.seconds("rms_norm", {{"eps", 1e-6}}, {wide, norm}, {});
  double bytes = calls.work().bytes;
  seconds += calls.seconds("swiglu", {}, {wide, wide}, {});
  bytes += calls.work().bytes;
  seconds += calls.seconds("add", {}, {wide, wide}, {});
  profile.stream_bytes_per_second = (bytes + calls.work().bytes) / seconds;
  const ConcreteType weight{DType::f32, {3 << 20}};
  seconds = calls.seconds("adamw", {{"beta1", 0.9}, {"beta2", 0.999}, {"eps", 1e-8}, {"decay", int64_t{1}}},
                          {weight, weight, weight, weight, {DType::f32, {16}}, {DType::f32, {1}}}, {0, 1, 2, 3});
  profile.optimizer_bytes_per_second = calls.work().bytes / seconds;
  const ConcreteType x{DType::f32, {1, 256, 16}}, w{DType::f32, {16384, 16}}, labels{DType::i32, {1, 256}},
      acc{DType::f64, {2}};
  seconds =
      calls.seconds("linear_cross_entropy", {{"layout", "out_in"}, {"chunk", int64_t{256}}, {"accumulate", "carried"}},
                    {x, w, labels, acc}, {}, true);
  profile.softmax_bytes_per_second = 4.0 * 256 * 16384 / seconds;
  seconds = calls.seconds("cast", {{"dtype", "bf16"}}, {{DType::f32, {1, 2048, 2048}}}, {0});
  profile.copy_bytes_per_second = calls.work().bytes / seconds;
  profile.launch_seconds = calls.seconds("add", {}, {{DType::f32, {64}}, {DType::f32, {64}}}, {});
}

// The products of every round, each at the rate of its mean time.
std::vector<ProductSample> mean_products(const std::vector<Profile>& rounds) {
  std::vector<ProductSample> products = rounds.front().products;
  for (size_t i = 0; i < products.size(); ++i) {
    double seconds_per_flop = 0;
    for (const Profile& round : rounds) seconds_per_flop += 1 / round.products[i].flops_per_second;
    products[i].flops_per_second = static_cast<double>(rounds.size()) / seconds_per_flop;
  }
  return products;
}

// One round over every product in every arithmetic; step() after each shape.
void measure_products(TimedCalls& calls, Profile& round, const std::vector<Arithmetic>& arithmetics,
                      const std::function<void()>& step) {
  for (const Arithmetic& how : arithmetics)
    for (const Shape& shape : kShapes) {
      measure_product(calls, round, shape, how);
      step();
    }
  for (const Arithmetic& how : arithmetics)
    for (const Shape& shape : kResidualShapes) measure_residual(calls, round, shape, how);
  for (const Arithmetic& how : arithmetics)
    if (how.multiply.empty())
      for (const Shape& shape : kNarrowShapes) {
        measure_product(calls, round, shape, how);
        measure_residual(calls, round, shape, how);
      }
}

}  // namespace

Profile calibrate(Device& device, const DeviceFacts& facts, const std::string& name,
                  const std::function<void(double)>& progress) {
  Profile profile;
  profile.name = name;
  profile.facts = facts;
  TimedCalls calls(device, facts);
  std::vector<Arithmetic> arithmetics{{DType::f32, ""}, {DType::bf16, ""}};
  if (facts.isa >= 514) arithmetics.insert(arithmetics.end(), {{DType::f32, "bf16"}, {DType::f32, "bf16x3"}});
  const double points = static_cast<double>(kRounds * arithmetics.size() * std::size(kShapes) + arithmetics.size()) + 3;
  double done = 0;
  const auto step = [&] { progress(++done / points); };
  Profile warm_up;
  for (int run = 0; run < kWarmUpRuns; ++run) measure_product(calls, warm_up, {2048, 1536, 576}, {});
  std::vector<Profile> rounds(kRounds);
  for (Profile& round : rounds) measure_products(calls, round, arithmetics, step);
  profile.products = mean_products(rounds);
  for (const Arithmetic& how : arithmetics) {
    for (const Shape& shape : kLossShapes) measure_loss(calls, profile, shape, how);
    step();
  }
  for (DType dtype : {DType::f32, DType::bf16}) {
    for (const AttentionShape& shape : kAttentionShapes) measure_attention(calls, profile, shape, dtype);
    measure_streams(calls, profile, dtype);
    step();
  }
  measure_rest(calls, profile);
  progress(1);
  return parse_profile(profile_json(profile), name);
}

}  // namespace headroom
