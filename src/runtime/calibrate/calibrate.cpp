#include "runtime/calibrate/calibrate.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "base/bytes.h"
#include "base/error.h"
#include "ops/registry.h"

namespace headroom {
namespace {

constexpr int64_t kBufferBytes = int64_t{64} << 20;
constexpr int64_t kPatternBytes = int64_t{64} << 10;
constexpr int kRounds = 3;                  // over all products: machines are faster and slower by the second
constexpr double kSecondsPerPoint = 0.018;  // with what prepares the runs
constexpr int kRunsPerPoint = 2;
constexpr int64_t kCopiesBytes = int64_t{12} << 20;
constexpr int kWarmUpRuns = 12;  // of a large product: a training run is sustained load, at the clock that this leaves

struct Shape {
  int64_t rows, outs, ins;
};
// Layers of small and middling models, and squares to interpolate between.
constexpr Shape kShapes[] = {{64, 256, 256},    {256, 256, 256},   {1024, 256, 256},  {256, 192, 576},
                             {512, 576, 576},   {2048, 576, 576},  {512, 1536, 576},  {2048, 1536, 576},
                             {512, 576, 1536},  {2048, 576, 1536}, {128, 1024, 1024}, {1024, 1024, 1024},
                             {512, 2048, 2048}, {256, 8192, 576}};

// Inputs that a step finds far from the cores: weights, accumulators, states, saved activations.
std::vector<size_t> cold_inputs(std::string_view op) {
  if (op == "linear" || op == "linear_dx") return {1};
  if (op == "linear_dw") return {0, 2};
  if (op == "adamw") return {0, 1, 2, 3};
  if (op == "cast") return {0};
  return {};
}

void evict(const TensorView& tensor) {
#if defined(__x86_64__)
  const int64_t bytes = tensor.count() * dtype_bytes(tensor.dtype);
  for (int64_t at = 0; at < bytes; at += 64) __builtin_ia32_clflush(static_cast<const std::byte*>(tensor.data) + at);
#endif
}

class Calibration {
 public:
  Calibration(Device& device, const DeviceFacts& facts)
      : device_(device), facts_(facts), base_(device.reserve_arena(kBufferBytes)) {
    // Small normal numbers in every dtype: subnormals would be slow, zeros unfairly fast.
    uint32_t state = 12345;
    for (uint16_t& word : pattern_) {
      state = state * 1664525u + 1013904223u;
      word = static_cast<uint16_t>(0x3c00u | (state >> 24) | ((state >> 8) & 0x8000u));
    }
  }

  // Seconds of one call: the mean of several, after one to warm up. Copies of cold inputs are evicted, then
  // take turns.
  double seconds(std::string_view op_name, const Attrs& attrs, std::vector<ConcreteType> inputs,
                 bool token_ids = false) {
    const Op& op = find_op(op_name);
    KernelSpec spec{op.name(), attrs, std::move(inputs), {}, 0};
    std::vector<Type> types;
    for (const ConcreteType& type : spec.inputs) {
      Type symbolic{type.dtype, {}};
      for (int64_t dim : type.dims) symbolic.shape.push_back(Dim::of(dim));
      types.push_back(symbolic);
    }
    for (const Type& type : op.infer(types, attrs)) spec.outputs.push_back(concrete(type, {}));
    spec.scratch_bytes = op.scratch_bytes(spec.call(), facts_);
    const std::unique_ptr<DeviceKernel> kernel = device_.prepare(spec);
    work_ = op.work(spec.call());
    return time(*kernel, spec, token_ids);
  }
  const Work& work() const { return work_; }

 private:
  std::byte* take(int64_t bytes) {
    std::byte* at = base_ + used_;
    used_ += align_up(bytes, 64);
    HR_CHECK(used_ <= kBufferBytes, "calibration needs more than {}", format_bytes(kBufferBytes));
    return at;
  }

  // A call's tensors.
  struct Tensors {
    std::vector<TensorView> inputs, outputs;
  };

