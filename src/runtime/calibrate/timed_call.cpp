#include "runtime/calibrate/timed_call.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "base/bytes.h"
#include "base/error.h"
#include "ops/backend.h"
#include "ops/registry.h"

namespace headroom {
namespace {

constexpr int kRunsPerPoint = 2;
constexpr int kMostGroups = 256;  // timings of a point and round

constexpr std::byte kOnes[64] = {
    std::byte{1}, {}, {}, {}, std::byte{1}, {}, {}, {}, std::byte{1}, {}, {}, {}, std::byte{1}, {}, {}, {},
    std::byte{1}, {}, {}, {}, std::byte{1}, {}, {}, {}, std::byte{1}, {}, {}, {}, std::byte{1}, {}, {}, {},
    std::byte{1}, {}, {}, {}, std::byte{1}, {}, {}, {}, std::byte{1}, {}, {}, {}, std::byte{1}, {}, {}, {},
    std::byte{1}, {}, {}, {}, std::byte{1}, {}, {}, {}, std::byte{1}, {}, {}, {}, std::byte{1}, {}, {}, {}};

#if defined(__x86_64__)
bool has_clflushopt() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b & (1u << 23)) != 0;
}

// Lines evicted side by side leave the caches several times as fast as by clflush.
__attribute__((target("clflushopt"))) void flush_unordered(std::byte* begin, std::byte* end) {
  for (std::byte* at = begin; at < end; at += 64) __builtin_ia32_clflushopt(at);
}
#endif

void evict_bytes(const TensorView& tensor, int64_t bytes) {
#if defined(__x86_64__)
  static const bool unordered = has_clflushopt();
  auto* const begin = static_cast<std::byte*>(tensor.data);
  std::byte* const end = begin + bytes;
  if (unordered) return flush_unordered(begin, end);
  for (std::byte* at = begin; at < end; at += 64) __builtin_ia32_clflush(at);
#endif
}

void evict_tensor(const TensorView& tensor) { evict_bytes(tensor, tensor.count() * dtype_bytes(tensor.dtype)); }

void follow_inputs(const KernelSpec& spec, std::vector<TensorView>& inputs, std::vector<TensorView>& outputs) {
  for (const Alias& alias : find_op(spec.op).aliases(spec.attrs, static_cast<int>(spec.inputs.size())))
    if (alias.must) outputs[static_cast<size_t>(alias.output)].data = inputs[static_cast<size_t>(alias.input)].data;
}

// Indices of the outputs that do not share an input's memory.
std::vector<size_t> results_of(const CallTensors& tensors) {
  std::vector<size_t> results;
  for (size_t i = 0; i < tensors.outputs.size(); ++i)
    if (std::none_of(tensors.inputs.begin(), tensors.inputs.end(),
                     [&](const TensorView& input) { return input.data == tensors.outputs[i].data; }))
      results.push_back(i);
  return results;
}

// Results are cold too if any input is: a step writes them to memory that other values used in between.
void evict_cold(const KernelSpec& spec, const CallTensors& tensors, const std::vector<size_t>& cold) {
  for (size_t index : cold) evict_bytes(tensors.inputs[index], storage_bytes(spec.inputs[index]));
  if (!cold.empty())
    for (const TensorView& output : tensors.outputs) evict_tensor(output);
}

}  // namespace

void CallTensors::evict() const {
  for (const std::vector<TensorView>* views : {&inputs, &outputs})
    for (const TensorView& tensor : *views) evict_tensor(tensor);
}

TimedCalls::TimedCalls(Device& device, const DeviceFacts& facts, const CalibrationSizes& sizes, Stopwatch stopwatch)
    : device_(device),
      facts_(facts),
      sizes_(sizes),
      stopwatch_(std::move(stopwatch)),
      began_(stopwatch_().seconds),
      base_(device.reserve_arena(Tier::device, sizes.buffer_bytes)) {
  // Small normal numbers in every dtype: subnormals would be slow, zeros unfairly fast.
  uint32_t state = 12345;
  for (uint16_t& word : pattern_) {
    state = state * 1664525u + 1013904223u;
    word = static_cast<uint16_t>(0x3c00u | (state >> 24) | ((state >> 8) & 0x8000u));
  }
}

