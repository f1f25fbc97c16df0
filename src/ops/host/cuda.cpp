// CUDA kernels of the host's ops: the micro-batch is written into page-locked memory and copied; the others do nothing.
#include <array>
#include <vector>

#include "base/error.h"
#include "ops/cuda/kernel.h"
#include "ops/host/operands.h"

namespace headroom {
namespace {

// Two buffers used in turn: one is filled while the other may still be copied.
class NextBatch final : public CudaKernel {
 public:
  NextBatch(const KernelSpec& spec, CudaServices& services)
      : services_(services),
        types_(spec.attrs.integer("types") != 0),
        lengths_(spec.attrs.integer("lengths") != 0),
        segments_(spec.attrs.integer("segments") != 0) {
    for (const ConcreteType& type : spec.outputs) bytes_ += storage_bytes(type);
    for (Slot& slot : slots_) slot.memory = services_.pinned(bytes_);
  }

  bool replays() const override { return false; }
  void enqueue(const KernelCall& call, CudaStream stream) const override {
    if (launch_mode() == LaunchMode::load) return;
    HR_CHECK(call.host, "next_batch runs without a host");
    Slot& slot = slots_[next_++ % slots_.size()];
    if (slot.mark >= 0) services_.wait_for(slot.mark);
    const TensorView& ids = call.outputs[BatchOutputs::ids];
    const size_t tokens = static_cast<size_t>(ids.count());
    const int64_t batch = ids.dims[0], seq = ids.dims[1];
    int32_t* at = reinterpret_cast<int32_t*>(slot.memory.data());
    call.host->next_batch(call.trip, {at, tokens}, {at + tokens, tokens}, batch, seq);
    int32_t* more = at + 2 * tokens;
    if (types_) call.host->next_types(call.trip, {more, tokens}, batch, seq);
    if (types_) more += tokens;
    if (lengths_) call.host->next_lengths(call.trip, {more, static_cast<size_t>(batch)}, batch, seq);
    if (lengths_) more += batch;
    if (segments_) call.host->next_segments(call.trip, {more, tokens}, batch, seq);
    for (const TensorView& output : call.outputs) {
      services_.copy(output.data, at, output.count() * 4, stream);
      at += output.count();
    }
    slot.mark = services_.mark(stream);
  }

 private:
  struct Slot {
    std::span<std::byte> memory;
    int mark = -1;  // after the copies of its last use
  };
  CudaServices& services_;
  bool types_, lengths_, segments_;  // which outputs follow ids and labels
  int64_t bytes_ = 0;
  mutable std::array<Slot, 2> slots_;
  mutable size_t next_ = 0;
};

std::unique_ptr<CudaKernel> make_next_batch(const KernelSpec& spec, const CudaContext& context) {
  return std::make_unique<NextBatch>(spec, *context.services);
}

std::unique_ptr<CudaKernel> make_nothing(const KernelSpec&, const CudaContext&) {
  return cuda_kernel_of([](const KernelCall&, CudaStream) {});
}

}  // namespace

void register_host_cuda(CudaKernels& kernels) {
  kernels.add("next_batch", one_cuda_kernel<make_next_batch>());
  kernels.add("allocate", one_cuda_kernel<make_nothing>());
  kernels.add("host_stage", one_cuda_kernel<make_nothing>());
}

}  // namespace headroom
