// The memory of a process or of a cgroup, as the kernel counts it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace headroom::bench {

class MemoryWatch {
 public:
  // Throws Error(usage) where there is no such process, or its memory may not be read.
  static MemoryWatch of_process(int64_t pid);
  // A folder of cgroup v2 (memory.current) or of v1's memory controller. Throws Error(usage) where it is neither.
  static MemoryWatch of_cgroup(const std::filesystem::path& folder);

  // Bytes in use now; 0 once the process has ended or the cgroup is gone.
  int64_t sample();
  // The most so far: the kernel's own peak (VmHWM, memory.peak) where it keeps one, and what sample() gave. Of a
  // process or cgroup that existed before, that peak may be older than the load.
  int64_t peak() const { return peak_; }
  // Processes that the kernel has killed in the cgroup since this watch began; nothing of a process.
  std::optional<int64_t> kills() const;
  // "process 4711" or "cgroup /sys/fs/cgroup/x".
  const std::string& name() const { return name_; }

 private:
  MemoryWatch() = default;
  std::optional<int64_t> killed() const;

  std::string name_;
  std::filesystem::path status_;                      // of a process
  std::filesystem::path current_, highest_, events_;  // of a cgroup
  std::optional<int64_t> killed_before_;
  int64_t peak_ = 0;
};

}  // namespace headroom::bench
