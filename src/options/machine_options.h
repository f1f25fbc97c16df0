// Budgets, and their device.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace headroom {

struct MachineOptions {
  int64_t memory = 0;       // bytes
  int64_t host_memory = 0;  // bytes of host memory, with a device that has its own; 0 = keep nothing there
  std::filesystem::path disk_directory;
  int64_t disk_memory = 0;  // bytes of a file in disk_directory; 0 = keep nothing there
  bool force = false;
  std::string device = "cpu";
  int threads = 0;  // 0 = those of a named profile, else the machine's
  std::string profile;
  bool runs_here = false;    // on the CPU: avoid instructions that a named profile has and this machine lacks
  int64_t caller_bytes = 0;  // held by the program around the engine: a part of the budgets

  bool operator==(const MachineOptions&) const = default;
};

// Checks ranges and words. Throws Error(usage) naming option, value and remedy.
void check_options(const MachineOptions& options);

}  // namespace headroom
