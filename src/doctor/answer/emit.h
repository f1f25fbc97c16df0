// Writes the smallest set of remedies into the user's own file or command line.
#pragma once

#include <string>
#include <vector>

#include "doctor/answer/request.h"
#include "doctor/config/config_reader.h"

namespace headroom::doctor {

struct Emitted {
  std::string name;                  // of the source that was edited
  std::string text;                  // the edited source
  std::string diff;                  // unified, over all edited sources; empty when nothing changes
  std::vector<std::string> by_hand;  // remedies of the set that no key of the file can express
};

// The patch for the smallest set. Sources that are not files are patched as command lines. Throws Error(usage) when
// there is no configuration, or when the file cannot be edited.
Emitted emit_patch(const Diagnosis& diagnosis, const ConfigReading& config);

// The command that runs the job with the edited file ("axolotl train FILE"), or the edited command line or batch script
// itself.
std::string launch_command(const ConfigReading& config, const std::string& name, const std::string& text);

}  // namespace headroom::doctor
