// The answer for programs: `--json`.
#pragma once

#include <string>

#include "doctor/output/report.h"

namespace headroom::doctor {

// One JSON object and a line end. Missing figures are null; the names of fields, frameworks and phases are those of
// tests/data_files/oom_messages.jsonl. Bytes that are not UTF-8 are replaced.
std::string report_json(const Report& report);

}  // namespace headroom::doctor
