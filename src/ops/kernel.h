// What kernels of every backend are prepared for, and what they are called with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "ir/op.h"

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
  // After next_batch of the same micro-batch, if rows are packed: for each token the position at which its row begins
  // in the sequence. The default: one row in each sequence.
  virtual void next_segments(int64_t trip, std::span<int32_t> starts, int64_t batch, int64_t seq) {
    for (int32_t& start : starts) start = 0;
  }
  // After next_batch of the same micro-batch, if texts come in pairs: which of the two each token belongs to. The
  // default: the first.
  virtual void next_types(int64_t trip, std::span<int32_t> types, int64_t batch, int64_t seq) {
    for (int32_t& type : types) type = 0;
  }
  // After next_batch of the same micro-batch: how many tokens of each row come before its padding. The default: all.
  virtual void next_lengths(int64_t trip, std::span<int32_t> lengths, int64_t batch, int64_t seq) {
    for (int32_t& length : lengths) length = static_cast<int32_t>(seq);
  }

  // Collectives of a process group; shard r of a whole buffer starts at r * local.size(). All ranks make the same calls
  // in the same order. The defaults throw InternalError: there is no process group. Fills `full` with the shards of all
  // ranks; the last shards may extend past its end and are cut.
  virtual void all_gather(std::span<const std::byte> local, std::span<std::byte> full) {
    throw InternalError("no process group");
  }
  // Sums `full` over the ranks and keeps this rank's shard, with zeros past the end of `full`.
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
  std::span<std::byte> scratch;  // at least what scratch_bytes() booked (ops/backend.h), 64-byte aligned
  int64_t trip = 0;              // iteration of the enclosing loop, 0 outside loops
  HostPort* host = nullptr;
  int64_t first_row = 0;  // of the slice that the call works on (ir/row_slice.h), 0 if it works on all rows
};

// The key under which the kernels of an op are registered.
inline std::string_view kernel_key(const Op& op) { return op_name(op); }

// What a kernel is prepared for: slices of equal size have the same kernel, so the attributes do not say where one
// begins.
struct KernelSpec {
  std::string_view op;  // its key
  Attrs attrs;
  std::vector<ConcreteType> inputs;
  std::vector<ConcreteType> outputs;
  int64_t scratch_bytes = 0;  // booked by the plan; a kernel that needs more refuses
  OpCall call() const { return {inputs, outputs, attrs}; }
};

}  // namespace headroom
