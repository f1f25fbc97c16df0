// metrics.jsonl of a run that is resumed.
#pragma once

#include <cstdint>
#include <filesystem>

namespace headroom {

// Cuts metrics.jsonl back to lines of steps up to `step`; a missing file has none. Returns whether one of them is an
// evaluation of that step. The file is written again beside the old one and takes its name when it is whole; what is in
// memory does not depend on its length. Lines that no run writes are left out. Throws Error(run).
bool cut_metrics(const std::filesystem::path& file, int64_t step);

}  // namespace headroom
