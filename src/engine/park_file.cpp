#include "engine/park_file.h"

#include <memory>

#include "base/bytes.h"
#include "base/error.h"
#include "plan/plan.h"

namespace headroom {
namespace {

// Reads and writes the file directly from and to the buffer: nothing is copied.
class InPlace final : public BounceBuffers {
 public:
  explicit InPlace(std::span<std::byte> buffer) : buffer_(buffer) {}

  size_t count() const override { return 1; }
  size_t bytes() const override { return buffer_.size(); }
  std::span<std::byte> await(size_t) override { return buffer_; }
  void load(size_t, std::span<std::byte> part, const std::byte* from) override {
    HR_CHECK(part.data() == from, "a slot is written from elsewhere");
  }
  void store(size_t, std::span<const std::byte> part, std::byte* to) override {
    HR_CHECK(part.data() == to, "a slot is read to elsewhere");
  }

 private:
  std::span<std::byte> buffer_;
};

[[noreturn]] void fail(const char* what, const Error& error) {
  throw Error(error.kind(), fmt::format("{} a parked sequence: {}", what, error.what()),
              "check that disk, or serve with --admission guaranteed");
}

}  // namespace

int64_t ParkFile::slot_bytes(int64_t block_bytes) { return align_up(block_bytes, kDiskBlockBytes); }
int64_t ParkFile::memory_bytes(int64_t block_bytes) { return slot_bytes(block_bytes) + kDiskBlockBytes; }

ParkFile::ParkFile(const std::filesystem::path& directory, int64_t slots, int64_t block_bytes)
    : ParkFile(std::make_unique<ScratchFile>(directory, slots * slot_bytes(block_bytes)), block_bytes) {}

ParkFile::ParkFile(std::unique_ptr<ScratchFile> file, int64_t block_bytes)
    : block_bytes_(block_bytes), file_(std::move(file)), memory_(static_cast<size_t>(memory_bytes(block_bytes))) {
  void* at = memory_.data();
  size_t space = memory_.size();
  const auto bytes = static_cast<size_t>(slot_bytes(block_bytes));
  buffer_ = {static_cast<std::byte*>(std::align(static_cast<size_t>(kDiskBlockBytes), bytes, at, space)), bytes};
}

void ParkFile::write(int32_t slot) {
  InPlace bounce(buffer_);
  try {
    file_->write(slot * static_cast<int64_t>(buffer_.size()), buffer_, bounce);
  } catch (const Error& error) {
    fail("writing", error);
  }
}

void ParkFile::read(int32_t slot) {
  InPlace bounce(buffer_);
  try {
    file_->read(slot * static_cast<int64_t>(buffer_.size()), buffer_, bounce);
  } catch (const Error& error) {
    fail("reading", error);
  }
}

}  // namespace headroom
