// Files without a name: no other process finds them, and their bytes are free again when the process ends, however it
// ends.
#pragma once

#include <filesystem>

namespace headroom {

// Opens a new file in `directory` for reading and writing, for its owner alone (0600); `more` are further flags of
// open(2). Where the file system knows no files without a name, it has a fresh random one for an instant (O_EXCL,
// O_NOFOLLOW). Returns a descriptor, or -1 and errno.
int open_nameless(const std::filesystem::path& directory, int more);

// Whether files there take memory instead of a disk: tmpfs, ramfs. A directory of which the system says nothing does
// not.
bool lies_in_memory(const std::filesystem::path& directory);

}  // namespace headroom
