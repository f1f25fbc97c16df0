// Buffers of host memory for copies between a file and a device's memory, one piece at a time.
#pragma once

#include <cstddef>
#include <cstring>
#include <span>

namespace headroom {

// The memory side of a stream of copies. A move copies between a buffer and the device's memory; the device decides
// how, and when it is done.
class BounceBuffers {
 public:
  virtual ~BounceBuffers() = default;

  // Called by the thread that queues copies: the copy at this place of the queue runs after all work queued so far.
  virtual void mark(size_t place) {}

  // The functions below are called by the thread that copies. Later moves run after the mark of this place.
  virtual void begin(size_t place) {}
  // The number of buffers, and of moves that may be in progress.
  virtual size_t count() const = 0;
  // Bytes of each buffer: whole blocks, aligned to blocks.
  virtual size_t bytes() const = 0;
  // A buffer whose moves are done. Throws Error(run) when one of them failed.
  virtual std::span<std::byte> await(size_t index) = 0;
  // Starts a move of memory into a part of the buffer.
  virtual void load(size_t index, std::span<std::byte> part, const std::byte* from) = 0;
  // Starts a move of a part of the buffer into memory.
  virtual void store(size_t index, std::span<const std::byte> part, std::byte* to) = 0;
};

// One buffer for memory of this process: a move is done on return.
class MemoryBounce final : public BounceBuffers {
 public:
  explicit MemoryBounce(std::span<std::byte> buffer) : buffer_(buffer) {}

  size_t count() const override { return 1; }
  size_t bytes() const override { return buffer_.size(); }
  std::span<std::byte> await(size_t) override { return buffer_; }
  void load(size_t, std::span<std::byte> part, const std::byte* from) override {
    std::memcpy(part.data(), from, part.size());
  }
  void store(size_t, std::span<const std::byte> part, std::byte* to) override {
    std::memcpy(to, part.data(), part.size());
  }

 private:
  std::span<std::byte> buffer_;
};

}  // namespace headroom
