// What headroom itself would need for the same job.
#pragma once

#include "doctor/answer/request.h"
#include "doctor/config/config_reader.h"

namespace headroom::doctor {

// The command, and minimum_bytes where `request.minimum` can compute it: for models whose config.json is on this
// machine.
HeadroomAnswer headroom_answer(const Request& request, const Case& incident,
                               const std::optional<ConfigReading>& config);

}  // namespace headroom::doctor
