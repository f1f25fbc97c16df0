// The memory of a process or a cgroup, as counted by the kernel.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace headroom::bench {

class MemoryWatch {
 public:
  // Throws Error(usage) when there is no such process, or its memory may not be read.
  static MemoryWatch of_process(int64_t pid);
  // A folder of cgroup v2 (memory.current) or of v1's memory controller. Throws Error(usage) when it is neither.
  static MemoryWatch of_cgroup(const std::filesystem::path& folder);

  // Bytes now in use; 0 when the process has ended or the cgroup is gone.
  int64_t sample();
  // The most so far, from sample() and from the kernel's own peak (VmHWM, memory.peak) if it has one. If the process or
  // cgroup existed before, that peak may be older than the load.
  int64_t peak() const { return peak_; }
  // Processes that the kernel has killed in the cgroup since this watch started; nullopt for a process.
  std::optional<int64_t> kills() const;
  // "process 4711" or "cgroup /sys/fs/cgroup/x".
  const std::string& name() const { return name_; }

 private:
  MemoryWatch() = default;
  std::optional<int64_t> killed() const;

  std::string name_;
  std::filesystem::path status_;                      // for a process
  std::filesystem::path current_, highest_, events_;  // for a cgroup
  std::optional<int64_t> killed_before_;
  int64_t peak_ = 0;
};

}  // namespace headroom::bench
