// What memory buys, as one self-contained HTML page: no network, no script.
#pragma once

#include <string>
#include <vector>

#include "plan/plan.h"

namespace headroom::report {

// Step time and peak by budget; a point links to its plan below: bytes by class, techniques, command. `plans`: at least
// one, with ascending peaks, all of one request; their programs are not read. `commands`: for each plan, the command
// that plans or runs it. `budget` is marked. Pure.
std::string curve_page(const std::vector<Plan>& plans, const std::vector<std::string>& commands, int64_t budget);

}  // namespace headroom::report
