// Which remedies exclude each other, by system.
#pragma once

#include <string_view>

#include "doctor/remedies/remedy.h"

namespace headroom::doctor {

// Why the two exclude each other in this system; empty when they can be combined. Symmetric.
std::string_view conflict_of(const Remedy& a, const Remedy& b, System system);

}  // namespace headroom::doctor
