#include "formats/file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "expect_error.h"
#include "temporary_directory.h"

namespace headroom {
namespace {

TEST(TextFile, IsReadWholeUpToItsLimit) {
  TemporaryDirectory directory;
  directory.write("t", "four");
  EXPECT_EQ(read_text_file(directory / "t", 4), "four");
  expect_error(ErrorKind::format, "the 3 bytes expected", [&] { read_text_file(directory / "t", 3); });
  expect_error(ErrorKind::usage, "cannot read", [&] { read_text_file(directory / "missing"); });
  expect_error(ErrorKind::usage, "is a directory", [&] { read_text_file(directory.path()); });
}

TEST(SystemFile, IsReadThoughItsSizeIsNotKnown) {
  const std::string status = read_system_file("/proc/self/status");
  EXPECT_NE(status.find("\nPid:\t" + std::to_string(::getpid()) + "\n"), std::string::npos);
  EXPECT_TRUE(status.ends_with('\n'));
  EXPECT_EQ(read_system_file("/proc/self/missing"), "");
}

TEST(SystemFile, OfSeveralPiecesIsReadWhole) {
  TemporaryDirectory directory;
  for (const size_t size : {0, 4095, 4096, 4097, 20000}) {
    const std::string text(size, 'x');
    directory.write("t", text);
    EXPECT_EQ(read_system_file(directory / "t"), text) << size;
  }
}

}  // namespace
}  // namespace headroom
