// A file size limit simulates a full disk: the same write() fails, with EFBIG instead of ENOSPC. A really full disk is
// used where mounting is allowed.
#include <gtest/gtest.h>
#include <sys/mount.h>

#include "expect_error.h"
#include "file_size_limit.h"
#include "formats/atomic_dir.h"
#include "formats/safetensors_writer.h"
#include "temporary_directory.h"

namespace headroom {
namespace {

void write_large(const std::filesystem::path& path) {
  SafetensorsWriter writer(path);
  writer.declare("w", StoredType::f32, {1 << 20});
  const std::vector<std::byte> chunk(1 << 16);
  for (int i = 0; i < 64; ++i) writer.write("w", chunk);
  writer.finish();
}

TEST(DiskFull, TheWriterRemovesItsFile) {
  TemporaryDirectory directory;
  FileSizeLimit limit(1 << 20);
  expect_error(ErrorKind::run, "w.safetensors", [&] { write_large(directory / "w.safetensors"); });
  EXPECT_FALSE(std::filesystem::exists(directory / "w.safetensors"));
}

TEST(DiskFull, DurableTextsAndCopiesLeaveNothing) {
  TemporaryDirectory directory;
  directory.write("good.json", "old");
  directory.write("large", std::string(100000, 'x'));
  FileSizeLimit limit(1000);
  expect_error(ErrorKind::run, "good.json",
               [&] { write_text_durably(directory / "good.json", std::string(5000, 'x')); });
  EXPECT_EQ(read_text(directory / "good.json"), "old");
  expect_error(ErrorKind::run, "copy", [&] { copy_file_durably(directory / "large", directory / "copy"); });
  EXPECT_FALSE(std::filesystem::exists(directory / "copy"));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(directory.path()), {}), 2);
}

TEST(DiskFull, OnARealFullFileSystem) {
  TemporaryDirectory directory;
  if (mount("headroom", directory.path().c_str(), "tmpfs", 0, "size=1m") != 0)
    GTEST_SKIP() << "mounting is not allowed";
  expect_error(ErrorKind::run, "No space left", [&] { write_large(directory / "w.safetensors"); });
  EXPECT_FALSE(std::filesystem::exists(directory / "w.safetensors"));
  umount2(directory.path().c_str(), MNT_DETACH);
}

TEST(DiskFull, ADeviceWithoutSpace) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP();
  TemporaryDirectory directory;
  std::filesystem::create_symlink("/dev/full", temporary_beside(directory / "w.safetensors"));
  expect_error(ErrorKind::run, "No space left", [&] { write_large(directory / "w.safetensors"); });
  EXPECT_TRUE(std::filesystem::exists("/dev/full"));
}

}  // namespace
}  // namespace headroom
