// The scratch file: exactly the requested bytes, whatever blocks they are in; room, directories and error messages.
#include "device/disk/scratch_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <numeric>
#include <vector>

#include "../formats/temporary_directory.h"
#include "base/error.h"
#include "disk_test.h"
#include "ir/tier_bytes.h"

namespace headroom::test {
namespace {

using testing::HasSubstr;

TEST_F(DiskTest, BytesOfAnyPlaceAndLengthComeBack) {
  constexpr int64_t kBytes = 16 * kDiskBlockBytes;
  const ScratchFile file(path(), kBytes);
  std::vector<std::byte> expected(size_t{kBytes}), found(size_t{kBytes});
  file.read(0, found, buffers());
  EXPECT_EQ(found, expected) << "what was never written is zero";
  uint32_t state = 1;
  const auto random = [&](int64_t below) {
    state = state * 1664525u + 1013904223u;
    return static_cast<int64_t>(state >> 8) % below;
  };
  for (int round = 0; round < 200; ++round) {
    const int64_t begin = random(kBytes), length = 1 + random(std::min<int64_t>(kBytes - begin, 5 * kDiskBlockBytes));
    const std::span<std::byte> piece =
        std::span(expected).subspan(static_cast<size_t>(begin), static_cast<size_t>(length));
    std::fill(piece.begin(), piece.end(), static_cast<std::byte>(round + 1));
    file.write(begin, piece, buffers());
    const int64_t from = random(kBytes), count = random(kBytes - from);
    file.read(from, std::span(found).first(static_cast<size_t>(count)), buffers());
    EXPECT_TRUE(std::equal(found.begin(), found.begin() + count, expected.begin() + from)) << "round " << round;
  }
}

TEST_F(DiskTest, AFileWithoutANameHasAllItsBytes) {
  const int64_t before = room();
  {
    const ScratchFile file(path(), int64_t{8} << 20);
    EXPECT_TRUE(std::filesystem::is_empty(path()));
    EXPECT_LE(room(), before - (int64_t{8} << 20) + (int64_t{4} << 20)) << "others of the disk may free some meanwhile";
  }
  EXPECT_TRUE(std::filesystem::is_empty(path()));
}

TEST_F(DiskTest, TooLittleRoomIsRefusedInBytes) {
  const int64_t bytes = (room() / kDiskBlockBytes + (1 << 20)) * kDiskBlockBytes;
  const Error error = refusal(path(), bytes);
  EXPECT_EQ(error.kind(), ErrorKind::does_not_fit);
  EXPECT_THAT(error.what(), HasSubstr(std::to_string(bytes) + " bytes"));
  EXPECT_THAT(error.what(), HasSubstr("has room for"));
  EXPECT_FALSE(error.remedy().empty());
}

TEST_F(DiskTest, DirectoriesThatWillNotDoAreNamed) {
  const Error missing = refusal(path() / "absent", kDiskBlockBytes);
  EXPECT_EQ(missing.kind(), ErrorKind::usage);
  EXPECT_THAT(missing.what(), HasSubstr("absent"));
  std::ofstream(path() / "file") << "x";
  EXPECT_THAT(refusal(path() / "file", kDiskBlockBytes).what(), HasSubstr("no directory"));
  EXPECT_THAT(refusal("/proc/self", kDiskBlockBytes).what(), HasSubstr("cannot make a file in /proc/self"));
  if (!std::filesystem::exists("/dev/shm")) return;
  EXPECT_THAT(refusal("/dev/shm", kDiskBlockBytes).what(), HasSubstr("is in memory"));
}

// Without O_DIRECT the bytes are the same, and none of them stay in the page cache.
TEST_F(DiskTest, ThroughThePageCacheNothingStaysThere) {
  const int descriptor = ::open(path().c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  ASSERT_GE(descriptor, 0);
  ASSERT_EQ(::fallocate(descriptor, 0, 0, 4 * kDiskBlockBytes), 0);
  const ScratchFile file(descriptor, path(), false);
  std::vector<std::byte> values(3 * kDiskBlockBytes + 100, std::byte{7}), found(values.size());
  file.write(50, values, buffers());
  file.read(50, found, buffers());
  EXPECT_EQ(found, values);
}

// Errors of the system, from descriptors that cause them.
TEST_F(DiskTest, FailuresNameTheFileAndThePlace) {
  std::vector<std::byte> bytes(size_t{kDiskBlockBytes});
  const ScratchFile full(::open("/dev/full", O_RDWR | O_CLOEXEC), path(), true);
  EXPECT_THAT(message([&] { full.write(kDiskBlockBytes, bytes, buffers()); }),
              HasSubstr("writing 4096 bytes at 4096 of the scratch file in " + path().string() + ": No space left"));
  std::ofstream(path() / "short") << "x";
  const ScratchFile cut(::open((path() / "short").c_str(), O_RDWR | O_CLOEXEC), path(), true);
  EXPECT_THAT(message([&] { cut.read(0, bytes, buffers()); }), HasSubstr("the file ends"));
  const ScratchFile closed(::open((path() / "short").c_str(), O_WRONLY | O_CLOEXEC), path(), true);
  EXPECT_THAT(message([&] { closed.read(0, bytes, buffers()); }), HasSubstr("Bad file descriptor"));
}

}  // namespace
}  // namespace headroom::test
