// Runs one op by name on owned buffers and checks what every kernel must guarantee: inputs are not changed, nothing is
// written after an output or after the booked scratch, and no result depends on earlier contents of scratch or outputs.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/bfloat16.h"
#include "base/float16.h"
#include "base/threads.h"
#include "ir/row_slice.h"
#include "operand_memory.h"
#include "ops/backend.h"
#include "ops/cpu/instruction_set.h"
#include "ops/cpu/kernel.h"
#include "ops/registry.h"

namespace headroom::op_test {

constexpr int64_t kGuardBytes = 4096;
constexpr int kGuardByte = 0xA5;
constexpr int kPoisonByte = 0xFF;  // NaN in every floating dtype

// `bytes` usable bytes, 64-byte aligned, followed by a guard; filled with poison.
class GuardedBuffer {
 public:
  explicit GuardedBuffer(int64_t bytes) : bytes_(bytes) {
    const int64_t rounded = (bytes + kGuardBytes + 63) / 64 * 64;
    data_.reset(operand_memory().allocate(static_cast<size_t>(rounded)));
    std::memset(data_.get(), kPoisonByte, static_cast<size_t>(bytes));
    std::memset(data_.get() + bytes, kGuardByte, kGuardBytes);
  }
  std::byte* data() const { return data_.get(); }
  int64_t bytes() const { return bytes_; }
  bool guard_intact() const {
    for (int64_t i = 0; i < kGuardBytes; ++i)
      if (data_[static_cast<size_t>(bytes_ + i)] != std::byte{kGuardByte}) return false;
    return true;
  }

 private:
  struct Free {
    void operator()(std::byte* p) const { operand_memory().release(p); }
  };
  int64_t bytes_;
  std::unique_ptr<std::byte[], Free> data_;
};

// A tensor with its own memory; copies are deep.
class Tensor {
 public:
  Tensor(DType dtype, std::vector<int64_t> dims) : Tensor(ConcreteType{dtype, std::move(dims), {}}) {}
  explicit Tensor(ConcreteType type)
      : type_(std::move(type)), buffer_(std::make_shared<GuardedBuffer>(storage_bytes(type_))) {}
  Tensor(DType dtype, std::vector<int64_t> dims, const std::vector<double>& values) : Tensor(dtype, std::move(dims)) {
    for (size_t i = 0; i < values.size(); ++i) set(static_cast<int64_t>(i), values[i]);
  }
  static Tensor filled(DType dtype, std::vector<int64_t> dims, double value) {
    Tensor tensor(dtype, std::move(dims));
    for (int64_t i = 0; i < tensor.count(); ++i) tensor.set(i, value);
    return tensor;
  }
  // Uniform in [-scale, scale], the same for the same seed on every machine.
  static Tensor random(DType dtype, std::vector<int64_t> dims, uint64_t seed, double scale = 1.0) {
    Tensor tensor(dtype, std::move(dims));
    uint64_t state = seed * 0x9E3779B97F4A7C15u + 0x1234567u;
    for (int64_t i = 0; i < tensor.count(); ++i) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      tensor.set(i, (static_cast<double>(state >> 11) / 4503599627370496.0 - 1.0) * scale);
    }
    return tensor;
  }

  Tensor(const Tensor& other) : type_(other.type_), buffer_(std::make_shared<GuardedBuffer>(other.bytes())) {
    std::memcpy(buffer_->data(), other.buffer_->data(), static_cast<size_t>(bytes()));
  }
  Tensor(Tensor&&) = default;
  Tensor& operator=(const Tensor& other) { return *this = Tensor(other); }
  Tensor& operator=(Tensor&&) = default;

  // The same storage with another handle (aliasing outputs).
  Tensor share() const { return Tensor(type_, buffer_); }

  const ConcreteType& type() const { return type_; }
  int64_t count() const { return element_count(type_.dims); }
  int64_t bytes() const { return buffer_->bytes(); }
  template <typename T>
  T* as() const {
    return reinterpret_cast<T*>(buffer_->data());
  }
  const GuardedBuffer& buffer() const { return *buffer_; }
  TensorView view() const { return {buffer_->data(), type_.dtype, type_.dims}; }

