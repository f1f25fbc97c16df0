// Measures a machine's profile.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "cost/profile.h"

namespace headroom {

struct ProfileOptions {
  std::string device = "cpu";    // or cuda:N
  std::filesystem::path output;  // profile file; empty: only the cached one
  std::filesystem::path disk;    // directory whose disk is measured; empty: the profile's, if possible
  int threads = 0;               // 0: as many as the CPUs that this process may use
};

struct MeasuredProfile {
  Profile profile;
  std::filesystem::path path;  // to which it was written
};

struct ProfileEvents {
  std::function<void(double)> progress;          // the share done
  std::function<void(const std::string&)> note;  // a line for people
};

// Measures, writes the profile, and also the cached one that plans use if none is named: about 25 s. Sets the size of
// this thread's team. Other programs on the machine disturb it; the profile's remark says so. Throws Error(usage) for a
// device that cannot be measured and if there is no place for the file, Error(run) on I/O errors.
MeasuredProfile measure_profile(const ProfileOptions& options, const ProfileEvents& events = {});

}  // namespace headroom
