// The answer for programs, `--json`.
#pragma once

#include <string>

#include "doctor/output/report.h"

namespace headroom::doctor {

// One JSON object with a line end. Absent figures are null; field names, frameworks and phases as in
// tests/data_files/oom_messages.jsonl. Bytes that are not UTF-8 are replaced.
std::string report_json(const Report& report);

}  // namespace headroom::doctor
