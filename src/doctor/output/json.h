// The answer for programs: the doctor record of shared/cli.md.
#pragma once

#include <string>

#include "doctor/output/report.h"

namespace headroom::doctor {

// One JSON object with a line end. Absent figures are null; field names, frameworks and phases as in
// shared/data/oom_messages.jsonl. Bytes that are no UTF-8 are replaced.
std::string report_json(const Report& report);

}  // namespace headroom::doctor