KernelSpec TimedCalls::spec_of(const Op& op, const Attrs& attrs, std::vector<ConcreteType> inputs) const {
  KernelSpec spec{kernel_key(op), attrs, std::move(inputs), {}, 0};
  std::vector<Type> types;
  for (const ConcreteType& type : spec.inputs) {
    Type symbolic{type.dtype, {}, type.storage};
    for (int64_t dim : type.dims) symbolic.shape.push_back(Dim::of(dim));
    types.push_back(symbolic);
  }
  for (const Type& type : op.infer(types, attrs)) spec.outputs.push_back(concrete(type, {}));
  spec.scratch_bytes = scratch_bytes(op, spec.call(), facts_);
  return spec;
}

double TimedCalls::seconds(std::string_view op_name, const Attrs& attrs, std::vector<ConcreteType> inputs,
                           const std::vector<size_t>& cold, bool token_ids) {
  const Op& op = find_op(op_name);
  const KernelSpec spec = spec_of(op, attrs, std::move(inputs));
  work_ = op.work(spec.call());
  Samples& samples = points_[next_points(1)];
  if (wanted(samples)) time(*device_.prepare(spec), spec, cold, token_ids, samples);
  return conclude(samples);
}

std::optional<double> TimedCalls::seconds_if(const std::function<bool(std::string_view)>& wanted_implementation,
                                             std::string_view op_name, const Attrs& attrs,
                                             std::vector<ConcreteType> inputs, const std::vector<size_t>& cold) {
  const Op& op = find_op(op_name);
  const KernelSpec spec = spec_of(op, attrs, std::move(inputs));
  work_ = op.work(spec.call());
  Samples& samples = points_[next_points(1)];
  if (wanted(samples)) {
    const std::unique_ptr<DeviceKernel> kernel = device_.prepare(spec);
    if (!wanted_implementation(kernel->implementation())) return {};
    time(*kernel, spec, cold, false, samples);
  }
  return conclude(samples);
}

void TimedCalls::precede_with(std::string_view op_name, const Attrs& attrs, std::vector<ConcreteType> inputs) {
  before_.spec = spec_of(find_op(op_name), attrs, std::move(inputs));
  before_.kernel = device_.prepare(before_.spec);
  used_ = 0;
  before_.tensors = lay_out(before_.spec);
  before_.scratch = {take(before_.spec.scratch_bytes), static_cast<size_t>(before_.spec.scratch_bytes)};
  fill();
  first_ = used_;
}

std::byte* TimedCalls::take(int64_t bytes) {
  std::byte* at = base_ + used_;
  used_ += align_up(bytes, facts_.alignment);
  HR_CHECK(used_ <= sizes_.buffer_bytes, "calibration needs more than {}", format_bytes(sizes_.buffer_bytes));
  return at;
}

CallTensors TimedCalls::lay_out(const KernelSpec& spec) {
  CallTensors tensors;
  for (const ConcreteType& type : spec.inputs)
    tensors.inputs.push_back({take(storage_bytes(type)), type.dtype, type.dims});
  place_outputs(spec, tensors);
  return tensors;
}

void TimedCalls::place_outputs(const KernelSpec& spec, CallTensors& tensors) {
  for (const ConcreteType& type : spec.outputs) tensors.outputs.push_back({nullptr, type.dtype, type.dims});
  follow_inputs(spec, tensors.inputs, tensors.outputs);
  for (TensorView& output : tensors.outputs)
    if (!output.data) output.data = take(output.count() * dtype_bytes(output.dtype));
}

// The first tensors, and as many copies of the cold ones and of the results as the buffer holds.
std::vector<CallTensors> TimedCalls::copies_of(const KernelSpec& spec, const CallTensors& first,
                                               const std::vector<size_t>& cold) {
  std::vector<CallTensors> copies{first};
  int64_t bytes = 0;
  for (size_t index : cold) bytes += align_up(storage_bytes(spec.inputs[index]), facts_.alignment);
  if (bytes == 0) return copies;
  const std::vector<size_t> results = results_of(first);
  for (size_t index : results) bytes += align_up(storage_bytes(spec.outputs[index]), facts_.alignment);
  while (used_ + bytes <= sizes_.buffer_bytes && bytes * static_cast<int64_t>(copies.size()) < sizes_.cold_bytes) {
    copies.push_back(first);
    for (size_t index : cold) copies.back().inputs[index].data = take(storage_bytes(spec.inputs[index]));
    for (size_t index : results) copies.back().outputs[index].data = take(storage_bytes(spec.outputs[index]));
    follow_inputs(spec, copies.back().inputs, copies.back().outputs);
  }
  return copies;
}

