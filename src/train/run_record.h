// The records that a run writes for `report` and `watch`.
#pragma once

#include <cstdint>
#include <filesystem>

namespace headroom {

// process.json: which process runs, since when, from which step to which. A watcher uses it to see whether the run is
// alive.
struct RunRecord {
  int64_t started_unix_ms = 0;  // also in run.json, to identify the start of the run
  int64_t first_step = 1;
  int64_t total_steps = 0;
};

// Writes `directory`/process.json with this process's id, its start in the kernel's ticks (since ids are reused) and
// the host's name. Throws Error(run).
RunRecord write_process_json(const std::filesystem::path& directory, int64_t first_step, int64_t total_steps);

}  // namespace headroom
