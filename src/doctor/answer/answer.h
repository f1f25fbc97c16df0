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

// Throws Error(usage) when nothing was brought or a name is unknown, Error(format) for malformed configurations.
Answer answer(const Request& request, std::istream& standard_input);

}  // namespace headroom::doctor
