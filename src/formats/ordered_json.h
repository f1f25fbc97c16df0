// JSON whose objects keep the order of their members.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace headroom {

using OrderedJson = nlohmann::ordered_json;

// Like parse_json().
OrderedJson parse_ordered_json(std::string_view text, const std::string& source);

}  // namespace headroom