// Repeats bytes over a piece of the arena, on any device.
void TimedCalls::repeat(std::byte* to, int64_t bytes, std::span<const std::byte> pattern) {
  const std::span<std::byte> window = device_.host_window();
  const auto piece = static_cast<int64_t>(device_.host_visible() ? pattern.size() : window.size() / 64 * 64);
  const std::byte* from = pattern.data();
  if (!device_.host_visible()) {
    for (int64_t at = 0; at < piece; ++at)
      window[static_cast<size_t>(at)] = pattern[static_cast<size_t>(at) % pattern.size()];
    from = window.data();
  }
  for (int64_t at = 0; at < bytes; at += piece) device_.copy(to + at, from, std::min(piece, bytes - at), 0);
  device_.synchronize(0);
}

// An earlier op's results would be other numbers in another dtype.
void TimedCalls::fill() { repeat(base_ + first_, used_ - first_, std::as_bytes(std::span(pattern_))); }

double TimedCalls::copy_rate() {
  const int64_t bytes = sizes_.buffer_bytes / 4;
  const std::span<std::byte> window = device_.host_window();
  const int64_t piece = device_.host_visible() ? bytes : static_cast<int64_t>(window.size());
  std::byte* const host = device_.host_visible() ? base_ + sizes_.buffer_bytes / 2 : window.data();
  const auto pass = [&] {
    for (int64_t at = 0; at < bytes; at += piece) device_.copy(base_ + at, host, std::min(piece, bytes - at), 0);
    for (int64_t at = 0; at < bytes; at += piece) device_.copy(host, base_ + at, std::min(piece, bytes - at), 0);
    device_.synchronize(0);
  };
  pass();
  const auto begin = std::chrono::steady_clock::now();
  pass();
  return 2.0 * static_cast<double>(bytes) /
         std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

void TimedCalls::begin() {
  points_.clear();
  begin_round(false);
}

void TimedCalls::begin_round(bool only_unsettled) {
  next_ = 0;
  only_unsettled_ = only_unsettled;
  disturbed_ = false;
}

size_t TimedCalls::next_points(size_t count) {
  const size_t first = next_;
  next_ += count;
  if (points_.size() < next_) points_.resize(next_);
  return first;
}

bool TimedCalls::wanted(const Samples& samples) const {
  if (samples.empty()) return true;
  return !(only_unsettled_ && samples.settled()) && !over();
}

double TimedCalls::conclude(const Samples& samples) {
  disturbed_ = disturbed_ || samples.disturbed();
  return samples.seconds();
}

bool TimedCalls::take_disturbed() { return std::exchange(disturbed_, false); }

void TimedCalls::time(const DeviceKernel& kernel, const KernelSpec& spec, const std::vector<size_t>& cold,
                      bool token_ids, Samples& samples) {
  used_ = first_;
  const CallTensors first = lay_out(spec);
  const std::span<std::byte> scratch(take(spec.scratch_bytes), static_cast<size_t>(spec.scratch_bytes));
  const bool once = over();
  const std::vector<CallTensors> copies = once ? std::vector{first} : copies_of(spec, first, cold);
  fill();
  if (token_ids)
    for (const TensorView& input : first.inputs)
      if (input.dtype == DType::i32) repeat(input.as<std::byte>(), input.count() * 4, kOnes);
  if (!once) launch(kernel, first, scratch);
  const double start = stopwatch_().seconds;
  const auto runs = static_cast<double>(copies.size()) * sizes_.launches_per_wait;
  for (int group = 0; group < (once ? 1 : kMostGroups); ++group) {
    if (group * runs >= kRunsPerPoint && stopwatch_().seconds - start >= sizes_.seconds_per_point) break;
    if (device_.host_visible())
      for (const CallTensors& tensors : copies) evict_cold(spec, tensors, cold);
    if (before_.kernel) launch(*before_.kernel, before_.tensors, before_.scratch);
    device_.synchronize(0);
    const Reading begin = stopwatch_();
    for (int round = 0; round < sizes_.launches_per_wait; ++round)
      for (const CallTensors& tensors : copies) launch(kernel, tensors, scratch);
    device_.synchronize(0);
    const Timing timing = between(begin, stopwatch_());
    samples.add({timing.seconds / runs, timing.disturbed});
  }
}

}  // namespace headroom
