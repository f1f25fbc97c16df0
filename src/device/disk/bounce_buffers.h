// Buffers of host memory through which copies between a file and a device's memory pass, a piece at a time.
#pragma once

#include <cstddef>
#include <cstring>
#include <span>

namespace headroom {

// The memory's side of a stream of copies. A move runs between a buffer and memory; how, and when it is done, is the
// device's matter.
class BounceBuffers {
 public:
  virtual ~BounceBuffers() = default;

  // By the thread that queues copies: the copy in this place of the queue follows all that its stream was given so far.
  virtual void mark(size_t place) {}

  // The others by the thread that copies. Moves from now on follow the mark of this place.
  virtual void begin(size_t place) {}
  // How many there are: that many moves may be under way at once.
  virtual size_t count() const = 0;
  // Of each: whole blocks, aligned to them.
  virtual size_t bytes() const = 0;
  // A buffer whose moves are done. Throws Error(run) when one of them failed.
  virtual std::span<std::byte> await(size_t index) = 0;
  // Starts moving bytes of memory into a part of the buffer.
  virtual void load(size_t index, std::span<std::byte> part, const std::byte* from) = 0;
  // Starts moving a part of the buffer into memory.
  virtual void store(size_t index, std::span<const std::byte> part, std::byte* to) = 0;
};

// One buffer beside memory of this process: a move is done at once.
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
