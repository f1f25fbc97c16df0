// Files and directories that appear completely or not at all: written under a temporary name in the same folder,
// fsynced, renamed. A kill at any moment leaves the last good one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace headroom {

// Writes a directory `name` through `name.tmp-PID`. Holds a lock on the temporary one, which tells other processes that
// it is not stale.
class AtomicDirectory {
 public:
  // Recovers and clears the leftovers of killed processes (as recover_directory), then creates the temporary one and
  // missing parents. Throws Error(run).
  explicit AtomicDirectory(const std::filesystem::path& final_path);
  AtomicDirectory(const AtomicDirectory&) = delete;
  AtomicDirectory& operator=(const AtomicDirectory&) = delete;
  // Unless committed, removes the temporary one, and those of the parents that it created that are empty.
  ~AtomicDirectory();

  // Where to write: the temporary directory.
  const std::filesystem::path& path() const { return temporary_; }

  // fsyncs every file and directory below path(), renames it to the final name (an older one is exchanged atomically if
  // the file system can, and removed after), fsyncs the parent. Throws Error(run); the older one then remains.
  void commit();

 private:
  std::filesystem::path final_;
  std::filesystem::path temporary_;
  std::vector<std::filesystem::path> created_;  // parents that were missing, the innermost first
  int lock_ = -1;
  bool committed_ = false;
};

// Removes the temporaries `final_path`.tmp-* of processes that are gone; brings back an older directory that a killed
// process had set aside. Call before looking for the newest complete directory. Throws Error(run).
void recover_directory(const std::filesystem::path& final_path);

// recover_directory for every final name in `parent` that has temporaries. A missing parent is not an error.
void recover_directories_in(const std::filesystem::path& parent);

// Removes a directory through a temporary name, so that a kill meanwhile leaves no directory of the final name with
// only some of its files. Throws Error(run).
void remove_directory(const std::filesystem::path& path);

// The name of this process's unfinished `path`, in the same folder.
std::filesystem::path temporary_beside(const std::filesystem::path& path);

// Writes a small file durably: temporary name, fsync, rename, fsync of the directory. Throws Error(run).
void write_text_durably(const std::filesystem::path& path, std::string_view text);

// Renames a file that is written and fsynced over `to`, and fsyncs the directory. Throws Error(run).
void rename_durably(const std::filesystem::path& from, const std::filesystem::path& to);

// Copies a file with a 64 KiB buffer: temporary name, fsync, rename, fsync of the directory. Throws Error(usage) if
// `from` is missing, Error(run) on I/O errors.
void copy_file_durably(const std::filesystem::path& from, const std::filesystem::path& to);

// Calls body(name) for the names in a directory, in the system's order, one in memory at a time; does nothing if it is
// missing. Throws Error(run) if it cannot be read to its end.
void each_name_in(const std::filesystem::path& directory, const std::function<void(const std::string& name)>& body);

// fsyncs a directory's entries. Throws Error(run).
void sync_directory(const std::filesystem::path& directory);

}  // namespace headroom
