// The answer as a page that needs no network.
#pragma once

#include <string>

#include "doctor/output/report.h"

namespace headroom::doctor {

// A self-contained HTML page: what happened, why, what to do, and bars (inline SVG) of what fills the memory now, after
// each remedy and after the smallest set. Readable on a phone and in dark mode; no scripts.
std::string report_html(const Report& report);

}  // namespace headroom::doctor
