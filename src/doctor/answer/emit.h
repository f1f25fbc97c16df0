// The smallest set of remedies written into the user's own file or command line.
#pragma once

#include <string>
#include <vector>

#include "doctor/answer/request.h"
#include "doctor/config/config_reader.h"

namespace headroom::doctor {

struct Emitted {
  std::string name;                  // of the source that was changed
  std::string text;                  // that source, changed
  std::string diff;                  // unified, over all sources changed; empty when nothing is to be changed
  std::vector<std::string> by_hand;  // of the set: what no key of the file expresses, to be done by hand
};

// The patch for the smallest set. Sources that are not files are patched as command lines.
// Throws Error(usage) when there is no configuration, or when the file cannot be edited.
Emitted emit_patch(const Diagnosis& diagnosis, const ConfigReading& config);

// The command that runs the job with that file ("axolotl train FILE"), or the command line itself, or the whole of a
// batch script.
std::string launch_command(const ConfigReading& config, const std::string& name, const std::string& text);

}  // namespace headroom::doctor
