// Page-locked buffers between a scratch file and a GPU's memory: one is read or written while the other one is copied.
#pragma once

#include <array>
#include <vector>

#include "device/cuda/cuda_runtime.h"
#include "device/disk/disk_tier.h"
#include "ir/tier_bytes.h"

namespace headroom {

// Moves are copies on a separate stream, which waits for the marks of the stream on which the copies are queued. That
// stream never waits for the moves: whoever needs the end of a copy waits on the host for the copying thread.
class CudaBounce final : public BounceBuffers {
 public:
  // Bytes of page-locked memory, at any alignment.
  static constexpr int64_t kPinnedBytes = 2 * DiskTier::kBufferBytes + kDiskBlockBytes;

  // Follows `queue`; at most `places` copies have marks at once. The runtime must outlive it.
  CudaBounce(CudaRuntime& runtime, CudaStream queue, size_t places);
  CudaBounce(const CudaBounce&) = delete;
  CudaBounce& operator=(const CudaBounce&) = delete;
  ~CudaBounce() override;

  // Sets its memory of kPinnedBytes, which must outlive it; call before the first copy.
  void take(std::span<std::byte> pinned);

  void mark(size_t place) override { runtime_.record(marks_.at(place), queue_); }
  void begin(size_t place) override;
  size_t count() const override { return buffers_.size(); }
  size_t bytes() const override { return static_cast<size_t>(DiskTier::kBufferBytes); }
  std::span<std::byte> await(size_t index) override;
  void load(size_t index, std::span<std::byte> part, const std::byte* from) override;
  void store(size_t index, std::span<const std::byte> part, std::byte* to) override;

 private:
  struct Buffer {
    std::byte* memory = nullptr;
    CudaEvent moved = nullptr;  // recorded after its last move
  };
  void move(size_t index, std::byte* to, const std::byte* from, size_t bytes);

  CudaRuntime& runtime_;
  CudaStream queue_;
  CudaStream moves_;
  std::vector<CudaEvent> marks_;  // indexed by place
  std::array<Buffer, 2> buffers_;
};

}  // namespace headroom
