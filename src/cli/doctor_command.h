// `headroom doctor`, also alone in the program headroom-doctor.
#pragma once

#include "cli/command_line.h"
#include "doctor/answer/request.h"

namespace headroom {

// If `minimum` is empty, the answer does not give the least memory that headroom itself needs.
Command make_doctor_command(doctor::MinimumPlanner minimum);

}  // namespace headroom
