// Memory over time, as training logs, metrics files and nvidia-smi loops tell it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "doctor/messages/growth.h"

namespace headroom::doctor {

// The sample in one clean line, if it holds one: an amount whose name says memory ("mem 12.3GB", "max_mem: 9034M",
// {"step": 7, "memory/max_reserved(GiB)": 12.3}, "allocated: 1.2 GiB, reserved: 2 GiB"). Totals, limits and free
// memory do not count. A bare number is bytes from a million on, MiB below, GiB where it has a fraction and is small.
// `step` is negative when the line names none.
std::optional<MemorySample> memory_sample(std::string_view line);

// Series by source (a rank, a GPU of nvidia-smi), thinned to at most kMost samples each: of the samples that fall
// together the largest is kept.
class SampleStore {
 public:
  static constexpr size_t kMost = 4096;
  static constexpr int kGpu = 1 << 20;  // source of GPU i of nvidia-smi: kGpu + i

  void add(int source, MemorySample sample);
  // An evaluation or a save is logged.
  void event();
  // The longest series; of equally long ones that with the highest peak.
  std::vector<MemorySample> longest() const;

 private:
  struct Series {
    std::vector<MemorySample> samples;
    int64_t count = 0;   // samples seen
    int64_t stride = 1;  // samples per kept one
    bool event = false;
  };
  std::map<int, Series> series_;  // at most kSources
  static constexpr size_t kSources = 32;
};

}  // namespace headroom::doctor
