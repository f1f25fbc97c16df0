#include "formats/atomic_dir.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <string>
#include <system_error>
#include <vector>

#include "base/error.h"
#include "formats/file.h"

namespace headroom {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kTemporary = ".tmp-";
// If rename cannot exchange, the older directory has this name while the new one replaces it.
constexpr std::string_view kSetAside = ".old-";

[[noreturn]] void fail(std::string_view verb, const fs::path& path, const std::error_code& status) {
  throw Error(ErrorKind::run, fmt::format("cannot {} {}: {}", verb, path.string(), status.message()),
              status == std::errc::no_space_on_device ? "free some space or write to another disk"
                                                      : "check the directory's permissions and its disk");
}

[[noreturn]] void fail_errno(std::string_view verb, const fs::path& path) {
  fail(verb, path, std::error_code(errno, std::generic_category()));
}

// "dir/name/" and "dir/name" are the same directory.
fs::path without_slash(const fs::path& path) { return path.has_filename() ? path : path.parent_path(); }

fs::path parent_of(const fs::path& path) {
  const fs::path parent = path.parent_path();
  return parent.empty() ? fs::path(".") : parent;
}

fs::path beside(const fs::path& path, std::string_view mark) {
  return fs::path(path.string() + std::string(mark) + std::to_string(::getpid()));
}

// The part before `mark` and the process in "NAME.tmp-123", or an empty name.
struct MarkedName {
  std::string name;
  int64_t process = 0;
};
MarkedName split_mark(const std::string& file_name, std::string_view mark) {
  const size_t at = file_name.rfind(mark);
  if (at == std::string::npos || at == 0) return {};
  const char* begin = file_name.data() + at + mark.size();
  const char* end = file_name.data() + file_name.size();
  MarkedName result;
  const auto parsed = std::from_chars(begin, end, result.process);
  if (parsed.ec != std::errc() || parsed.ptr != end || result.process <= 0) return {};
  result.name = file_name.substr(0, at);
  return result;
}

bool is_gone(int64_t process) { return ::kill(static_cast<pid_t>(process), 0) != 0 && errno == ESRCH; }

// A live writer holds a lock on its temporary directory; for files, and on file systems without locks, the process id
// decides.
bool is_stale(const fs::path& temporary, int64_t process) {
  std::error_code status;
  if (!fs::is_directory(temporary, status)) return process == ::getpid() || is_gone(process);
  const int descriptor = ::open(temporary.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return false;
  const int locked = ::flock(descriptor, LOCK_EX | LOCK_NB);
  const int code = errno;
  ::close(descriptor);
  if (locked == 0) return true;
  if (code == EWOULDBLOCK) return false;
  return is_gone(process);
}

void erase_tree(const fs::path& path) {
  std::error_code status;
  fs::remove_all(path, status);
  if (status) fail("remove", path, status);
}

void sync_path(const fs::path& path, int flags) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | flags);
  if (descriptor < 0) fail_errno("open", path);
  const int result = ::fsync(descriptor);
  const int code = errno;
  ::close(descriptor);
  errno = code;
  if (result != 0) fail_errno("write", path);
}

void sync_tree(const fs::path& directory) {
  std::error_code status;
  for (fs::directory_iterator it(directory, status), end; !status && it != end; it.increment(status)) {
    const auto type = it->symlink_status().type();
    if (type == fs::file_type::directory) sync_tree(it->path());
    if (type == fs::file_type::regular) sync_path(it->path(), 0);
  }
  if (status) fail("read", directory, status);
  sync_path(directory, O_DIRECTORY);
}

// Replaces the existing directory `to` by `from`; the old one ends under the name `from` or set aside, to be removed.
void replace_directory(const fs::path& from, const fs::path& to, const fs::path& set_aside) {
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_EXCHANGE) == 0) return;
  if (errno != EINVAL && errno != ENOSYS && errno != ENOTSUP) fail_errno("rename", from);
  if (::rename(to.c_str(), set_aside.c_str()) != 0) fail_errno("rename", to);
  if (::rename(from.c_str(), to.c_str()) == 0) return;
  const int code = errno;
  ::rename(set_aside.c_str(), to.c_str());
  errno = code;
  fail_errno("rename", from);
}

// The folders of `path` that are not there, the innermost first.
std::vector<fs::path> missing_parents(const fs::path& path) {
  std::vector<fs::path> missing;
  std::error_code status;
  for (fs::path at = path.parent_path(); !at.empty() && !fs::exists(at, status); at = at.parent_path())
    if (at.has_filename()) missing.push_back(at);
  return missing;
}

