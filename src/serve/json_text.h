// JSON text for clients: on one line, with bytes that are not UTF-8 replaced.
#pragma once

#include <string>

#include "formats/json.h"

namespace headroom {

inline std::string json_text(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

}  // namespace headroom
