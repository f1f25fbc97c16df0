// The rates of a disk in the copies of a step.
#pragma once

#include <filesystem>

namespace headroom {

struct DiskRates {
  double read_bytes_per_second = 0;
  double write_bytes_per_second = 0;
};

// Reads and writes a scratch file of 256 MiB in `directory` past the page cache, both at the same time as in a step,
// each on one thread. Throws as ScratchFile.
DiskRates measure_disk(const std::filesystem::path& directory);

}  // namespace headroom
