#include "base/nameless_file.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <string>

namespace headroom {

int open_nameless(const std::filesystem::path& directory, int more) {
  const int descriptor = ::open(directory.c_str(), O_TMPFILE | O_EXCL | O_RDWR | O_CLOEXEC | more, 0600);
  if (descriptor >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != ENOENT)) return descriptor;
  std::string name = (directory / "headroom-scratch-XXXXXX").string();
  const int named = ::mkostemp(name.data(), O_NOFOLLOW | O_CLOEXEC | more);  // it adds O_EXCL and 0600 itself
  if (named >= 0) ::unlink(name.c_str());
  return named;
}

bool lies_in_memory(const std::filesystem::path& directory) {
  struct statfs system {};
  if (::statfs(directory.c_str(), &system) != 0) return false;
  return system.f_type == TMPFS_MAGIC || system.f_type == RAMFS_MAGIC;
}

}  // namespace headroom
