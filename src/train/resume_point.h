// The start of a run: at a checkpoint, at step 0 of a fresh directory, or at step 0 again.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "train/checkpoint.h"
#include "train/options.h"

namespace headroom {

struct ResumePoint {
  std::filesystem::path checkpoint;  // empty: from step 0
  RunState state;                    // of the checkpoint
  bool restarts = false;             // in the directory of a run that ended before its first checkpoint

  bool resumes() const { return !checkpoint.empty(); }
};

// Resolves --resume-from-checkpoint. `note` gets a line if a run starts over. Throws Error(usage) if there is no such
// checkpoint, Error(format) for a malformed state.json.
ResumePoint find_resume_point(const SavingOptions& saving, const std::function<void(const std::string&)>& note);

// Refuses an output directory that is a file or holds another run. Throws Error(usage). Reads only.
void check_output(const SavingOptions& saving, const ResumePoint& from);

}  // namespace headroom
