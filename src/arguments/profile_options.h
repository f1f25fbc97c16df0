// The options of `profile`.
#pragma once

#include "arguments/option.h"
#include "engine/measure_profile.h"

namespace headroom {

void add_profile_options(CLI::App& app, ProfileOptions& options);

}  // namespace headroom
