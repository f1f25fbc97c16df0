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

constexpr int64_t kThreadsBytes = int64_t{256} << 10;  // stack pages that the streams' threads touch

// Addresses that no memory backs.
std::byte* map(int64_t bytes) {
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  void* memory = ::mmap(nullptr, static_cast<size_t>(bytes), PROT_NONE, kFlags, -1, 0);
  if (memory == MAP_FAILED)
    throw Error(ErrorKind::run,
                fmt::format("cannot map {} for the disk's tier: {}", format_bytes(bytes), std::strerror(errno)),
                "free memory, or lift the limit of addresses (ulimit -v)");
  return static_cast<std::byte*>(memory);
}

}  // namespace

DiskTier::DiskTier(std::filesystem::path directory) : directory_(std::move(directory)) {}

DiskTier::~DiskTier() {
  streams_.clear();
  if (base_) ::munmap(base_, static_cast<size_t>(bytes_));
}

void DiskTier::require_room(int64_t bytes) {
  if (bytes == 0)
    ScratchFile(directory_, kDiskBlockBytes);
  else if (!file_)
    file_ = std::make_unique<ScratchFile>(directory_, align_up(bytes, kDiskBlockBytes));
}

std::byte* DiskTier::reserve(int64_t bytes, std::unique_ptr<BounceBuffers> buffers) {
  HR_CHECK(!base_ && bytes > 0, "the disk's arena of {} bytes is reserved twice, or empty", bytes);
  require_room(bytes);
  bytes_ = align_up(bytes, kDiskBlockBytes);
  base_ = map(bytes_);
  buffers_ = std::move(buffers);
  return base_;
}

void DiskTier::add_stream(int stream, std::unique_ptr<BounceBuffers> buffers) {
  HR_CHECK(file_ && streams_.size() < kStreams, "the disk's tier has {} streams, once there is room for it", kStreams);
  Stream& added = streams_[stream];
  added.buffers = std::move(buffers);
  added.thread = std::make_unique<CopyThread>(*file_, *added.buffers);
}

void DiskTier::copy(std::byte* to, const std::byte* from, int64_t bytes, int stream) {
  const bool to_disk = holds(to);
  HR_CHECK(to_disk != holds(from), "a copy of the disk's tier has one end there");
  std::byte* const place = to_disk ? to : const_cast<std::byte*>(from);
  HR_CHECK(bytes <= base_ + bytes_ - place, "a copy of {} bytes ends behind the disk's arena", bytes);
  const DiskCopy copy{to_disk ? const_cast<std::byte*>(from) : to, bytes, place - base_, to_disk};
  if (stream > 0) return streams_.at(stream).thread->queue(copy);
  buffers_->mark(0);
  carry_out(copy, *file_, *buffers_, 0);
}

DiskTier::Mark DiskTier::mark(int stream) const {
  const auto at = streams_.find(stream);
  return {stream, at == streams_.end() ? 0 : at->second.thread->queued()};
}

void DiskTier::wait(const Mark& mark) {
  if (mark.copies > 0) streams_.at(mark.stream).thread->wait_for(mark.copies);
}

int64_t disk_process_bytes(const DeviceFacts& facts) {
  constexpr size_t kUsers = 1 + DiskTier::kStreams;
  // On the CPU the window to the arena also needs a buffer; a GPU's buffers are double and it has a window anyway.
  const size_t buffers = facts.is_cpu() ? kUsers + 1 : 2 * kUsers;
  return static_cast<int64_t>(buffers) * DiskTier::kBufferBytes + kThreadsBytes;
}

}  // namespace headroom
