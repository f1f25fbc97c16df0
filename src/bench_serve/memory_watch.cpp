#include "bench_serve/memory_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>

#include "base/error.h"

namespace headroom::bench {
namespace {

std::optional<int64_t> number_in(const std::filesystem::path& path) {
  std::ifstream file(path);
  int64_t value = 0;
  if (file >> value) return value;
  return std::nullopt;
}

// The number after `key` at the start of a line.
std::optional<int64_t> number_after(const std::filesystem::path& path, const std::string& key) {
  std::ifstream file(path);
  for (std::string word; file >> word;) {
    int64_t value = 0;
    if (word == key && file >> value) return value;
  }
  return std::nullopt;
}

}  // namespace

MemoryWatch MemoryWatch::of_process(int64_t pid) {
  MemoryWatch watch;
  watch.name_ = fmt::format("process {}", pid);
  watch.status_ = fmt::format("/proc/{}/status", pid);
  if (!number_after(watch.status_, "VmRSS:"))
    throw Error(ErrorKind::usage, fmt::format("--pid {}: there is no such process, or its memory is not shown", pid),
                "give the id of the server's process on this machine");
  watch.sample();
  return watch;
}

MemoryWatch MemoryWatch::of_cgroup(const std::filesystem::path& folder) {
  MemoryWatch watch;
  watch.name_ = fmt::format("cgroup {}", folder.string());
  const bool second = number_in(folder / "memory.current").has_value();
  watch.current_ = folder / (second ? "memory.current" : "memory.usage_in_bytes");
  watch.highest_ = folder / (second ? "memory.peak" : "memory.max_usage_in_bytes");
  watch.events_ = folder / (second ? "memory.events" : "memory.oom_control");
  if (!number_in(watch.current_))
    throw Error(ErrorKind::usage,
                fmt::format("--cgroup {}: neither memory.current nor memory.usage_in_bytes is there", folder.string()),
                "give the folder of a memory cgroup, as /sys/fs/cgroup/system.slice/NAME.service");
  watch.killed_before_ = watch.killed();
  watch.sample();
  return watch;
}

int64_t MemoryWatch::sample() {
  const auto kib = [&](const char* key) { return number_after(status_, key).value_or(0) * 1024; };
  const int64_t now = status_.empty() ? number_in(current_).value_or(0) : kib("VmRSS:");
  const int64_t kernel = status_.empty() ? number_in(highest_).value_or(0) : kib("VmHWM:");
  peak_ = std::max({peak_, now, kernel});
  return now;
}

std::optional<int64_t> MemoryWatch::killed() const {
  return events_.empty() ? std::nullopt : number_after(events_, "oom_kill");
}

std::optional<int64_t> MemoryWatch::kills() const {
  const std::optional<int64_t> now = killed();
  if (!now || !killed_before_) return std::nullopt;
  return *now - *killed_before_;
}

}  // namespace headroom::bench
