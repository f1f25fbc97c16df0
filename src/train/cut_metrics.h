// metrics.jsonl of a resumed run.
#pragma once

#include <cstdint>
#include <filesystem>

namespace headroom {

// Cuts metrics.jsonl back to lines of steps up to `step`; a missing file has none. Returns whether one of them is an
// evaluation of that step. The file is written to a temporary file next to it and then renamed; memory does not depend
// on its length. Lines that no run writes are left out. Throws Error(run).
bool cut_metrics(const std::filesystem::path& file, int64_t step);

}  // namespace headroom
