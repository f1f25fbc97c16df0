// A report on one page for a support desk.
#pragma once

#include <string>

#include "doctor/output/report.h"

namespace headroom::doctor {

// Plain text: messages, figures, frames, the job's settings, the estimate and the proposed remedies, redacted
// (redact.h). A model's name is kept only if it is a published model's.
std::string report_bundle(const Report& report);

}  // namespace headroom::doctor
