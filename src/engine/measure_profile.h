// A machine measured into a profile.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "cost/profile.h"

namespace headroom {

struct ProfileOptions {
  std::string device = "cpu";    // or cuda:N
  std::filesystem::path output;  // profile file; empty: the cached one alone
  std::filesystem::path disk;    // directory whose disk is measured; empty: the profile's, where that can be
  int threads = 0;               // 0: as many as this process may use CPUs
};

struct MeasuredProfile {
  Profile profile;
  std::filesystem::path path;  // that it was written to
};

struct ProfileEvents {
  std::function<void(double)> progress;          // the share that is done
  std::function<void(const std::string&)> note;  // a line for people
};

// Measures, writes the profile, and beside it the cached one that plans take where none is named: about 25 s. Sets the
// size of this thread's team. What else runs on the machine disturbs it; the profile's remark says so. Throws
// Error(usage) for a device that cannot be measured and where there is no place for the file, Error(run) on I/O errors.
MeasuredProfile measure_profile(const ProfileOptions& options, const ProfileEvents& events = {});

}  // namespace headroom
