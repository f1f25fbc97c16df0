// Files without a name: no other process finds them, and their space is free again however the process ends.
#pragma once

#include <filesystem>

namespace headroom {

// Opens a new file in `directory` for reading and writing, for its owner alone (0600); `more` are further flags of
// open(2). If the file system does not support files without a name, the file has a random one for an instant (O_EXCL,
// O_NOFOLLOW). Returns a descriptor, or -1 and errno.
int open_nameless(const std::filesystem::path& directory, int more);

// Whether files there use memory instead of a disk: tmpfs, ramfs. False if the system does not say.
bool lies_in_memory(const std::filesystem::path& directory);

}  // namespace headroom
