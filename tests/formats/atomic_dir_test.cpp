#include "formats/atomic_dir.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "expect_error.h"
#include "temporary_directory.h"

namespace headroom {
namespace {

std::vector<std::string> names(const std::filesystem::path& directory) {
  std::vector<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator(directory))
    found.push_back(entry.path().filename().string());
  std::sort(found.begin(), found.end());
  return found;
}

TEST(AtomicDirectory, AppearsOnlyWhenCommitted) {
  TemporaryDirectory directory;
  const auto final_path = directory / "deep/checkpoint-1";
  {
    AtomicDirectory atomic(final_path);
    write_text_durably(atomic.path() / "state.json", "{}");
    EXPECT_FALSE(std::filesystem::exists(final_path));
    atomic.commit();
  }
  EXPECT_EQ(read_text(final_path / "state.json"), "{}");
  EXPECT_EQ(names(directory / "deep"), std::vector<std::string>{"checkpoint-1"});
}

TEST(AtomicDirectory, UncommittedLeavesNothingAndTheOlderOneStands) {
  TemporaryDirectory directory;
  for (const char* text : {"one", "two"}) {
    AtomicDirectory atomic(directory / "c");
    write_text_durably(atomic.path() / "x", text);
    atomic.commit();
  }
  EXPECT_EQ(read_text(directory / "c/x"), "two");
  {
    AtomicDirectory atomic(directory / "c/");
    write_text_durably(atomic.path() / "x", "three");
  }
  EXPECT_EQ(read_text(directory / "c/x"), "two");
  EXPECT_EQ(names(directory.path()), std::vector<std::string>{"c"});
}

TEST(AtomicDirectory, UncommittedLeavesNoParentThatItCreated) {
  TemporaryDirectory directory;
  std::filesystem::create_directory(directory / "kept");
  { AtomicDirectory atomic(directory / "kept/a/b//c/"); }
  EXPECT_EQ(names(directory.path()), std::vector<std::string>{"kept"});
  EXPECT_TRUE(names(directory / "kept").empty());
  {
    AtomicDirectory atomic(directory / "kept/a/b/c");
    std::filesystem::create_directory(directory / "kept/a/other");
  }
  EXPECT_EQ(names(directory / "kept/a"), std::vector<std::string>{"other"});
}

TEST(AtomicDirectory, StaleTemporariesAreRemovedAndTheOldOneBroughtBack) {
  TemporaryDirectory directory;
  for (const char* name :
       {"c.tmp-999999999", "c.tmp-notes", "d.tmp-999999999", "d.old-5", "e.old-5", "e", "f.tmp-999999998x"})
    std::filesystem::create_directory(directory / name);
  directory.write("m.json.tmp-999999999", "half");
  directory.write("d.old-5/x", "older");
  recover_directory(directory / "c");
  EXPECT_EQ(names(directory.path()), (std::vector<std::string>{"c.tmp-notes", "d.old-5", "d.tmp-999999999", "e",
                                                               "e.old-5", "f.tmp-999999998x", "m.json.tmp-999999999"}));
  recover_directories_in(directory.path());
  EXPECT_EQ(names(directory.path()), (std::vector<std::string>{"c.tmp-notes", "d", "e", "f.tmp-999999998x"}));
  EXPECT_EQ(read_text(directory / "d/x"), "older");
  recover_directories_in(directory / "nowhere");
}

TEST(AtomicDirectory, ALiveWritersTemporaryIsLeftAlone) {
  TemporaryDirectory directory;
  int ready[2], done[2];
  ASSERT_EQ(pipe(ready), 0);
  ASSERT_EQ(pipe(done), 0);
  const pid_t child = fork();
  if (child == 0) {
    AtomicDirectory atomic(directory / "c");
    char byte = 'r';
    if (write(ready[1], &byte, 1) != 1 || read(done[0], &byte, 1) != 1) _exit(1);
    atomic.commit();
    _exit(0);
  }
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  recover_directories_in(directory.path());
  EXPECT_EQ(names(directory.path()), std::vector<std::string>{"c.tmp-" + std::to_string(child)});
  ASSERT_EQ(write(done[1], &byte, 1), 1);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(names(directory.path()), std::vector<std::string>{"c"});
}

void commit_generation(const std::filesystem::path& path, int generation) {
  AtomicDirectory atomic(path);
  write_text_durably(atomic.path() / "a", std::to_string(generation));
  write_text_durably(atomic.path() / "b", std::to_string(generation));
  atomic.commit();
}

// A child replaces the directory repeatedly, with two files of one generation each, and is killed at random moments.
// The directory is always complete: both files have the same generation, which never decreases.
TEST(AtomicDirectory, KilledAtAnyMomentLeavesTheLastGoodOne) {
  TemporaryDirectory directory;
  int last = 1;
  commit_generation(directory / "c", last);
  for (int round = 0; round < 50; ++round) {
    const pid_t child = fork();
    if (child == 0)
      for (int generation = last + 1;; ++generation) commit_generation(directory / "c", generation);
    usleep(static_cast<useconds_t>(200 + round * 7919 % 40000));
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    recover_directories_in(directory.path());
    EXPECT_EQ(names(directory.path()), std::vector<std::string>{"c"});
    const int generation = std::stoi(read_text(directory / "c/a"));
    EXPECT_EQ(read_text(directory / "c/b"), std::to_string(generation));
    EXPECT_GE(generation, last);
    last = generation;
  }
}

TEST(AtomicDirectory, ARemovalKilledAtAnyMomentLeavesNoPartOfIt) {
  TemporaryDirectory directory;
  for (int round = 0; round < 20; ++round) {
    std::filesystem::create_directory(directory / "c");
    for (int i = 0; i < 50; ++i) directory.write("c/" + std::to_string(i), "x");
    const pid_t child = fork();
    if (child == 0) {
      remove_directory(directory / "c/");
      _exit(0);
    }
    usleep(static_cast<useconds_t>(round * 7919 % 1000));
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    if (std::filesystem::exists(directory / "c")) {
      EXPECT_EQ(names(directory / "c").size(), 50u);
      std::filesystem::remove_all(directory / "c");
    }
    recover_directories_in(directory.path());
    EXPECT_TRUE(std::filesystem::is_empty(directory.path()));
  }
  expect_error(ErrorKind::run, "nowhere", [&] { remove_directory(directory / "nowhere"); });
}

TEST(AtomicDirectory, ErrorsNameThePath) {
  TemporaryDirectory directory;
  directory.write("file", "");
  expect_error(ErrorKind::run, "file", [&] { AtomicDirectory(directory / "file/c"); });
  expect_error(ErrorKind::run, "nowhere", [&] { write_text_durably(directory / "nowhere/x", "y"); });
  expect_error(ErrorKind::usage, "missing", [&] { copy_file_durably(directory / "missing", directory / "x"); });
  EXPECT_FALSE(std::filesystem::exists(directory / "x"));
}

TEST(AtomicDirectory, CopiesFilesOfAnySize) {
  TemporaryDirectory directory;
  for (const size_t size : {size_t{0}, size_t{1}, size_t{65536}, size_t{9 << 20} + 5}) {
    std::string content(size, 'x');
    for (size_t i = 0; i < size; i += 997) content[i] = static_cast<char>(i);
    copy_file_durably(directory.write("from", content), directory / "to");
    EXPECT_TRUE(read_text(directory / "to") == content) << size;
  }
}

}  // namespace
}  // namespace headroom
