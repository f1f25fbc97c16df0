// CPU kernels: prepared once from concrete types (library primitives are created here), run many times without a heap
// call of our own. One kernel object serves every node with the same op, attributes and types: it holds no addresses.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "ir/op.h"
#include "ops/kernel_table.h"

namespace headroom {

// A tensor in the arena.
struct TensorView {
  void* data = nullptr;
  DType dtype = DType::f32;
  std::span<const int64_t> dims;
  template <typename T>
  T* as() const {
    return static_cast<T*>(data);
  }
  int64_t count() const { return element_count(dims); }
};

// What host ops (next_batch, hyper-parameters, staging, collectives) call back into. Implemented by runtime/.
class HostPort {
 public:
  virtual ~HostPort() = default;
  // Fills int32 [batch, seq] token ids and labels of micro-batch `trip` of the current step.
  virtual void next_batch(int64_t trip, std::span<int32_t> ids, std::span<int32_t> labels, int64_t batch,
                          int64_t seq) = 0;
  // After next_batch of the same micro-batch, where rows are packed: for each token the position at which its row
  // begins in the sequence. The default: one row in each sequence.
  virtual void next_segments(int64_t trip, std::span<int32_t> starts, int64_t batch, int64_t seq) {
    for (int32_t& start : starts) start = 0;
  }
  // After next_batch of the same micro-batch, where texts come in pairs: which of the two each token belongs to. The
  // default: the first.
  virtual void next_types(int64_t trip, std::span<int32_t> types, int64_t batch, int64_t seq) {
    for (int32_t& type : types) type = 0;
  }
  // After next_batch of the same micro-batch: how many tokens of each row come before its padding. The default: all.
  virtual void next_lengths(int64_t trip, std::span<int32_t> lengths, int64_t batch, int64_t seq) {
    for (int32_t& length : lengths) length = static_cast<int32_t>(seq);
  }

  // Collectives of a process group; shard r of a whole buffer starts at r * local.size(). Rank by rank the same calls
  // in the same order. The defaults throw InternalError: there is no process group. Fills `full` with the shards of all
  // ranks; the last shards may reach past its end and are cut.
  virtual void all_gather(std::span<const std::byte> local, std::span<std::byte> full) {
    throw InternalError("no process group");
  }
  // Sums `full` over the ranks and keeps this rank's shard; what lies past the end of `full` becomes zero.
  virtual void reduce_scatter(std::span<const float> full, std::span<float> local) {
    throw InternalError("no process group");
  }
  // Sums `values` over the ranks in place.
  virtual void all_reduce(std::span<float> values) { throw InternalError("no process group"); }
  virtual void all_reduce_f64(std::span<double> values) { throw InternalError("no process group"); }
};

struct KernelCall {
  std::span<const TensorView> inputs;
  std::span<const TensorView> outputs;
  std::span<std::byte> scratch;  // at least what Op::scratch_bytes booked, 64-byte aligned
  int64_t trip = 0;              // iteration of the enclosing loop, 0 outside loops
  HostPort* host = nullptr;
};

class CpuKernel {
 public:
  virtual ~CpuKernel() = default;
  // Thread-safe only across distinct scratch and outputs. Runs on the thread team of base/threads.h.
  virtual void run(const KernelCall& call) const = 0;
};

// What a kernel is prepared for.
struct KernelSpec {
  std::string_view op;
  Attrs attrs;
  std::vector<ConcreteType> inputs;
  std::vector<ConcreteType> outputs;
  int64_t scratch_bytes = 0;  // booked by the plan; a kernel that needs more refuses
  OpCall call() const { return {inputs, outputs, attrs}; }
};

using KernelOffer = Offer<CpuKernel>;
using KernelFactory = KernelOffer (*)(const KernelSpec& spec, const DeviceFacts& facts);

struct KernelCandidate {
  std::string_view implementation;  // "onednn", "simd", "reference"
  KernelFactory make = nullptr;
};

// The last candidate of an op is a plain reference kernel that accepts every legal spec.
using CpuKernels = KernelTable<KernelCandidate>;

// Every CPU kernel, built once. Thread-safe.
const CpuKernels& cpu_kernels();

// The first candidate that accepts. `only` restricts to one implementation (tests). Throws InternalError with all
// refusals when none accepts.
std::unique_ptr<CpuKernel> make_cpu_kernel(const KernelSpec& spec, const DeviceFacts& facts, std::string_view only = {},
                                           std::string* chosen = nullptr);

// A kernel from a callable, for small reference kernels.
template <typename F>
std::unique_ptr<CpuKernel> kernel_of(F body) {
  class Lambda final : public CpuKernel {
   public:
    explicit Lambda(F body) : body_(std::move(body)) {}
    void run(const KernelCall& call) const override { body_(call); }

   private:
    F body_;
  };
  return std::make_unique<Lambda>(std::move(body));
}

}  // namespace headroom
