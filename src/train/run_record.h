// What a run says of itself for `report` and `watch`.
#pragma once

#include <cstdint>
#include <filesystem>

namespace headroom {

// process.json: which process runs, since when, from where to where. A watcher tells by it whether the run still lives.
struct RunRecord {
  int64_t started_unix_ms = 0;  // also in run.json: which start of the run it concludes
  int64_t first_step = 1;
  int64_t total_steps = 0;
};

// Writes `directory`/process.json with this process's id, its start in the kernel's ticks (an id is given again to
// another process some day) and the host's name. Throws Error(run).
RunRecord write_process_json(const std::filesystem::path& directory, int64_t first_step, int64_t total_steps);

}  // namespace headroom
