// A directory on a disk, and helpers for the tests of the disk tier.
#pragma once

#include <gtest/gtest.h>
#include <sys/statvfs.h>

#include <memory>
#include <string>
#include <vector>

#include "../formats/temporary_directory.h"
#include "base/error.h"
#include "device/disk/scratch_file.h"
#include "ir/tier_bytes.h"

namespace headroom::test {

class DiskTest : public testing::Test {
 protected:
  void SetUp() override {
    const std::string why = refuses(path());
    if (why.find("is in memory") != std::string::npos) GTEST_SKIP() << why;
  }

  const std::filesystem::path& path() const { return directory_.path(); }

  // Of two blocks each: smaller than the copies.
  BounceBuffers& buffers() { return buffers_; }

  // Free bytes of the directory's file system.
  int64_t room() const {
    struct statvfs system {};
    EXPECT_EQ(::statvfs(path().c_str(), &system), 0);
    return static_cast<int64_t>(system.f_bavail) * static_cast<int64_t>(system.f_frsize);
  }

  static std::string refuses(const std::filesystem::path& directory) {
    return message([&] { const ScratchFile file(directory, kDiskBlockBytes); });
  }
  static Error refusal(const std::filesystem::path& directory, int64_t bytes) {
    try {
      const ScratchFile file(directory, bytes);
    } catch (const Error& error) {
      return error;
    }
    ADD_FAILURE() << directory << " was accepted";
    return Error(ErrorKind::run, "");
  }
  // The message that the call throws; empty if it does not throw.
  template <typename Call>
  static std::string message(const Call& call) {
    try {
      call();
    } catch (const Error& error) {
      return error.what();
    }
    return {};
  }

 private:
  static std::span<std::byte> two_blocks(std::span<std::byte> memory) {
    void* at = memory.data();
    size_t space = memory.size();
    constexpr auto kBlock = size_t{kDiskBlockBytes};
    return {static_cast<std::byte*>(std::align(kBlock, 2 * kBlock, at, space)), 2 * kBlock};
  }

  TemporaryDirectory directory_;
  std::vector<std::byte> memory_ = std::vector<std::byte>(3 * size_t{kDiskBlockBytes});
  MemoryBounce buffers_{two_blocks(memory_)};
};

}  // namespace headroom::test
