// What headroom itself would do with the same job.
#pragma once

#include "doctor/answer/request.h"
#include "doctor/config/config_reader.h"

namespace headroom::doctor {

// The command, and the least memory where `request.minimum` can tell: for models whose config.json lies here.
HeadroomAnswer headroom_answer(const Request& request, const Case& incident,
                               const std::optional<ConfigReading>& config);

}  // namespace headroom::doctor
