// The answer for people.
#pragma once

#include <string>

#include "doctor/output/report.h"

namespace headroom::doctor {

// At most 24 lines of at most 80 columns: what happened, why, what to do, whether it fits then, and what headroom would
// need.
std::string screen(const Report& report);

// Everything: all causes, the estimate term by term with its formulas, all remedies with their caveats, refused
// remedies and why, every key that was not understood. Lines of at most 100 columns.
std::string details(const Report& report);

// Lines of screen() that other outputs use too.
std::string headline(const Report& report);
std::string verdict(const Report& report);        // whether it fits
std::string headroom_line(const Report& report);  // the last line

}  // namespace headroom::doctor
