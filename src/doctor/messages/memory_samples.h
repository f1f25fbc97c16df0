// Memory over time, from training logs, metrics files and nvidia-smi loops.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "doctor/messages/growth.h"

namespace headroom::doctor {

// The sample in a clean line, if there is one: an amount whose name says memory ("mem 12.3GB", "max_mem: 9034M",
// {"step": 7, "memory/max_reserved(GiB)": 12.3}, "allocated: 1.2 GiB, reserved: 2 GiB"). Totals, limits and free memory
// do not count. A number without a unit is bytes from a million on, MiB below that, and GiB if it is small and has a
// fraction. `step` is negative when the line has none.
std::optional<MemorySample> memory_sample(std::string_view line);

// Series by source (a rank, a GPU of nvidia-smi), thinned to at most kMost samples each: the largest of the samples
// that are merged is kept.
class SampleStore {
 public:
  static constexpr size_t kMost = 4096;
  static constexpr int kGpu = 1 << 20;  // the source of nvidia-smi's GPU i is kGpu + i

  void add(int source, MemorySample sample);
  // Call when an evaluation or a save is logged.
  void event();
  // The longest series; among equally long ones, the one with the highest peak.
  std::vector<MemorySample> longest() const;

 private:
  struct Series {
    std::vector<MemorySample> samples;
    int64_t count = 0;   // samples seen
    int64_t stride = 1;  // samples seen per sample kept
    bool event = false;
  };
  std::map<int, Series> series_;  // at most kSources
  static constexpr size_t kSources = 32;
};

}  // namespace headroom::doctor