// Of `only`, or of all names.
void recover_names(const fs::path& parent, const std::string* only) {
  std::vector<std::string> marked;
  each_name_in(parent, [&](const std::string& name) {
    for (const std::string_view mark : {kSetAside, kTemporary})
      if (const MarkedName found = split_mark(name, mark); !found.name.empty() && (!only || found.name == *only))
        return marked.push_back(name);
  });
  std::sort(marked.begin(), marked.end());
  std::error_code status;
  for (const std::string& name : marked) {
    if (const MarkedName aside = split_mark(name, kSetAside); !aside.name.empty()) {
      if (fs::exists(parent / aside.name, status)) {
        erase_tree(parent / name);
      } else if (::rename((parent / name).c_str(), (parent / aside.name).c_str()) != 0) {
        fail_errno("rename", parent / name);
      }
    }
    const MarkedName temporary = split_mark(name, kTemporary);
    if (!temporary.name.empty() && is_stale(parent / name, temporary.process)) erase_tree(parent / name);
  }
}

}  // namespace

AtomicDirectory::AtomicDirectory(const fs::path& final_path)
    : final_(without_slash(final_path)), temporary_(beside(final_, kTemporary)), created_(missing_parents(final_)) {
  std::error_code status;
  fs::create_directories(parent_of(final_), status);
  if (status) fail("create", parent_of(final_), status);
  recover_directory(final_);
  if (::mkdir(temporary_.c_str(), 0755) != 0) fail_errno("create", temporary_);
  lock_ = ::open(temporary_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (lock_ >= 0) ::flock(lock_, LOCK_EX | LOCK_NB);
}

AtomicDirectory::~AtomicDirectory() {
  std::error_code ignored;
  if (!committed_) fs::remove_all(temporary_, ignored);
  if (lock_ >= 0) ::close(lock_);
  if (committed_) return;
  for (const fs::path& parent : created_)
    if (::rmdir(parent.c_str()) != 0) break;
}

void AtomicDirectory::commit() {
  HR_CHECK(!committed_, "{} committed twice", final_.string());
  sync_tree(temporary_);
  const fs::path set_aside = beside(final_, kSetAside);
  std::error_code status;
  if (fs::exists(fs::symlink_status(final_, status))) {
    replace_directory(temporary_, final_, set_aside);
  } else if (::rename(temporary_.c_str(), final_.c_str()) != 0) {
    fail_errno("rename", temporary_);
  }
  committed_ = true;
  sync_directory(parent_of(final_));
  erase_tree(temporary_);
  erase_tree(set_aside);
}

void recover_directory(const fs::path& final_path) {
  const fs::path path = without_slash(final_path);
  const std::string name = path.filename().string();
  recover_names(parent_of(path), &name);
}

void recover_directories_in(const fs::path& parent) { recover_names(parent, nullptr); }

void remove_directory(const fs::path& path) {
  const fs::path temporary = temporary_beside(without_slash(path));
  if (::rename(without_slash(path).c_str(), temporary.c_str()) != 0) fail_errno("remove", path);
  erase_tree(temporary);
}

fs::path temporary_beside(const fs::path& path) { return beside(path, kTemporary); }

void write_text_durably(const fs::path& path, std::string_view text) {
  const fs::path temporary = temporary_beside(path);
  try {
    File file = File::create(temporary);
    file.write_at(0, std::as_bytes(std::span(text)));
    file.sync();
    file.close();
    rename_durably(temporary, path);
  } catch (...) {
    ::unlink(temporary.c_str());
    throw;
  }
}

void rename_durably(const fs::path& from, const fs::path& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) fail_errno("rename", from);
  sync_directory(parent_of(to));
}

void copy_file_durably(const fs::path& from, const fs::path& to) {
  const File source = File::open(from);
  const fs::path temporary = temporary_beside(to);
  try {
    File copy = File::create(temporary);
    std::array<std::byte, 65536> buffer;
    int64_t offset = 0;
    while (const int64_t n = source.read_some_at(offset, buffer)) {
      copy.write_at(offset, std::span(buffer).first(static_cast<size_t>(n)));
      offset += n;
      if (offset % (int64_t{8} << 20) == 0) copy.write_back(offset - (int64_t{8} << 20), int64_t{8} << 20);
    }
    copy.sync();
    copy.close();
    source.drop_cache(0, 0);
    rename_durably(temporary, to);
  } catch (...) {
    ::unlink(temporary.c_str());
    throw;
  }
}

void each_name_in(const fs::path& directory, const std::function<void(const std::string& name)>& body) {
  std::error_code status;
  for (fs::directory_iterator it(directory, status), end; !status && it != end; it.increment(status))
    body(it->path().filename().string());
  if (status && status != std::errc::no_such_file_or_directory) fail("read", directory, status);
}

void sync_directory(const fs::path& directory) { sync_path(directory, O_DIRECTORY); }

}  // namespace headroom