  Tensors lay_out(const KernelSpec& spec, bool token_ids) {
    Tensors tensors;
    for (const ConcreteType& type : spec.inputs)
      tensors.inputs.push_back({take(storage_bytes(type)), type.dtype, type.dims});
    for (const ConcreteType& type : spec.outputs) tensors.outputs.push_back({nullptr, type.dtype, type.dims});
    follow_inputs(spec, tensors);
    for (TensorView& output : tensors.outputs)
      if (!output.data) output.data = take(output.count() * dtype_bytes(output.dtype));
    if (token_ids)
      for (const TensorView& input : tensors.inputs)
        if (input.dtype == DType::i32) std::fill_n(input.as<int32_t>(), input.count(), 1);
    return tensors;
  }

  static void follow_inputs(const KernelSpec& spec, Tensors& tensors) {
    for (const Alias& alias : find_op(spec.op).aliases(spec.attrs, static_cast<int>(spec.inputs.size())))
      if (alias.must)
        tensors.outputs[static_cast<size_t>(alias.output)].data = tensors.inputs[static_cast<size_t>(alias.input)].data;
  }

  // The first tensors, and copies of the cold ones as far as the buffer reaches.
  std::vector<Tensors> copies_of(const KernelSpec& spec, const Tensors& first) {
    std::vector<Tensors> copies{first};
    int64_t bytes = 0;
    for (size_t index : cold_inputs(spec.op)) bytes += align_up(storage_bytes(spec.inputs[index]), 64);
    while (bytes > 0 && used_ + bytes <= kBufferBytes && bytes * static_cast<int64_t>(copies.size()) < kCopiesBytes) {
      copies.push_back(first);
      for (size_t index : cold_inputs(spec.op))
        copies.back().inputs[index].data = take(storage_bytes(spec.inputs[index]));
      follow_inputs(spec, copies.back());
    }
    return copies;
  }

  // What an earlier op left would be other numbers in another dtype.
  void fill() {
    for (int64_t at = 0; at < kBufferBytes; at += kPatternBytes)
      std::memcpy(base_ + at, pattern_.data(), static_cast<size_t>(kPatternBytes));
  }

  double time(const DeviceKernel& kernel, const KernelSpec& spec, bool token_ids) {
    used_ = 0;
    fill();
    const Tensors first = lay_out(spec, token_ids);
    const std::span<std::byte> scratch(take(spec.scratch_bytes), static_cast<size_t>(spec.scratch_bytes));
    const std::vector<Tensors> copies = copies_of(spec, first);
    device_.launch(kernel, {first.inputs, first.outputs, scratch, 1, nullptr}, 0);
    using Clock = std::chrono::steady_clock;
    const auto since = [](Clock::time_point begin) {
      return std::chrono::duration<double>(Clock::now() - begin).count();
    };
    const Clock::time_point first_start = Clock::now();
    double seconds = 0;
    int64_t runs = 0;
    while (runs < kRunsPerPoint || since(first_start) < kSecondsPerPoint) {
      for (const Tensors& tensors : copies)
        for (size_t index : cold_inputs(spec.op)) evict(tensors.inputs[index]);
      const Clock::time_point start = Clock::now();
      for (const Tensors& tensors : copies)
        device_.launch(kernel, {tensors.inputs, tensors.outputs, scratch, 1, nullptr}, 0);
      device_.synchronize(0);
      seconds += since(start);
      runs += static_cast<int64_t>(copies.size());
    }
    return std::max(seconds / static_cast<double>(runs), 1e-9);
  }