  double at(int64_t i) const {
    switch (type_.dtype) {
      case DType::f64:
        return as<double>()[i];
      case DType::f32:
        return static_cast<double>(as<float>()[i]);
      case DType::bf16:
        return static_cast<double>(static_cast<float>(as<bfloat16>()[i]));
      case DType::f16:
        return static_cast<double>(static_cast<float>(as<float16>()[i]));
      case DType::i64:
        return static_cast<double>(as<int64_t>()[i]);
      case DType::i32:
        return as<int32_t>()[i];
      case DType::i8:
        return as<int8_t>()[i];
      case DType::u8:
        return as<uint8_t>()[i];
      default:
        return std::numeric_limits<double>::quiet_NaN();
    }
  }
  void set(int64_t i, double value) {
    switch (type_.dtype) {
      case DType::f64:
        as<double>()[i] = value;
        break;
      case DType::f32:
        as<float>()[i] = static_cast<float>(value);
        break;
      case DType::bf16:
        as<bfloat16>()[i] = bfloat16(static_cast<float>(value));
        break;
      case DType::f16:
        as<float16>()[i] = float16(static_cast<float>(value));
        break;
      case DType::i64:
        as<int64_t>()[i] = static_cast<int64_t>(value);
        break;
      case DType::i32:
        as<int32_t>()[i] = static_cast<int32_t>(value);
        break;
      case DType::i8:
        as<int8_t>()[i] = static_cast<int8_t>(value);
        break;
      case DType::u8:
        as<uint8_t>()[i] = static_cast<uint8_t>(value);
        break;
      default:
        FAIL() << "no such element";
    }
  }
  bool same_bytes(const Tensor& other) const {
    return bytes() == other.bytes() &&
           std::memcmp(buffer_->data(), other.buffer_->data(), static_cast<size_t>(bytes())) == 0;
  }

 private:
  Tensor(ConcreteType type, std::shared_ptr<GuardedBuffer> buffer)
      : type_(std::move(type)), buffer_(std::move(buffer)) {}
  ConcreteType type_;
  std::shared_ptr<GuardedBuffer> buffer_;
};

// What this process may use of the machine, as a device would report it.
inline DeviceFacts host_facts() {
  DeviceFacts facts;
  facts.threads = threads();
  facts.capabilities = capabilities_of(instruction_set());
  facts.native_bf16 = facts.capabilities.has(kAvx512Bf16);
  return facts;
}

// The same numbers in a narrow type.
inline Tensor rounded(const Tensor& wide, DType dtype = DType::bf16) {
  Tensor narrow(dtype, wide.type().dims);
  for (int64_t i = 0; i < wide.count(); ++i) narrow.set(i, wide.at(i));
  return narrow;
}

struct RunOptions {
  std::string only;      // implementation; empty: the best one that accepts
  int64_t trip = 0;      // iteration of the enclosing loop
  bool use_may = false;  // outputs use the storage of inputs that they may alias
  HostPort* host = nullptr;
  DeviceFacts facts = host_facts();
};

struct RunResult {
  std::vector<Tensor> outputs;
  std::string implementation;  // the one that ran
};

inline std::vector<ConcreteType> infer_types(const Op& op, const std::vector<Tensor>& inputs, const Attrs& attrs) {
  std::vector<Type> types;
  for (const Tensor& tensor : inputs) {
    Type type{tensor.type().dtype, {}, tensor.type().storage};
    for (int64_t dim : tensor.type().dims) type.shape.push_back(Dim::of(dim));
    types.push_back(std::move(type));
  }
  std::vector<ConcreteType> outputs;
  for (const Type& type : op.infer(types, attrs)) outputs.push_back(concrete(type, {}));
  EXPECT_EQ(op.operands(attrs, types.size()).size(), types.size()) << op_name(op);
  return outputs;
}

// The spec of a call with these inputs, its scratch booked by the op's rule.
inline KernelSpec spec_of(std::string_view name, const std::vector<Tensor>& inputs, const Attrs& attrs,
                          const DeviceFacts& facts) {
  const Op& op = find_op(name);
  KernelSpec spec{op_name(op), attrs, {}, infer_types(op, inputs, attrs), 0};
  for (const Tensor& tensor : inputs) spec.inputs.push_back(tensor.type());
  spec.scratch_bytes = scratch_bytes(op, spec.call(), facts);
  return spec;
}

