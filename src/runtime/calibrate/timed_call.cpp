#include "runtime/calibrate/timed_call.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "base/bytes.h"
#include "base/error.h"
#include "ops/registry.h"

namespace headroom {
namespace {

constexpr int64_t kBufferBytes = int64_t{160} << 20;
constexpr double kSecondsPerPoint = 0.013;  // with what prepares the runs
constexpr int kRunsPerPoint = 2;
constexpr int64_t kCopiesBytes = int64_t{12} << 20;

void evict(const TensorView& tensor) {
#if defined(__x86_64__)
  const int64_t bytes = tensor.count() * dtype_bytes(tensor.dtype);
  for (int64_t at = 0; at < bytes; at += 64) __builtin_ia32_clflush(static_cast<const std::byte*>(tensor.data) + at);
#endif
}

void follow_inputs(const KernelSpec& spec, std::vector<TensorView>& inputs, std::vector<TensorView>& outputs) {
  for (const Alias& alias : find_op(spec.op).aliases(spec.attrs, static_cast<int>(spec.inputs.size())))
    if (alias.must) outputs[static_cast<size_t>(alias.output)].data = inputs[static_cast<size_t>(alias.input)].data;
}

}  // namespace

TimedCalls::TimedCalls(Device& device, const DeviceFacts& facts)
    : device_(device), facts_(facts), base_(device.reserve_arena(kBufferBytes)) {
  // Small normal numbers in every dtype: subnormals would be slow, zeros unfairly fast.
  uint32_t state = 12345;
  for (uint16_t& word : pattern_) {
    state = state * 1664525u + 1013904223u;
    word = static_cast<uint16_t>(0x3c00u | (state >> 24) | ((state >> 8) & 0x8000u));
  }
}

double TimedCalls::seconds(std::string_view op_name, const Attrs& attrs, std::vector<ConcreteType> inputs,
                           const std::vector<size_t>& cold, bool token_ids) {
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
  return time(*kernel, spec, cold, token_ids);
}

std::byte* TimedCalls::take(int64_t bytes) {
  std::byte* at = base_ + used_;
  used_ += align_up(bytes, 64);
  HR_CHECK(used_ <= kBufferBytes, "calibration needs more than {}", format_bytes(kBufferBytes));
  return at;
}

TimedCalls::Tensors TimedCalls::lay_out(const KernelSpec& spec) {
  Tensors tensors;
  for (const ConcreteType& type : spec.inputs)
    tensors.inputs.push_back({take(storage_bytes(type)), type.dtype, type.dims});
  for (const ConcreteType& type : spec.outputs) tensors.outputs.push_back({nullptr, type.dtype, type.dims});
  follow_inputs(spec, tensors.inputs, tensors.outputs);
  for (TensorView& output : tensors.outputs)
    if (!output.data) output.data = take(output.count() * dtype_bytes(output.dtype));
  return tensors;
}

// The first tensors, and copies of the cold ones as far as the buffer reaches.
std::vector<TimedCalls::Tensors> TimedCalls::copies_of(const KernelSpec& spec, const Tensors& first,
                                                       const std::vector<size_t>& cold) {
  std::vector<Tensors> copies{first};
  int64_t bytes = 0;
  for (size_t index : cold) bytes += align_up(storage_bytes(spec.inputs[index]), 64);
  while (bytes > 0 && used_ + bytes <= kBufferBytes && bytes * static_cast<int64_t>(copies.size()) < kCopiesBytes) {
    copies.push_back(first);
    for (size_t index : cold) copies.back().inputs[index].data = take(storage_bytes(spec.inputs[index]));
    follow_inputs(spec, copies.back().inputs, copies.back().outputs);
  }
  return copies;
}

// What an earlier op left would be other numbers in another dtype.
void TimedCalls::fill() {
  constexpr int64_t kPatternBytes = sizeof(pattern_);
  for (int64_t at = 0; at < used_; at += kPatternBytes)
    std::memcpy(base_ + at, pattern_.data(), static_cast<size_t>(std::min(kPatternBytes, kBufferBytes - at)));
}

double TimedCalls::time(const DeviceKernel& kernel, const KernelSpec& spec, const std::vector<size_t>& cold,
                        bool token_ids) {
  used_ = 0;
  const Tensors first = lay_out(spec);
  const std::span<std::byte> scratch(take(spec.scratch_bytes), static_cast<size_t>(spec.scratch_bytes));
  const std::vector<Tensors> copies = copies_of(spec, first, cold);
  fill();
  if (token_ids)
    for (const TensorView& input : first.inputs)
      if (input.dtype == DType::i32) std::fill_n(input.as<int32_t>(), input.count(), 1);
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
      for (size_t index : cold) evict(tensors.inputs[index]);
    const Clock::time_point start = Clock::now();
    for (const Tensors& tensors : copies)
      device_.launch(kernel, {tensors.inputs, tensors.outputs, scratch, 1, nullptr}, 0);
    device_.synchronize(0);
    seconds += since(start);
    runs += static_cast<int64_t>(copies.size());
  }
  return std::max(seconds / static_cast<double>(runs), 1e-9);
}

}  // namespace headroom
