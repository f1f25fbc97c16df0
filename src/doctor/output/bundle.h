// One page to hand to a support desk.
#pragma once

#include <string>

#include "doctor/output/report.h"

namespace headroom::doctor {

// Plain text: messages, figures, frames, the job's settings, the estimate and what was proposed, redacted (redact.h).
// A model's name stays only where it names a published one.
std::string report_bundle(const Report& report);

}  // namespace headroom::doctor
