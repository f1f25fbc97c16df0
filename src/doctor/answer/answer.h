// The whole of doctor behind its command line: what was brought, what it means, what to do.
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

// The answer to what was read. Throws Error(usage) when nothing was brought or a name is unknown. The inputs stay as
// they are, so that the same may be answered again with more known.
Answer answer(const Request& request, const Intake& intake);

// The same after reading the inputs; also throws what read_inputs() does.
Answer answer(const Request& request, std::istream& standard_input);

}  // namespace headroom::doctor
