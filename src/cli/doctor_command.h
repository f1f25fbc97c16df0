// `headroom doctor`, and the program headroom-doctor that holds nothing else.
#pragma once

#include "cli/command_line.h"
#include "doctor/answer/request.h"

namespace headroom {

// `minimum` may be empty: then the least memory for headroom itself is not told.
Command make_doctor_command(doctor::MinimumPlanner minimum);

}  // namespace headroom
