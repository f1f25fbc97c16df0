// What doctor does behind its command line: from inputs to causes and remedies.
#pragma once

#include <istream>
#include <optional>

#include "doctor/answer/intake.h"
#include "doctor/answer/request.h"

namespace headroom::doctor {

struct Answer {
  Report report;
  std::optional<ConfigReading> config;
};

// The answer to `intake`. Throws Error(usage) when nothing was given or a name is unknown. `intake` is not changed, so
// that it can be answered again when more is known.
Answer answer(const Request& request, const Intake& intake);

// Reads the inputs first; also throws what read_inputs() throws.
Answer answer(const Request& request, std::istream& standard_input);

}  // namespace headroom::doctor
