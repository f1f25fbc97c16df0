#include "runtime/calibrate/disk_rates.h"

#include <chrono>
#include <exception>
#include <memory>
#include <thread>
#include <vector>

#include "device/disk/scratch_file.h"
#include "ir/tier_bytes.h"

namespace headroom {
namespace {

constexpr int64_t kHalf = int64_t{128} << 20;  // one is read while the other is written
constexpr size_t kPiece = size_t{1} << 20;

// The memory of a copy of the disk tier: unaligned memory, and a buffer aligned to blocks.
class Pieces {
 public:
  std::span<std::byte> memory() { return {memory_.data(), kPiece}; }
  std::span<std::byte> buffer() {
    void* at = buffer_.data();
    size_t space = buffer_.size();
    return {static_cast<std::byte*>(std::align(size_t{kDiskBlockBytes}, kPiece, at, space)), kPiece};
  }

 private:
  std::vector<std::byte> memory_ = std::vector<std::byte>(kPiece, std::byte{1});
  std::vector<std::byte> buffer_ = std::vector<std::byte>(kPiece + size_t{kDiskBlockBytes});
};

// Seconds of a copy of half the file in pieces.
double seconds_of(const ScratchFile& file, int64_t begin, bool write) {
  Pieces pieces;
  MemoryBounce bounce(pieces.buffer());
  const auto start = std::chrono::steady_clock::now();
  for (int64_t at = begin; at < begin + kHalf; at += static_cast<int64_t>(kPiece))
    write ? file.write(at, pieces.memory(), bounce) : file.read(at, pieces.memory(), bounce);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

DiskRates measure_disk(const std::filesystem::path& directory) {
  const ScratchFile file(directory, 2 * kHalf);
  seconds_of(file, 0, true), seconds_of(file, kHalf, true);  // writes both first
  double read = 0;
  std::exception_ptr failure;
  std::thread reader([&] {
    try {
      read = seconds_of(file, 0, false);
    } catch (...) {
      failure = std::current_exception();
    }
  });
  double write = 0;
  try {
    write = seconds_of(file, kHalf, true);
  } catch (...) {
    reader.join();
    throw;
  }
  reader.join();
  if (failure) std::rethrow_exception(failure);
  return {static_cast<double>(kHalf) / read, static_cast<double>(kHalf) / write};
}

}  // namespace headroom
