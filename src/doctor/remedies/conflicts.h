// Which remedies cannot be taken together, in which systems.
#pragma once

#include <string_view>

#include "doctor/remedies/remedy.h"

namespace headroom::doctor {

// Empty when the two go together in this system, else why not. Symmetric.
std::string_view conflict_of(const Remedy& a, const Remedy& b, System system);

}  // namespace headroom::doctor
