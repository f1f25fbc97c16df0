// What headroom itself would need for the same job.
#pragma once

#include "doctor/answer/request.h"
#include "doctor/config/config_reader.h"

namespace headroom::doctor {

// The command: empty where no memory is known, or the job is not a language model (`language_model`), which headroom's
// commands take. And minimum_bytes where `request.minimum` can compute it: for models whose config.json is on this
// machine.
HeadroomAnswer headroom_answer(const Request& request, const Case& incident, const std::optional<ConfigReading>& config,
                               bool language_model);

}  // namespace headroom::doctor
