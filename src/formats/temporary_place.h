// A directory for temporary files of any size that do not take memory.
#pragma once

#include <filesystem>

namespace headroom {

// The first of these directories that is writable and on a disk: the system's for temporary files (TMPDIR, else /tmp),
// /var/tmp, `last`. Files in a tmpfs would be charged to the process like its memory. Throws Error(usage) naming the
// directories if there is none; `purpose` names the file.
std::filesystem::path temporary_place_on_disk(const std::filesystem::path& last, const char* purpose);

}  // namespace headroom
