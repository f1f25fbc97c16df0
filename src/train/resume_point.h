// Where a run begins: at a checkpoint, at step 0 of a fresh directory, or at step 0 again.
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

// What --resume-from-checkpoint means. `note` gets a line where a run starts over. Throws Error(usage) where there is
// no such checkpoint, Error(format) for what its state.json holds.
ResumePoint find_resume_point(const SavingOptions& saving, const std::function<void(const std::string&)>& note);

// Refuses an output directory that is a file or holds another run. Throws Error(usage). Reads only.
void check_output(const SavingOptions& saving, const ResumePoint& from);

}  // namespace headroom
