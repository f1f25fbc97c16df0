// Where temporary files of any size may lie without taking memory.
#pragma once

#include <filesystem>

namespace headroom {

// The first of these that can be written and lies on a disk: the system's directory for temporary files (TMPDIR, else
// /tmp), /var/tmp, `last`. What lies in a tmpfs is charged to the process as its memory is. Throws Error(usage) naming
// the places when there is none; `purpose` says what the file is for.
std::filesystem::path temporary_place_on_disk(const std::filesystem::path& last, const char* purpose);

}  // namespace headroom
