// Asking for the facts that decide what doctor says.
#pragma once

#include <istream>

#include "doctor/answer/answer.h"

namespace headroom {

// Asks on stderr for at most three facts, the most deciding first, reads their answers from `in`, one a line, and
// answers again after each. An empty line leaves that fact open; the end of `in` ends the questions. An answer that is
// not understood is reported, and counts as a question. `all`: also for those that change only whether it is said to
// fit. True if `answer` has changed.
bool ask_for_facts(doctor::Request& request, const doctor::Intake& intake, doctor::Answer& answer, bool all,
                   std::istream& in);

}  // namespace headroom