// Whether `implementation` accepts this call: for tests that compare a fast kernel on machines that have it.
inline bool accepts(std::string_view name, const std::vector<Tensor>& inputs, const Attrs& attrs,
                    std::string_view implementation, const DeviceFacts& facts = host_facts()) {
  const KernelSpec spec = spec_of(name, inputs, attrs, facts);
  for (const KernelCandidate& candidate : cpu_kernels().candidates(name))
    if (candidate.implementation == implementation) return candidate.make(spec, facts).kernel != nullptr;
  return false;
}

// Calls run(KernelCall) once on copies of `inputs`; outputs that must alias an input start as its copy.
template <typename Run>
std::vector<Tensor> run_call(const KernelSpec& spec, const std::vector<Tensor>& inputs, const RunOptions& options,
                             const std::string& implementation, const Run& run) {
  std::vector<Tensor> outputs;
  std::vector<Tensor> held(inputs);
  std::vector<bool> overwritten(inputs.size(), false);
  for (const ConcreteType& type : spec.outputs) outputs.emplace_back(type);
  for (const Alias& alias : find_op(spec.op).aliases(spec.attrs, static_cast<int>(inputs.size()))) {
    const size_t input = static_cast<size_t>(alias.input);
    if (!alias.must && (!options.use_may || overwritten[input])) continue;
    outputs[static_cast<size_t>(alias.output)] = held[input].share();
    overwritten[input] = true;
  }
  const GuardedBuffer scratch(spec.scratch_bytes);

  std::vector<TensorView> in, out;
  for (const Tensor& tensor : held) in.push_back(tensor.view());
  for (const Tensor& tensor : outputs) out.push_back(tensor.view());
  const int64_t first_row = row_slice(spec.attrs).value_or(RowSlice{}).first;
  run(KernelCall{
      in, out, {scratch.data(), static_cast<size_t>(scratch.bytes())}, options.trip, options.host, first_row});

  EXPECT_TRUE(scratch.guard_intact()) << spec.op << " (" << implementation << ") wrote past its scratch";
  for (size_t i = 0; i < held.size(); ++i) {
    EXPECT_TRUE(held[i].buffer().guard_intact()) << spec.op << " wrote past input " << i;
    if (overwritten[i]) continue;
    EXPECT_TRUE(held[i].same_bytes(inputs[i])) << spec.op << " changed input " << i;
  }
  for (size_t i = 0; i < outputs.size(); ++i)
    EXPECT_TRUE(outputs[i].buffer().guard_intact()) << spec.op << " wrote past output " << i;
  return outputs;
}

// Prepares a CPU kernel and runs it once.
inline RunResult run_op(std::string_view name, const std::vector<Tensor>& inputs, const Attrs& attrs = {},
                        const RunOptions& options = {}) {
  const KernelSpec spec = spec_of(name, inputs, attrs, options.facts);
  RunResult result;
  const std::unique_ptr<CpuKernel> kernel = make_cpu_kernel(spec, options.facts, options.only, &result.implementation);
  result.outputs =
      run_call(spec, inputs, options, result.implementation, [&](const KernelCall& call) { kernel->run(call); });
  return result;
}

// Every element is within absolute + relative * |expected|; NaN matches only NaN.
inline void expect_close(const Tensor& found, const Tensor& expected, double absolute, double relative) {
  ASSERT_EQ(found.type().dims, expected.type().dims);
  int64_t shown = 0;
  for (int64_t i = 0; i < found.count() && shown < 5; ++i) {
    const double a = found.at(i), b = expected.at(i);
    const bool close = std::isnan(b) ? std::isnan(a) : std::abs(a - b) <= absolute + relative * std::abs(b) || a == b;
    if (close) continue;
    ++shown;
    ADD_FAILURE() << "element " << i << ": " << a << ", expected " << b;
  }
}

inline void expect_same_bytes(const Tensor& found, const Tensor& expected) {
  EXPECT_EQ(found.type().dtype, expected.type().dtype);
  EXPECT_TRUE(found.same_bytes(expected));
}

}  // namespace headroom::op_test