  Device& device_;
  const DeviceFacts& facts_;
  std::byte* base_;
  int64_t used_ = 0;
  std::vector<uint16_t> pattern_ = std::vector<uint16_t>(static_cast<size_t>(kPatternBytes / 2));
  Work work_;
};

// `multiply`: how fp32 operands are multiplied, empty: in fp32.
void measure_product(Calibration& c, Profile& profile, const Shape& s, DType dtype, const std::string& multiply = {}) {
  const ConcreteType x{dtype, {1, s.rows, s.ins}}, w{dtype, {s.outs, s.ins}}, dy{dtype, {1, s.rows, s.outs}},
      acc{DType::f32, {s.outs, s.ins}};
  const double flops = 2.0 * static_cast<double>(s.rows) * static_cast<double>(s.outs) * static_cast<double>(s.ins);
  const auto measure = [&](const char* op, Attrs attrs, std::vector<ConcreteType> inputs) {
    attrs.set("layout", std::string("out_in"));
    if (!multiply.empty()) attrs.set("multiply", multiply);
    const double seconds = c.seconds(op, attrs, std::move(inputs));
    profile.products.push_back({op, dtype, s.rows, s.outs, s.ins, flops / seconds, multiply});
  };
  measure("linear", {{"bias", int64_t{0}}, {"residual", int64_t{0}}}, {x, w});
  measure("linear_dx", {{"addend", int64_t{0}}}, {dy, w});
  measure("linear_dw", {{"accumulate", "always"}}, {x, dy, acc});
}

void measure_attention(Calibration& c, Profile& profile, DType dtype) {
  const int64_t batch = 1, seq = 512, heads = 8, kv = 4, dim = 64;
  const Attrs attrs{{"heads", heads}, {"kv_heads", kv}};
  const ConcreteType q{dtype, {batch, seq, heads * dim}}, k{dtype, {batch, seq, kv * dim}},
      lse{DType::f32, {batch, heads, seq}};
  const double forward_seconds = c.seconds("attention", attrs, {q, k, k});
  const double forward = c.work().flops / forward_seconds;
  const double backward_seconds = c.seconds("attention_grad", attrs, {q, k, k, q, lse, q});
  profile.attention.push_back({dtype, forward, c.work().flops / backward_seconds});
}

void measure_streams(Calibration& c, Profile& profile) {
  const ConcreteType wide{DType::f32, {1, 2048, 768}}, norm{DType::f32, {768}};
  double seconds = c.seconds("rms_norm", {{"eps", 1e-6}}, {wide, norm});
  double bytes = c.work().bytes;
  seconds += c.seconds("swiglu", {}, {wide, wide});
  bytes += c.work().bytes;
  seconds += c.seconds("add", {}, {wide, wide});
  profile.stream_bytes_per_second = (bytes + c.work().bytes) / seconds;
  const ConcreteType weight{DType::f32, {3 << 20}};
  seconds = c.seconds("adamw", {{"beta1", 0.9}, {"beta2", 0.999}, {"eps", 1e-8}, {"decay", int64_t{1}}},
                      {weight, weight, weight, weight, {DType::f32, {16}}, {DType::f32, {1}}});
  profile.optimizer_bytes_per_second = c.work().bytes / seconds;
  const ConcreteType x{DType::f32, {1, 256, 16}}, w{DType::f32, {16384, 16}}, labels{DType::i32, {1, 256}},
      acc{DType::f64, {2}};
  seconds =
      c.seconds("linear_cross_entropy", {{"layout", "out_in"}, {"chunk", int64_t{256}}, {"accumulate", "carried"}},
                {x, w, labels, acc}, true);
  profile.softmax_bytes_per_second = 4.0 * 256 * 16384 / seconds;
  seconds = c.seconds("cast", {{"dtype", "bf16"}}, {{DType::f32, {1, 2048, 2048}}});
  profile.copy_bytes_per_second = c.work().bytes / seconds;
  profile.launch_seconds = c.seconds("add", {}, {{DType::f32, {64}}, {DType::f32, {64}}});
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

}  // namespace

Profile calibrate(Device& device, const DeviceFacts& facts, const std::string& name,
                  const std::function<void(double)>& progress) {
  Profile profile;
  profile.name = name;
  profile.facts = facts;
  Calibration calibration(device, facts);
  std::vector<std::pair<DType, std::string>> arithmetics{{DType::f32, ""}, {DType::bf16, ""}};
  if (facts.isa >= 514) arithmetics.insert(arithmetics.end(), {{DType::f32, "bf16"}, {DType::f32, "bf16x3"}});
  const double points = static_cast<double>(kRounds * arithmetics.size() * std::size(kShapes)) + 3;
  double done = 0;
  Profile warm_up;
  for (int run = 0; run < kWarmUpRuns; ++run) measure_product(calibration, warm_up, {2048, 1536, 576}, DType::f32);
  std::vector<Profile> rounds(kRounds);
  for (Profile& round : rounds)
    for (const auto& [dtype, multiply] : arithmetics)
      for (const Shape& shape : kShapes) {
        measure_product(calibration, round, shape, dtype, multiply);
        progress(++done / points);
      }
  profile.products = mean_products(rounds);
  for (DType dtype : {DType::f32, DType::bf16}) {
    measure_attention(calibration, profile, dtype);
    progress(++done / points);
  }
  measure_streams(calibration, profile);
  progress(1);
  return parse_profile(profile_json(profile), name);
}

}  // namespace headroom
