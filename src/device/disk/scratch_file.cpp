#include "device/disk/scratch_file.h"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "base/nameless_file.h"
#include "ir/tier_bytes.h"

namespace headroom {
namespace {

void refuse_memory(const std::filesystem::path& directory) {
  if (lies_in_memory(directory))
    throw Error(ErrorKind::usage, fmt::format("--disk-memory: {} is in memory, not on a disk", directory.string()),
                "give a directory on a disk");
}

[[noreturn]] void refuse_room(const std::filesystem::path& directory, int64_t bytes, int64_t room) {
  throw Error(ErrorKind::does_not_fit,
              fmt::format("--disk-memory: the scratch file takes {} bytes ({}), but {} has room for {} bytes ({})",
                          bytes, format_bytes(bytes), directory.string(), room, format_bytes(room)),
              "free room there, give a directory on another disk, or a larger --memory");
}

int64_t room_in(int descriptor) {
  struct statvfs system {};
  if (::fstatvfs(descriptor, &system) != 0) return INT64_MAX;
  return static_cast<int64_t>(system.f_bavail) * static_cast<int64_t>(system.f_frsize);
}

}  // namespace

ScratchFile::ScratchFile(const std::filesystem::path& directory, int64_t bytes) : directory_(directory) {
  std::error_code status;
  if (!std::filesystem::is_directory(directory, status))
    throw Error(ErrorKind::usage, fmt::format("--disk-memory: there is no directory {}", directory.string()),
                "create it, or give another");
  refuse_memory(directory);
  open();
  try {
    reserve(bytes);
  } catch (...) {
    ::close(descriptor_);
    throw;
  }
}

ScratchFile::~ScratchFile() { ::close(descriptor_); }

void ScratchFile::open() {
  descriptor_ = open_nameless(directory_, O_DIRECT);
  direct_ = descriptor_ >= 0;
  if (!direct_ && errno == EINVAL) {
    descriptor_ = open_nameless(directory_, 0);
    if (descriptor_ >= 0) ::posix_fadvise(descriptor_, 0, 0, POSIX_FADV_RANDOM);  // no read-ahead
  }
  if (descriptor_ < 0)
    throw Error(ErrorKind::usage,
                fmt::format("--disk-memory: cannot make a file in {}: {}", directory_.string(), std::strerror(errno)),
                "give a directory that can be written");
}

void ScratchFile::reserve(int64_t bytes) const {
  if (const int64_t room = room_in(descriptor_); bytes > room) refuse_room(directory_, bytes, room);
  int status = 0;
  do {
    status = ::fallocate(descriptor_, 0, 0, bytes);
  } while (status != 0 && errno == EINTR);
  if (status == 0) return;
  if (errno == EOPNOTSUPP || errno == ENOSYS) return fill_with_zeros(bytes);
  if (errno == ENOSPC || errno == EDQUOT || errno == EFBIG) refuse_room(directory_, bytes, room_in(descriptor_));
  fail("reserving", 0, bytes, std::strerror(errno));
}

void ScratchFile::fill_with_zeros(int64_t bytes) const {
  constexpr int64_t kPiece = int64_t{1} << 20;
  std::vector<std::byte> memory(static_cast<size_t>(kPiece + kDiskBlockBytes));
  void* at = memory.data();
  size_t space = memory.size();
  const auto* const zeros =
      static_cast<std::byte*>(std::align(static_cast<size_t>(kDiskBlockBytes), static_cast<size_t>(kPiece), at, space));
  for (int64_t done = 0; done < bytes; done += kPiece)
    write_blocks(done, {zeros, static_cast<size_t>(std::min(kPiece, bytes - done))});
}

// The buffers are laid end to end from the range's first block; each one is a piece.
ScratchFile::Piece ScratchFile::Pieces::at(size_t index) const {
  const int64_t first = offset / kDiskBlockBytes * kDiskBlockBytes + static_cast<int64_t>(index) * most;
  const int64_t begin = std::max(offset, first), end = std::min(offset + bytes, first + most);
  return {first, static_cast<size_t>(align_up(end - first, kDiskBlockBytes)), static_cast<size_t>(begin - first),
          static_cast<size_t>(end - begin), begin - offset};
}

size_t ScratchFile::Pieces::count() const {
  return bytes == 0 ? 0 : static_cast<size_t>((offset % kDiskBlockBytes + bytes + most - 1) / most);
}

void ScratchFile::read(int64_t offset, std::span<std::byte> into, BounceBuffers& buffers) const {
  const Pieces pieces{offset, static_cast<int64_t>(into.size()), static_cast<int64_t>(buffers.bytes())};
  for (size_t i = 0; i < pieces.count(); ++i) {
    const Piece piece = pieces.at(i);
    const size_t index = i % buffers.count();
    const std::span<std::byte> blocks = buffers.await(index).first(piece.blocks);
    read_blocks(piece.place, blocks);
    buffers.store(index, blocks.subspan(piece.skip, piece.bytes), into.data() + piece.done);
  }
  for (size_t index = 0; index < buffers.count(); ++index) buffers.await(index);
}

// All buffers except one are loaded ahead of the one being written.
void ScratchFile::write(int64_t offset, std::span<const std::byte> from, BounceBuffers& buffers) const {
  const Pieces pieces{offset, static_cast<int64_t>(from.size()), static_cast<int64_t>(buffers.bytes())};
  const size_t count = pieces.count(), ahead = buffers.count() - 1;
  for (size_t i = 0; i < count + ahead; ++i) {
    if (i < count) load(pieces.at(i), from, i % buffers.count(), buffers);
    if (i < ahead) continue;
    const Piece piece = pieces.at(i - ahead);
    write_blocks(piece.place, buffers.await((i - ahead) % buffers.count()).first(piece.blocks));
  }
}

// When a block is only partly written, its other bytes are read first.
void ScratchFile::load(const Piece& piece, std::span<const std::byte> from, size_t index,
                       BounceBuffers& buffers) const {
  constexpr auto kBlock = static_cast<size_t>(kDiskBlockBytes);
  const std::span<std::byte> blocks = buffers.await(index).first(piece.blocks);
  if (piece.skip > 0) read_blocks(piece.place, blocks.first(kBlock));
  if (piece.skip + piece.bytes < piece.blocks)
    read_blocks(piece.place + static_cast<int64_t>(piece.blocks - kBlock), blocks.last(kBlock));
  buffers.load(index, blocks.subspan(piece.skip, piece.bytes), from.data() + piece.done);
}

void ScratchFile::read_blocks(int64_t offset, std::span<std::byte> blocks) const {
  for (size_t done = 0; done < blocks.size();) {
    const ssize_t count =
        ::pread(descriptor_, blocks.data() + done, blocks.size() - done, offset + static_cast<int64_t>(done));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0)
      fail("reading", offset, static_cast<int64_t>(blocks.size()), count < 0 ? std::strerror(errno) : "the file ends");
    done += static_cast<size_t>(count);
  }
  if (!direct_) ::posix_fadvise(descriptor_, offset, static_cast<int64_t>(blocks.size()), POSIX_FADV_DONTNEED);
}

void ScratchFile::write_blocks(int64_t offset, std::span<const std::byte> blocks) const {
  const auto bytes = static_cast<int64_t>(blocks.size());
  for (size_t done = 0; done < blocks.size();) {
    const ssize_t count =
        ::pwrite(descriptor_, blocks.data() + done, blocks.size() - done, offset + static_cast<int64_t>(done));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) fail("writing", offset, bytes, count < 0 ? std::strerror(errno) : "nothing was written");
    done += static_cast<size_t>(count);
  }
  if (direct_) return;
  constexpr unsigned kThrough = SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;
  if (::sync_file_range(descriptor_, offset, bytes, kThrough) != 0 && errno != ENOSYS && errno != ESPIPE)
    fail("writing", offset, bytes, std::strerror(errno));
  ::posix_fadvise(descriptor_, offset, bytes, POSIX_FADV_DONTNEED);
}

void ScratchFile::fail(const char* what, int64_t offset, int64_t bytes, const char* why) const {
  throw Error(
      ErrorKind::run,
      fmt::format("{} {} bytes at {} of the scratch file in {}: {}", what, bytes, offset, directory_.string(), why),
      "check that disk, then resume from the last checkpoint, with --disk-memory on another one if need be");
}

}  // namespace headroom
