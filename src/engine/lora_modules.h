// The arguments of --lora-modules.
#pragma once

#include <string>
#include <vector>

#include "engine/adapter_slots.h"

namespace headroom {

// Of "NAME=DIR" and {"name": NAME, "path": DIR}. Throws Error(usage) for other texts and for a name that comes twice.
std::vector<NamedAdapter> parse_lora_modules(const std::vector<std::string>& modules);

}  // namespace headroom
