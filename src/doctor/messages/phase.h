// In which phase of a job the memory ended, as the frames of the traceback show it.
#pragma once

#include <string>
#include <vector>

#include "doctor/messages/message.h"

namespace headroom::doctor {

struct Phase {
  std::string name = "unknown";  // a name of docs/doctor_messages.md
  std::string evidence;          // "optimizer_step: adamw.py:243 in step"
};

// Applies the rules of phase.cpp in their order: the first that matches a frame decides, whatever the frame's depth.
Phase phase_of(const std::vector<Frame>& frames);

// One row per rule, for docs/doctor_messages.md and tests.
struct PhaseRule {
  std::string_view phase;
  std::string_view files;      // '|'-separated substrings of the file; empty: any file
  std::string_view functions;  // '|'-separated names; "x*" is a prefix, "*x*" a part; empty: any function
  bool after_closure = false;  // frames outside of an optimizer's closure do not count: the closure runs the whole step
};
const std::vector<PhaseRule>& phase_rules();

}  // namespace headroom::doctor
