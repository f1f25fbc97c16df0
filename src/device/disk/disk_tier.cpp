#include "device/disk/disk_tier.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "base/bytes.h"
#include "base/error.h"
#include "device/device.h"
#include "ir/tier_bytes.h"

namespace headroom {
namespace {

constexpr size_t kStreams = 2;             // in and out
constexpr size_t kBuffers = 2 + kStreams;  // the window, the caller's, the streams'
constexpr size_t kBufferBytes = size_t{1} << 20;
static_assert(kDiskProcessBytes >= static_cast<int64_t>(kBuffers * kBufferBytes));

std::byte* map(int64_t bytes, int protection, int flags) {
  void* memory = ::mmap(nullptr, static_cast<size_t>(bytes), protection, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
  if (memory == MAP_FAILED)
    throw Error(ErrorKind::run,
                fmt::format("cannot map {} for the disk's tier: {}", format_bytes(bytes), std::strerror(errno)),
                "free memory, or lift the limit of addresses (ulimit -v)");
  return static_cast<std::byte*>(memory);
}

}  // namespace

DiskTier::DiskTier(std::filesystem::path directory) : directory_(std::move(directory)) {}

DiskTier::~DiskTier() {
  threads_.clear();
  if (base_) ::munmap(base_, static_cast<size_t>(bytes_));
  if (buffers_) ::munmap(buffers_, kBuffers * kBufferBytes);
}

void DiskTier::require_room(int64_t bytes) {
  if (bytes == 0)
    ScratchFile(directory_, kDiskBlockBytes);
  else if (!file_)
    file_ = std::make_unique<ScratchFile>(directory_, align_up(bytes, kDiskBlockBytes));
}

std::byte* DiskTier::reserve(int64_t bytes) {
  HR_CHECK(!base_ && bytes > 0, "the disk's arena of {} bytes is reserved twice, or empty", bytes);
  require_room(bytes);
  buffers_ = map(static_cast<int64_t>(kBuffers * kBufferBytes), PROT_READ | PROT_WRITE, MAP_POPULATE);
  bytes_ = align_up(bytes, kDiskBlockBytes);
  base_ = map(bytes_, PROT_NONE, MAP_NORESERVE);
  return base_;
}

std::span<std::byte> DiskTier::buffer(size_t index) const { return {buffers_ + index * kBufferBytes, kBufferBytes}; }

std::span<std::byte> DiskTier::window() const { return base_ ? buffer(0) : std::span<std::byte>(); }

void DiskTier::add_stream() {
  HR_CHECK(threads_.size() < kStreams, "the disk's tier has buffers for {} streams", kStreams);
  threads_.push_back(std::make_unique<CopyThread>(*file_, buffer(2 + threads_.size())));
}

void DiskTier::copy(std::byte* to, const std::byte* from, int64_t bytes, int stream) {
  const bool to_disk = holds(to);
  HR_CHECK(to_disk != holds(from), "a copy of the disk's tier has one end there");
  std::byte* const place = to_disk ? to : const_cast<std::byte*>(from);
  HR_CHECK(bytes <= base_ + bytes_ - place, "a copy of {} bytes ends behind the disk's arena", bytes);
  const DiskCopy copy{to_disk ? const_cast<std::byte*>(from) : to, bytes, place - base_, to_disk};
  if (stream == 0) return carry_out(copy, *file_, buffer(1));
  threads_.at(static_cast<size_t>(stream - 1))->queue(copy);
}

int64_t DiskTier::queued(int stream) const {
  return stream == 0 ? 0 : threads_.at(static_cast<size_t>(stream - 1))->queued();
}

void DiskTier::wait_for(int stream, int64_t count) {
  if (stream > 0) threads_.at(static_cast<size_t>(stream - 1))->wait_for(count);
}

}  // namespace headroom
