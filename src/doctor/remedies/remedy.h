// What could be done: one rule per technique of shared/features.md.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "doctor/messages/message.h"
#include "doctor/model/estimate.h"

namespace headroom::doctor {

// What a person brought.
struct Case {
  std::vector<Message> messages;
  std::optional<Job> job;
  std::optional<ModelShape> shape;
  std::optional<Gpu> gpu;
  std::optional<Estimate> estimate;
  std::optional<int64_t> capacity_bytes;  // of the device (or host limit) in question
};

struct Cause {
  std::string name;      // "fragmentation", "other_processes", "model_too_large", "batch_too_large", ...
  std::string evidence;  // with the figures
  double weight = 0;     // for ranking, highest first
};

struct Remedy {
  std::string name;  // technique
  std::string set;   // the option in the user's own system and spelling, with its value
  int64_t saves_bytes = 0;
  double slowdown = 1.0;
  std::string kind;    // exact, reassociating, data-order, lossy
  std::string effect;  // on arithmetic and accuracy, one line
  std::string effort;  // flag, config, code, install, hardware
  std::string needs;   // package and minimum version, GPU capability; empty when nothing
  std::vector<std::string> caveats;
  bool fits_alone = false;
  std::string why;
  // The change to the job, so that sets of remedies can be estimated together, and to the user's file.
  std::vector<std::pair<std::string, std::string>> changes;  // field of Job -> value
};

struct Diagnosis {
  std::vector<Cause> causes;
  std::vector<Remedy> remedies;                   // cheapest that fits first
  std::vector<std::string> smallest_fitting_set;  // remedy names; empty when none fits
  std::optional<int64_t> bytes_after;             // estimate with the set applied
};

// Pure function: no file, no device, no network.
Diagnosis diagnose(const Case& patient);

}  // namespace headroom::doctor
