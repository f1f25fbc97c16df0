// The phase of a job in which memory ran out, from the frames of the traceback.
#pragma once

#include <string>
#include <vector>

#include "doctor/messages/message.h"

namespace headroom::doctor {

struct Phase {
  std::string name = "unknown";  // a name of docs/doctor_messages.md
  std::string evidence;          // "optimizer_step: adamw.py:243 in step"
};

// Applies the rules of phase.cpp in order. The first rule that matches any frame decides, whatever the frame's depth.
Phase phase_of(const std::vector<Frame>& frames);

// One row per rule, for docs/doctor_messages.md and tests.
struct PhaseRule {
  std::string_view phase;
  std::string_view files;      // '|'-separated substrings of the file; empty: any file
  std::string_view functions;  // '|'-separated names; "x*" is a prefix, "*x*" a part; empty: any function
  bool after_closure = false;  // ignore frames outside an optimizer's closure: the closure runs the whole step
};
const std::vector<PhaseRule>& phase_rules();

}  // namespace headroom::doctor
