#include "formats/temporary_place.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/nameless_file.h"
#include "expect_error.h"
#include "formats/file.h"
#include "temporary_directory.h"

namespace headroom {
namespace {

namespace fs = std::filesystem;

// TMPDIR during a test.
class TemporaryPlace : public testing::Test {
 protected:
  TemporaryPlace() : before_(fs::temp_directory_path()) {}
  ~TemporaryPlace() override { set(before_); }
  static void set(const fs::path& directory) { ::setenv("TMPDIR", directory.c_str(), 1); }

  fs::path before_;
  TemporaryDirectory directory_;
};

TEST_F(TemporaryPlace, IsTheSystemsWhereThatIsOnADisk) {
  if (lies_in_memory(directory_.path())) GTEST_SKIP() << "temporary files lie in memory here";
  set(directory_.path());
  EXPECT_EQ(temporary_place_on_disk(".", "a test"), directory_.path());
}

TEST_F(TemporaryPlace, IsNeverInMemory) {
  if (!lies_in_memory("/dev/shm") || ::access("/dev/shm", W_OK) != 0) GTEST_SKIP() << "no tmpfs that can be written";
  set("/dev/shm");
  if (lies_in_memory("/var/tmp")) {
    expect_error(ErrorKind::usage, "/dev/shm is in memory", [] { temporary_place_on_disk("/dev/shm", "a test"); });
    return;
  }
  EXPECT_EQ(temporary_place_on_disk("/dev/shm", "a test"), "/var/tmp");
}

TEST_F(TemporaryPlace, AFileWithoutANameIsItsOwnersAlone) {
  struct stat status {};
  const int descriptor = open_nameless(directory_.path(), 0);
  ASSERT_GE(descriptor, 0);
  ASSERT_EQ(::fstat(descriptor, &status), 0);
  ::close(descriptor);
  EXPECT_EQ(status.st_mode & 07777, mode_t{0600});
  EXPECT_EQ(status.st_nlink, nlink_t{0});
  EXPECT_TRUE(fs::is_empty(directory_.path()));
  expect_error(ErrorKind::run, "nowhere", [&] { File::create_nameless(directory_ / "nowhere"); });
}

}  // namespace
}  // namespace headroom
