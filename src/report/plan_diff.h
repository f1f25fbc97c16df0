// Two plans side by side: what differs, in bytes and seconds, and which techniques and tensors make the difference.
#pragma once

#include <array>
#include <filesystem>
#include <string>
#include <vector>

#include "report/run_files.h"

namespace headroom::report {

struct PlanDiff {
  // What both plans say, A first.
  struct Words {
    std::string name;
    std::array<std::string, 2> values;  // empty: the plan does not say
  };
  struct Figures {
    std::string name;
    std::array<int64_t, 2> bytes{};
    std::string of = {};  // a tensor's class

    int64_t more() const { return bytes[1] - bytes[0]; }  // in B than in A
  };

  std::array<int64_t, 2> budget{}, peak{}, process{};
  std::array<double, 2> step_seconds{};
  std::vector<Words> request;      // what was planned, as far as it differs: model, length, batch, precision, profile
  std::vector<Words> techniques;   // those whose settings differ, in the order of A
  std::vector<Figures> below;      // peaks of host and disk below the device, where either plan uses them
  std::vector<Figures> breakdown;  // every class of the arena
  std::vector<Figures> tensors;    // alive at either peak with different bytes; the largest difference first
  bool knows_tensors = true;       // both files say what is alive
};

// Reads two files as `plan --json` and `train` write them. Throws Error(usage | format) naming the file and what is
// wrong with it; also for a plan that does not fit, which has no peak.
PlanDiff plan_diff(const std::filesystem::path& a, const std::filesystem::path& b);

// As `plan diff --json` writes it.
std::string diff_json(const PlanDiff& diff);
// A table of 80 columns, for people.
std::string diff_text(const PlanDiff& diff);

}  // namespace headroom::report
